import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Scanner;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.LogTruncationException;
import org.apache.kafka.clients.consumer.NoOffsetForPartitionException;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.consumer.OffsetOutOfRangeException;
import org.apache.kafka.common.TopicPartition;

/**
 * Consumers of partition 0 that are told what to do, as tests/clients/consumer_program.py is. A line
 * is a consumer's name, a verb and its arguments; it is answered by one line. Arguments: bootstrap
 * servers and topic.
 */
public class ConsumerStory {
  static final Duration WAIT = Duration.ofSeconds(30);
  static final Map<String, KafkaConsumer<String, String>> consumers = new HashMap<>();
  static String bootstrap;
  static TopicPartition partition;

  public static void main(String[] args) {
    bootstrap = args[0];
    partition = new TopicPartition(args[1], 0);
    System.out.println("ready");
    for (Scanner lines = new Scanner(System.in); lines.hasNextLine(); ) {
      String[] words = lines.nextLine().split(" ");
      String answer;
      try {
        answer = obey(words[0], words[1], words);
      } catch (LogTruncationException truncation) {
        answer = "truncated at " + truncation.offsetOutOfRangePartitions().get(partition)
            + ", diverges at " + show(truncation.divergentOffsets().get(partition));
      } catch (OffsetOutOfRangeException outOfRange) {
        answer = "out of range at " + outOfRange.offsetOutOfRangePartitions().get(partition);
      } catch (NoOffsetForPartitionException nothing) {
        answer = "no offset";
      }
      System.out.println(answer);
    }
    consumers.values().forEach(KafkaConsumer::close);
  }

  static String obey(String name, String verb, String[] words) {
    var consumer = consumers.get(name);
    switch (verb) {
      case "new":
        consumers.put(name, consumer(name, words[2], words.length > 3 ? words[3] : null));
        return "done";
      case "seek":
        long offset = Long.parseLong(words[2]);
        Optional<Integer> epoch = words.length > 3 ? Optional.of(Integer.valueOf(words[3])) : Optional.empty();
        consumer.seek(partition, new OffsetAndMetadata(offset, epoch, ""));
        return "done";
      case "read":
        return read(consumer, Integer.parseInt(words[2]));
      case "position":
        return "at " + consumer.position(partition, WAIT);
      case "commit":
        consumer.commitSync(WAIT);
        return show(consumer.committed(Set.of(partition), WAIT).get(partition));
      case "time":
        OffsetAndTimestamp found = consumer.offsetsForTimes(Map.of(partition, Long.parseLong(words[2])), WAIT).get(partition);
        return found == null ? "nothing" : found.offset() + ", epoch " + found.leaderEpoch().orElse(-1);
      case "ends":
        return consumer.beginningOffsets(List.of(partition), WAIT).get(partition) + " to "
            + consumer.endOffsets(List.of(partition), WAIT).get(partition);
      default:
        throw new IllegalArgumentException(verb);
    }
  }

  static KafkaConsumer<String, String> consumer(String name, String policy, String group) {
    Properties settings = new Properties();
    settings.putAll(Map.of("bootstrap.servers", bootstrap, "client.id", name, "auto.offset.reset", policy));
    settings.putAll(Map.of("max.poll.records", "1", "enable.auto.commit", "false"));
    settings.putAll(Map.of("metadata.max.age.ms", "500", "request.timeout.ms", "2000"));
    if (group != null) settings.put("group.id", group);
    String strings = "org.apache.kafka.common.serialization.StringDeserializer";
    settings.putAll(Map.of("key.deserializer", strings, "value.deserializer", strings));
    var made = new KafkaConsumer<String, String>(settings);
    made.assign(List.of(partition));
    return made;
  }

  static String read(KafkaConsumer<String, String> consumer, int count) {
    ConsumerRecord<String, String> first = next(consumer), last = first;
    for (int i = 1; i < count; i++) last = next(consumer);
    return show(first) + " to " + show(last);
  }

  static ConsumerRecord<String, String> next(KafkaConsumer<String, String> consumer) {
    for (long end = System.nanoTime() + WAIT.toNanos(); System.nanoTime() < end; ) {
      for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofSeconds(1))) return record;
    }
    throw new IllegalStateException("no record within " + WAIT);
  }

  static String show(ConsumerRecord<String, String> record) {
    return record.value() + " at " + record.offset() + ", epoch " + record.leaderEpoch().orElse(-1);
  }

  static String show(OffsetAndMetadata offset) {
    return offset == null ? "nothing" : offset.offset() + ", epoch " + offset.leaderEpoch().orElse(-1);
  }
}
