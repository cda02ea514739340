import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.AdminClient;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;

/**
 * What clients of any version from 0.11 on do: it is compiled once, against the newest, and loaded
 * with the classes of each. Says for each step how it went.
 */
public class VersionSteps implements Callable<List<String>> {
  final List<String> lines = new ArrayList<>();
  final Map<String, Object> common = new HashMap<>();
  final String topic;
  final TopicPartition partition;

  public VersionSteps(String bootstrap, String name) {
    common.put("bootstrap.servers", bootstrap);
    common.put("request.timeout.ms", "8000");
    common.put("default.api.timeout.ms", "8000");
    topic = name;
    partition = new TopicPartition(name, 0);
  }

  Map<String, Object> with(String... pairs) {
    Map<String, Object> settings = new HashMap<>(common);
    for (int i = 0; i < pairs.length; i += 2) settings.put(pairs[i], pairs[i + 1]);
    return settings;
  }

  void step(String name, Callable<Object> todo) {
    String outcome;
    try {
      outcome = String.valueOf(todo.call());
    } catch (Throwable thrown) {
      Throwable cause = thrown instanceof ExecutionException ? thrown.getCause() : thrown;
      outcome = cause.getClass().getSimpleName() + ": " + cause.getMessage();
    }
    lines.add(name + ": " + outcome);
  }

  @Override
  public List<String> call() throws Exception {
    try (AdminClient admin = AdminClient.create(with())) {
      step("create", () -> admin.createTopics(one(new NewTopic(topic, 1, (short) 3))).all().get());
      step("list", () -> listed(admin));
      step("cluster", () -> admin.describeCluster().nodes().get().size());
      ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
      step(
          "configs",
          () ->
              admin
                  .describeConfigs(one(resource))
                  .all()
                  .get()
                  .get(resource)
                  .get("cleanup.policy")
                  .value());
      produce();
      consume();
      Map<String, NewPartitions> more = Collections.singletonMap(topic, newPartitions());
      if (more.get(topic) != null) step("partitions", () -> admin.createPartitions(more).all().get());
      step("delete", () -> delete(admin));
    }
    return lines;
  }

  /** Whether the topic is listed soon: brokers learn of it one after the other. */
  boolean listed(AdminClient admin) throws Exception {
    long deadline = System.nanoTime() + 15_000_000_000L;
    while (!admin.listTopics().names().get().contains(topic)) {
      if (System.nanoTime() > deadline) return false;
    }
    return true;
  }

  /** The class is of 1.0. */
  NewPartitions newPartitions() {
    try {
      return NewPartitions.increaseTo(2);
    } catch (NoClassDefFoundError older) {
      return null;
    }
  }

  Object delete(AdminClient admin) throws Exception {
    Object result =
        AdminClient.class
            .getMethod("deleteTopics", java.util.Collection.class)
            .invoke(admin, one(topic));
    return ((org.apache.kafka.common.KafkaFuture<?>)
            result.getClass().getMethod("all").invoke(result))
        .get();
  }

  void produce() {
    String[] kinds = {"none", "idempotent"};
    for (String kind : kinds) {
      Map<String, Object> settings =
          with(
              "key.serializer", "org.apache.kafka.common.serialization.StringSerializer",
              "value.serializer", "org.apache.kafka.common.serialization.StringSerializer",
              "enable.idempotence", String.valueOf(kind.equals("idempotent")),
              "acks", "all",
              "max.block.ms", "8000",
              "delivery.timeout.ms", "9000");
      step(
          "produce " + kind,
          () -> {
            try (KafkaProducer<String, String> producer = new KafkaProducer<>(settings)) {
              return producer.send(new ProducerRecord<>(topic, "k", kind)).get().offset();
            }
          });
    }
  }

  void consume() {
    Map<String, Object> settings =
        with(
            "key.deserializer", "org.apache.kafka.common.serialization.StringDeserializer",
            "value.deserializer", "org.apache.kafka.common.serialization.StringDeserializer",
            "group.id", topic,
            "session.timeout.ms", "6000",
            "auto.offset.reset", "earliest",
            "enable.auto.commit", "false");
    try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings)) {
      step("offsets", () -> consumer.endOffsets(one(partition)).get(partition));
      step(
          "time",
          () ->
              consumer.offsetsForTimes(Collections.singletonMap(partition, 0L))
                  .get(partition)
                  .offset());
      step(
          "consume",
          () -> {
            consumer.subscribe(one(topic));
            List<String> values = new ArrayList<>();
            long deadline = System.nanoTime() + 15_000_000_000L;
            while (values.size() < 2 && System.nanoTime() < deadline) {
              for (ConsumerRecord<String, String> record : poll(consumer)) values.add(record.value());
            }
            consumer.commitSync();
            return values;
          });
    }
  }

  /** What 0.11 has, and 4.0 no longer. */
  @SuppressWarnings("unchecked")
  ConsumerRecords<String, String> poll(KafkaConsumer<String, String> consumer) throws Exception {
    try {
      Object found =
          KafkaConsumer.class.getMethod("poll", Duration.class).invoke(consumer, Duration.ofMillis(500));
      return (ConsumerRecords<String, String>) found;
    } catch (NoSuchMethodException older) {
      return (ConsumerRecords<String, String>)
          KafkaConsumer.class.getMethod("poll", long.class).invoke(consumer, 500L);
    }
  }

  static <T> List<T> one(T element) {
    return Arrays.asList(element);
  }
}
