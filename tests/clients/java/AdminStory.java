import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ExecutionException;
import java.util.function.Predicate;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;

/** Everything an administrator asks of a cluster; prints the answers as name=value. */
public class AdminStory {
  static final Duration WAIT = Duration.ofSeconds(30);
  static Admin admin;
  static String bootstrap, topic, group;

  public static void main(String[] args) throws Exception {
    bootstrap = args[0];
    topic = args[1];
    group = args[2];
    admin = Admin.create(Map.of("bootstrap.servers", bootstrap));
    try (Admin closed = admin) {
      topics();
      cluster();
      configs();
      records();
      groups();
      refusals();
      deletion();
    }
  }

  static void topics() throws Exception {
    NewTopic wanted = new NewTopic(topic, 2, (short) 3).configs(Map.of("retention.ms", "-1"));
    CreateTopicsResult created = admin.createTopics(List.of(wanted));
    tell("create.partitions", created.numPartitions(topic).get());
    tell("create.replication", created.replicationFactor(topic).get());
    tell("create.retention", created.config(topic).get().get("retention.ms").value());
    until("partitions", 2, d -> d.partitions().size() == 2);
    admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(3))).all().get();
    TopicDescription described = until("partitions", 3, d -> d.partitions().size() == 3);
    tell("describe.id", described.topicId().equals(created.topicId(topic).get()));
    tell("describe.internal", described.isInternal());
    tell("describe.partitions", described.partitions().size());
    tell("describe.leaders", described.partitions().stream().allMatch(p -> p.leader() != null));
    tell("describe.replicas", ids(described.partitions().get(0).replicas()));
    tell("describe.isr", ids(described.partitions().get(0).isr()));
    tell("describe.elr", described.partitions().get(0).elr() + "" + described.partitions().get(0).lastKnownElr());
    tell("list.topics", admin.listTopics().names().get().contains(topic));
  }

  static TopicDescription until(String what, int count, Predicate<TopicDescription> done) throws Exception {
    for (long end = System.nanoTime() + WAIT.toNanos(); System.nanoTime() < end; Thread.sleep(20)) {
      try {
        TopicDescription found = admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic);
        if (done.test(found)) return found;
      } catch (ExecutionException notYet) {
        // another broker may not know it yet
      }
    }
    throw new IllegalStateException(what + " never came to " + count);
  }

  static void cluster() throws Exception {
    DescribeClusterResult cluster = admin.describeCluster();
    tell("cluster.nodes", ids(cluster.nodes().get()));
    tell("cluster.controller", cluster.nodes().get().contains(cluster.controller().get()));
    tell("cluster.id", !cluster.clusterId().get().isEmpty());
    QuorumInfo quorum = admin.describeMetadataQuorum().quorumInfo().get();
    tell("quorum.leader", quorum.voters().stream().anyMatch(v -> v.replicaId() == quorum.leaderId()));
    FeatureMetadata features = admin.describeFeatures().featureMetadata().get();
    tell("features.metadata", features.finalizedFeatures().containsKey("metadata.version"));
  }

  static void configs() throws Exception {
    ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
    tell("config.retention", source(resource, "retention.ms"));
    tell("config.segment", source(resource, "segment.bytes"));
    AlterConfigOp change = new AlterConfigOp(new ConfigEntry("segment.bytes", "2097152"), AlterConfigOp.OpType.SET);
    admin.incrementalAlterConfigs(Map.of(resource, List.of(change))).all().get();
    for (int i = 0; i < 1000 && source(resource, "segment.bytes").startsWith("1073741824"); i++) Thread.sleep(20);
    tell("config.changed", source(resource, "segment.bytes"));
    DescribeConfigsOptions all = new DescribeConfigsOptions().includeSynonyms(true);
    ConfigEntry entry = admin.describeConfigs(List.of(resource), all).all().get().get(resource).get("segment.bytes");
    tell("config.type", entry.type());
    tell("config.synonyms", entry.synonyms().stream().map(s -> s.name() + ":" + s.source()).toList());
  }

  static String source(ConfigResource resource, String name) throws Exception {
    ConfigEntry entry = admin.describeConfigs(List.of(resource)).all().get().get(resource).get(name);
    return entry.value() + " " + entry.source();
  }

  static void records() throws Exception {
    TopicPartition partition = new TopicPartition(topic, 0);
    try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(settings())) {
      for (int i = 0; i < 10; i++) {
        producer.send(new ProducerRecord<>(topic, 0, 1000L + i, null, new byte[100])).get();
      }
      var producers = admin.describeProducers(List.of(partition)).partitionResult(partition).get().activeProducers();
      tell("producers", producers.size() + " " + producers.get(0).lastSequence());
    }
    tell("delete.records", admin.deleteRecords(Map.of(partition, RecordsToDelete.beforeOffset(3))).lowWatermarks().get(partition).get().lowWatermark());
    Map<String, OffsetSpec> specs = new TreeMap<>(Map.of(
        "earliest", OffsetSpec.earliest(),
        "latest", OffsetSpec.latest(),
        "max", OffsetSpec.maxTimestamp(),
        "local", OffsetSpec.earliestLocal(),
        "tiered", OffsetSpec.latestTiered(),
        "time", OffsetSpec.forTimestamp(1005)));
    for (Map.Entry<String, OffsetSpec> spec : specs.entrySet()) {
      var found = admin.listOffsets(Map.of(partition, spec.getValue())).partitionResult(partition).get();
      tell("offset." + spec.getKey(), found.offset() + " " + found.timestamp());
    }
    for (Map<String, LogDirDescription> dirs : admin.describeLogDirs(List.of(1, 2, 3)).allDescriptions().get().values()) {
      LogDirDescription dir = dirs.values().iterator().next();
      if (dir.replicaInfos().get(partition).size() < 1000) throw new IllegalStateException("too small: " + dir);
    }
    tell("log.dirs", "ok");
  }

  static void groups() throws Exception {
    TopicPartition partition = new TopicPartition(topic, 0);
    try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings())) {
      consumer.subscribe(List.of(topic));
      while (consumer.assignment().size() < 3) consumer.poll(Duration.ofMillis(200));
      consumer.commitSync(Map.of(partition, new OffsetAndMetadata(5, Optional.of(0), "a note")));
      ConsumerGroupDescription found = admin.describeConsumerGroups(List.of(group)).all().get().get(group);
      tell("group.state", found.groupState() + " " + found.partitionAssignor() + " " + found.members().size());
      tell("group.assigned", found.members().iterator().next().assignment().topicPartitions().size());
      tell("group.coordinator", found.coordinator() != null);
      tell("group.listed", admin.listGroups().all().get().stream().anyMatch(g -> g.groupId().equals(group)));
      tell("group.busy", refusal(admin.deleteConsumerGroups(List.of(group)).all()));
    }
    OffsetAndMetadata offset = admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().get(partition);
    tell("group.offset", offset.offset() + " " + offset.metadata() + " " + offset.leaderEpoch().orElse(-1));
    admin.alterConsumerGroupOffsets(group, Map.of(partition, new OffsetAndMetadata(8))).all().get();
    tell("group.altered", admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().get(partition).offset());
    admin.deleteConsumerGroupOffsets(group, Set.of(partition)).all().get();
    tell("group.forgotten", admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().isEmpty());
    admin.deleteConsumerGroups(List.of(group)).all().get();
    tell("group.gone", refusal(admin.describeConsumerGroups(List.of(group)).all()));
  }

  static void refusals() throws Exception {
    NewTopic again = new NewTopic(topic, 1, (short) 1);
    tell("refuse.again", refusal(admin.createTopics(List.of(again)).all()));
    tell("refuse.name", refusal(admin.createTopics(List.of(new NewTopic("a b", 1, (short) 1))).all()));
    tell("refuse.replication", refusal(admin.createTopics(List.of(new NewTopic(topic + "x", 1, (short) 9))).all()));
    tell("refuse.fewer", refusal(admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(1))).all()));
    tell("refuse.unknown", refusal(admin.describeTopics(List.of(topic + "x")).allTopicNames()));
    ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
    AlterConfigOp bad = new AlterConfigOp(new ConfigEntry("retention.ms", "soon"), AlterConfigOp.OpType.SET);
    tell("refuse.config", refusal(admin.incrementalAlterConfigs(Map.of(resource, List.of(bad))).all()));
    TopicPartition partition = new TopicPartition(topic, 0);
    tell("refuse.records", refusal(admin.deleteRecords(Map.of(partition, RecordsToDelete.beforeOffset(99))).all()));
  }

  static void deletion() throws Exception {
    admin.deleteTopics(List.of(topic)).all().get();
    tell("delete.again", refusal(admin.deleteTopics(List.of(topic)).all()));
  }

  static String refusal(KafkaFuture<?> future) throws Exception {
    try {
      future.get();
      return "none";
    } catch (ExecutionException refused) {
      return refused.getCause().getClass().getSimpleName();
    }
  }

  static TreeSet<Integer> ids(Collection<Node> nodes) {
    TreeSet<Integer> ids = new TreeSet<>();
    nodes.forEach(node -> ids.add(node.id()));
    return ids;
  }

  static Properties settings() {
    Properties settings = new Properties();
    settings.put("bootstrap.servers", bootstrap);
    settings.put("group.id", group);
    String bytes = "org.apache.kafka.common.serialization.ByteArray";
    settings.put("key.serializer", bytes + "Serializer");
    settings.put("value.serializer", bytes + "Serializer");
    settings.put("key.deserializer", bytes + "Deserializer");
    settings.put("value.deserializer", bytes + "Deserializer");
    settings.put("enable.auto.commit", "false");
    return settings;
  }

  static void tell(String name, Object value) {
    System.out.println(name + "=" + value);
  }
}
