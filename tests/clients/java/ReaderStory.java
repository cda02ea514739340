import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Scanner;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.LogTruncationException;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.OffsetOutOfRangeException;
import org.apache.kafka.common.TopicPartition;

/**
 * A consumer of partition 0 that is told what to do: "read 20" reads so many records, "end" asks where
 * the log ends, "commit" commits what was read. It answers each line with one. Arguments: bootstrap
 * servers, topic, client id, auto.offset.reset, and a group, if it is to be a member of one.
 */
public class ReaderStory {
  static final Duration WAIT = Duration.ofSeconds(60);
  static TopicPartition partition;
  static ConsumerRecords<String, String> polled;

  public static void main(String[] args) {
    partition = new TopicPartition(args[1], 0);
    try (var consumer = new KafkaConsumer<String, String>(settings(args))) {
      if (args.length > 4) {
        consumer.subscribe(List.of(partition.topic()));
      } else {
        consumer.assign(List.of(partition));
        consumer.seek(partition, 0);
      }
      System.out.println("ready");
      for (Scanner input = new Scanner(System.in); input.hasNext(); ) {
        System.out.println(
            switch (input.next()) {
              case "read" -> read(consumer, input.nextInt());
              case "commit" -> commit(consumer);
              default -> "ends at " + consumer.endOffsets(List.of(partition), WAIT).get(partition);
            });
      }
    }
  }

  static Properties settings(String[] args) {
    Properties settings = new Properties();
    settings.putAll(Map.of("bootstrap.servers", args[0], "client.id", args[2], "auto.offset.reset", args[3]));
    settings.putAll(Map.of("max.poll.records", "1", "enable.auto.commit", "false"));
    settings.put("request.timeout.ms", "5000"); // after which it looks again at a position that was truncated
    // A member that waits for newer metadata asks for them as often.
    if (args.length > 4) settings.putAll(Map.of("group.id", args[4], "metadata.max.age.ms", "1000"));
    String strings = "org.apache.kafka.common.serialization.StringDeserializer";
    settings.putAll(Map.of("key.deserializer", strings, "value.deserializer", strings));
    return settings;
  }

  static String read(KafkaConsumer<String, String> consumer, int count) {
    try {
      ConsumerRecord<String, String> first = next(consumer), last = first;
      for (int i = 1; i < count; i++) last = next(consumer);
      return first.value() + " at " + first.offset() + " to " + last.value() + " at " + last.offset();
    } catch (OffsetOutOfRangeException refused) {
      String name = refused.getClass().getSimpleName() + ": ";
      name += refused.offsetOutOfRangePartitions().get(partition);
      if (!(refused instanceof LogTruncationException truncation)) return name;
      return name + " diverges at " + show(truncation.divergentOffsets().get(partition));
    }
  }

  /** Commits what comes after the records of the last poll, and tells what the group has committed then. */
  static String commit(KafkaConsumer<String, String> consumer) {
    consumer.commitSync(polled.nextOffsets());
    return "committed " + show(consumer.committed(Set.of(partition)).get(partition));
  }

  static ConsumerRecord<String, String> next(KafkaConsumer<String, String> consumer) {
    for (long end = System.nanoTime() + WAIT.toNanos(); System.nanoTime() < end; ) {
      polled = consumer.poll(Duration.ofSeconds(1));
      for (ConsumerRecord<String, String> record : polled) return record;
    }
    throw new IllegalStateException("no record within " + WAIT);
  }

  static String show(OffsetAndMetadata offset) {
    return offset.offset() + ", epoch " + offset.leaderEpoch().orElse(-1);
  }
}
