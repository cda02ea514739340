import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.LogTruncationException;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.common.TopicPartition;

/** Consumers that have read what an unclean election then takes away: what each is told. */
public class TruncationStory {
  static String bootstrap, group;
  static TopicPartition partition;

  public static void main(String[] args) throws Exception {
    bootstrap = args[0];
    partition = new TopicPartition(args[1], 0);
    group = args[2];
    long end = Long.parseLong(args[3]);
    try (var none = reader("none"); var earliest = reader("earliest"); var latest = reader("latest")) {
      for (var consumer : List.of(none, earliest, latest)) readTo(consumer, end);
      tell("position", none.position(partition));
      commit(end);

      System.out.println("Read. Press Enter when the leader has changed.");
      System.in.read();

      truncated("none", none);
      reset("earliest", earliest);
      reset("latest", latest);
      // An offset kept elsewhere, with the epoch of the record before it.
      none.seek(partition, new OffsetAndMetadata(end - 5, Optional.of(0), ""));
      truncated("seek", none);
      none.seek(partition, end - 8); // no epoch, and so nothing to compare
      tell("plain.next", show(next(none)));
      times(none);
    }
    try (var consumer = consumer("none")) {
      consumer.subscribe(List.of(partition.topic())); // the next member of the group
      truncated("group", consumer);
    }
  }

  /** auto.offset.reset=none: poll throws, and the application decides where to go on. */
  static void truncated(String name, KafkaConsumer<String, String> consumer) {
    try {
      for (int i = 0; i < 30; i++) consumer.poll(Duration.ofSeconds(1));
      tell(name, "nothing thrown");
    } catch (LogTruncationException truncation) {
      OffsetAndMetadata diverged = truncation.divergentOffsets().get(partition);
      tell(name + ".thrown", truncation.offsetOutOfRangePartitions().get(partition) + " diverges at " + show(diverged));
      consumer.seek(partition, diverged);
      tell(name + ".next", show(next(consumer)));
    }
  }

  /** Another policy: the position is where the logs part, and neither the beginning nor the end. */
  static void reset(String name, KafkaConsumer<String, String> consumer) {
    long before = consumer.position(partition);
    consumer.pause(List.of(partition)); // so that it validates its position and fetches nothing
    for (int i = 0; i < 300 && consumer.position(partition) == before; i++) consumer.poll(Duration.ofMillis(100));
    tell(name + ".position", consumer.position(partition));
    consumer.resume(List.of(partition));
    tell(name + ".next", show(next(consumer)));
  }

  /** A member of the group reads all and commits where it is. */
  static void commit(long end) {
    try (var consumer = consumer("earliest")) {
      consumer.subscribe(List.of(partition.topic()));
      readTo(consumer, end);
      consumer.commitSync();
      tell("committed", show(consumer.committed(java.util.Set.of(partition)).get(partition)));
    }
  }

  static void times(KafkaConsumer<String, String> consumer) {
    for (long time : new long[] {0, next(consumer).timestamp()}) {
      OffsetAndTimestamp found = consumer.offsetsForTimes(Map.of(partition, time)).get(partition);
      tell(time == 0 ? "time.first" : "time.later", "epoch " + found.leaderEpoch().orElse(-1));
    }
  }

  static void readTo(KafkaConsumer<String, String> consumer, long end) {
    for (long offset = -1; offset + 1 < end; ) offset = next(consumer).offset();
  }

  static ConsumerRecord<String, String> next(KafkaConsumer<String, String> consumer) {
    for (int i = 0; i < 30; i++) {
      for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofSeconds(1))) return record;
    }
    throw new IllegalStateException("no record");
  }

  static KafkaConsumer<String, String> reader(String policy) {
    var consumer = consumer(policy);
    consumer.assign(List.of(partition));
    consumer.seek(partition, 0);
    return consumer;
  }

  static KafkaConsumer<String, String> consumer(String policy) {
    Properties settings = new Properties();
    settings.putAll(Map.of("bootstrap.servers", bootstrap, "group.id", group, "client.id", "truncation-" + policy));
    settings.putAll(Map.of("auto.offset.reset", policy, "enable.auto.commit", "false", "max.poll.records", "1"));
    settings.put("metadata.max.age.ms", "500"); // a consumer that does not fetch hears of leaders only so
    String strings = "org.apache.kafka.common.serialization.StringDeserializer";
    settings.putAll(Map.of("key.deserializer", strings, "value.deserializer", strings));
    return new KafkaConsumer<>(settings);
  }

  static String show(ConsumerRecord<String, String> record) {
    return record.value() + " at " + record.offset() + ", epoch " + record.leaderEpoch().orElse(-1);
  }

  static String show(OffsetAndMetadata offset) {
    return offset.offset() + ", epoch " + offset.leaderEpoch().orElse(-1);
  }

  static void tell(String name, Object value) {
    System.out.println(name + "=" + value);
  }
}
