import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Scanner;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;

/**
 * A Java client that does what it is told, line by line; ../worker.py says how it is talked to. Argument:
 * bootstrap servers.
 */
public class WorkerStory {
  static final Duration WAIT = Duration.ofSeconds(30);
  static String bootstrap;

  public static void main(String[] args) {
    bootstrap = args[0];
    System.out.println("ready");
    for (Scanner input = new Scanner(System.in); input.hasNextLine(); ) {
      String[] words = input.nextLine().split(" ");
      Map<String, String> options = new HashMap<>();
      for (String word : words) if (word.contains("=")) options.put(word.split("=")[0], word.split("=")[1]);
      List<String> told = new ArrayList<>();
      try {
        if (words[0].equals("produce")) produce(told, words, options);
        else read(told, words, options);
      } catch (Exception error) {
        told.add("raised " + name(error));
      }
      System.out.println(String.join("; ", told));
    }
  }

  static void produce(List<String> told, String[] words, Map<String, String> options) throws Exception {
    Properties settings = settings(words[1], options);
    settings.put("enable.idempotence", options.getOrDefault("idempotent", "true"));
    settings.put("acks", options.getOrDefault("acks", "-1"));
    settings.put("delivery.timeout.ms", options.getOrDefault("delivery_ms", "20000"));
    settings.put("max.block.ms", options.getOrDefault("delivery_ms", "20000"));
    settings.put("linger.ms", "0");
    try (var producer = new KafkaProducer<String, String>(settings)) {
      for (String value : words[3].split(",")) {
        try {
          var record = new ProducerRecord<String, String>(words[2], 0, null, value);
          told.add("" + producer.send(record).get(WAIT.toMillis(), TimeUnit.MILLISECONDS).offset());
        } catch (ExecutionException refused) {
          told.add(name(refused.getCause()));
        } catch (KafkaException refused) {
          told.add(name(refused));
        }
      }
      producer.metrics().forEach((metric, value) -> {
        if (metric.name().equals("produce-throttle-time-max") && (Double) value.metricValue() > 0)
          told.add("throttled " + ((Double) value.metricValue()).intValue());
      });
    }
  }

  static void read(List<String> told, String[] words, Map<String, String> options) {
    Properties settings = settings(words[1], options);
    boolean isMember = words[0].equals("member");
    if (isMember) settings.put("group.id", words[4]);
    settings.put("auto.offset.reset", "earliest");
    settings.put("enable.auto.commit", "false");
    settings.put("fetch.max.wait.ms", "100");
    settings.put("max.poll.records", "1");
    settings.put("heartbeat.interval.ms", "100");
    settings.put("check.crcs", options.getOrDefault("crc", "true"));
    TopicPartition partition = new TopicPartition(words[2], 0);
    try (var consumer = new KafkaConsumer<String, String>(settings)) {
      if (isMember) consumer.subscribe(List.of(words[2]));
      else consumer.assign(List.of(partition));
      int errors = Integer.parseInt(options.getOrDefault("errors", "1"));
      int count = Integer.parseInt(words[3]);
      long end = System.nanoTime() + WAIT.toNanos();
      while (count > 0 && errors > 0) {
        if (System.nanoTime() > end) {
          told.add("nothing");
          return;
        }
        try {
          for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofSeconds(1))) {
            told.add(record.value());
            count--;
          }
        } catch (KafkaException error) {
          told.add(name(error));
          errors--;
          if (!isMember) fetchAgain(consumer, partition);
        }
      }
      if (isMember && count <= 0) {
        try {
          consumer.commitSync(WAIT);
          told.add("committed");
        } catch (KafkaException error) {
          told.add(name(error));
        }
      }
    }
  }

  /** Gives up what it has fetched; a seek to where it is would not, and it would be told the same for ever. */
  static void fetchAgain(KafkaConsumer<String, String> consumer, TopicPartition partition) {
    long position = consumer.position(partition);
    consumer.unsubscribe();
    consumer.assign(List.of(partition));
    consumer.seek(partition, position);
  }

  static Properties settings(String clientId, Map<String, String> options) {
    Properties settings = new Properties();
    settings.putAll(Map.of("bootstrap.servers", bootstrap, "client.id", clientId));
    settings.put("request.timeout.ms", options.getOrDefault("request_ms", "5000"));
    settings.put("metadata.max.age.ms", options.getOrDefault("refresh_ms", "300000"));
    settings.putAll(Map.of("retry.backoff.ms", "20", "reconnect.backoff.ms", "20"));
    String strings = "org.apache.kafka.common.serialization.String";
    for (String part : List.of("key.", "value.")) {
      settings.put(part + "serializer", strings + "Serializer");
      settings.put(part + "deserializer", strings + "Deserializer");
    }
    return settings;
  }

  /** Of what is at the bottom of it. */
  static String name(Throwable error) {
    while (error.getCause() != null) error = error.getCause();
    return error.getClass().getSimpleName();
  }
}
