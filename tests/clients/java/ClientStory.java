import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;

/** A producer and a consumer with every codec, keys and headers; prints what it saw as name=value. */
public class ClientStory {
  public static void main(String[] args) throws Exception {
    String bootstrap = args[0], topic = args[1], group = args[2];
    TopicPartition partition = new TopicPartition(topic, 0);
    int sent = 0;
    for (String codec : List.of("none", "gzip", "snappy", "lz4", "zstd")) {
      sent += produce(bootstrap, topic, codec);
    }
    try (KafkaConsumer<String, String> consumer = consumer(bootstrap, group)) {
      consumer.subscribe(List.of(topic));
      List<ConsumerRecord<String, String>> records = new ArrayList<>();
      while (records.size() < sent) {
        consumer.poll(Duration.ofSeconds(1)).forEach(records::add);
      }
      boolean ordered = true;
      for (int i = 0; i < sent; i++) {
        ordered &= records.get(i).offset() == i && records.get(i).value().endsWith("-" + i % 100);
      }
      ConsumerRecord<String, String> last = records.get(sent - 1);
      tell("read", records.size());
      tell("ordered", ordered);
      tell("last.key", last.key());
      tell("last.header", new String(last.headers().lastHeader("codec").value()));
      tell("last.epoch", last.leaderEpoch().orElse(-1));
      consumer.commitSync(Map.of(partition, new OffsetAndMetadata(7, last.leaderEpoch(), "a note")));
      OffsetAndMetadata committed = consumer.committed(java.util.Set.of(partition)).get(partition);
      tell("committed", committed.offset() + " " + committed.metadata() + " " + committed.leaderEpoch().orElse(-1));
      tell("beginning", consumer.beginningOffsets(List.of(partition)).get(partition));
      tell("end", consumer.endOffsets(List.of(partition)).get(partition));
      tell("lag", consumer.currentLag(partition).orElse(-1));
      tell("first.time", consumer.offsetsForTimes(Map.of(partition, 0L)).get(partition).offset());
      consumer.seek(partition, 42);
      ConsumerRecord<String, String> sought = null;
      while (sought == null) {
        for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofSeconds(1))) {
          sought = record;
          break;
        }
      }
      tell("sought", sought.offset());
    }
    try (KafkaConsumer<String, String> consumer = consumer(bootstrap, group)) {
      consumer.subscribe(List.of(topic));
      ConsumerRecord<String, String> next = null;
      while (next == null) {
        for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofSeconds(1))) {
          next = record;
          break;
        }
      }
      tell("resumed", next.offset());
    }
  }

  static int produce(String bootstrap, String topic, String codec) throws Exception {
    Properties settings = settings(bootstrap);
    settings.put("compression.type", codec);
    settings.put("linger.ms", "50");
    RecordMetadata last = null;
    try (KafkaProducer<String, String> producer = new KafkaProducer<>(settings)) {
      java.util.concurrent.Future<RecordMetadata> future = null;
      for (int i = 0; i < 100; i++) {
        ProducerRecord<String, String> record = new ProducerRecord<>(topic, 0, "key", codec + "-value-value-value-" + i);
        record.headers().add("codec", codec.getBytes());
        future = producer.send(record);
      }
      last = future.get(30, TimeUnit.SECONDS);
    }
    tell("offset." + codec, last.offset());
    return 100;
  }

  static KafkaConsumer<String, String> consumer(String bootstrap, String group) {
    Properties settings = settings(bootstrap);
    settings.put("group.id", group);
    settings.put("auto.offset.reset", "earliest");
    settings.put("enable.auto.commit", "false");
    return new KafkaConsumer<>(settings);
  }

  static Properties settings(String bootstrap) {
    Properties settings = new Properties();
    settings.put("bootstrap.servers", bootstrap);
    String strings = "org.apache.kafka.common.serialization.String";
    settings.put("key.serializer", strings + "Serializer");
    settings.put("value.serializer", strings + "Serializer");
    settings.put("key.deserializer", strings + "Deserializer");
    settings.put("value.deserializer", strings + "Deserializer");
    return settings;
  }

  static void tell(String name, Object value) {
    System.out.println(name + "=" + value);
  }
}
