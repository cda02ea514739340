import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Scanner;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetOutOfRangeException;
import org.apache.kafka.common.TopicPartition;

/**
 * A consumer of partition 0 that is told what to do: "read 20" reads so many records, "end" asks where
 * the log ends. It answers each line with one. Arguments: bootstrap servers, topic, client id, and
 * auto.offset.reset.
 */
public class ReaderStory {
  static final Duration WAIT = Duration.ofSeconds(60);

  public static void main(String[] args) {
    TopicPartition partition = new TopicPartition(args[1], 0);
    Properties settings = new Properties();
    settings.putAll(Map.of("bootstrap.servers", args[0], "client.id", args[2], "auto.offset.reset", args[3]));
    settings.putAll(Map.of("max.poll.records", "1", "enable.auto.commit", "false"));
    String strings = "org.apache.kafka.common.serialization.StringDeserializer";
    settings.putAll(Map.of("key.deserializer", strings, "value.deserializer", strings));
    try (var consumer = new KafkaConsumer<String, String>(settings)) {
      consumer.assign(List.of(partition));
      consumer.seek(partition, 0);
      System.out.println("ready");
      for (Scanner input = new Scanner(System.in); input.hasNext(); ) {
        if (input.next().equals("read")) {
          System.out.println(read(consumer, input.nextInt()));
        } else {
          System.out.println("ends at " + consumer.endOffsets(List.of(partition), WAIT).get(partition));
        }
      }
    }
  }

  static String read(KafkaConsumer<String, String> consumer, int count) {
    try {
      ConsumerRecord<String, String> first = next(consumer), last = first;
      for (int i = 1; i < count; i++) last = next(consumer);
      return first.value() + " at " + first.offset() + " to " + last.value() + " at " + last.offset();
    } catch (OffsetOutOfRangeException refused) {
      return refused.getClass().getSimpleName();
    }
  }

  static ConsumerRecord<String, String> next(KafkaConsumer<String, String> consumer) {
    for (long end = System.nanoTime() + WAIT.toNanos(); System.nanoTime() < end; ) {
      for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofSeconds(1))) return record;
    }
    throw new IllegalStateException("no record within " + WAIT);
  }
}
