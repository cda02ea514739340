import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Loads the classes that the tests' Java processes load: runs a broker in the directory that is the
 * argument, and its clients. A JVM that is started with -XX:ArchiveClassesAtExit archives them.
 */
public class ArchivedClasses {
  public static void main(String[] args) throws Exception {
    String broker = "127.0.0.1:" + freePort();
    String controller = "127.0.0.1:" + freePort();
    Path properties = Path.of(args[0], "server.properties");
    Files.write(
        properties,
        List.of(
            "process.roles=broker,controller",
            "node.id=1",
            "listeners=PLAINTEXT://" + broker + ",CONTROLLER://" + controller,
            "controller.listener.names=CONTROLLER",
            "controller.quorum.bootstrap.servers=" + controller,
            "offsets.topic.replication.factor=1",
            "offsets.topic.num.partitions=1",
            "group.initial.rebalance.delay.ms=0",
            "log.dirs=" + Path.of(args[0], "logs")));
    String[] format = {
      "format", "--standalone", "-t", "MkU3OEVBNTcwNTJENDM2Qk", "-c", properties.toString()
    };
    if (kafka.tools.StorageTool.execute(format, System.out) != 0) System.exit(1);
    Thread server = new Thread(() -> kafka.Kafka.main(new String[] {properties.toString()}));
    server.setDaemon(true);
    server.start();
    useClients(broker);
    System.exit(0);
  }

  private static int freePort() throws Exception {
    try (ServerSocket socket = new ServerSocket(0)) {
      return socket.getLocalPort();
    }
  }

  private static void useClients(String broker) throws Exception {
    Map<String, Object> settings = Map.of("bootstrap.servers", broker, "group.id", "any");
    try (Admin admin = Admin.create(settings)) {
      NewTopic topic = new NewTopic("topic", 1, (short) 1);
      try {
        admin.createTopics(List.of(topic)).all().get();
      } catch (ExecutionException notReady) {
        System.exit(1);
      }
    }
    StringSerializer writer = new StringSerializer();
    try (var producer = new KafkaProducer<>(settings, writer, writer)) {
      producer.send(new ProducerRecord<>("topic", "key", "value")).get();
    }
    StringDeserializer reader = new StringDeserializer();
    try (var consumer = new KafkaConsumer<>(settings, reader, reader)) {
      consumer.subscribe(List.of("topic"));
      consumer.poll(Duration.ofSeconds(1));
      consumer.endOffsets(List.of(new TopicPartition("topic", 0)));
    }
  }
}
