import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.Map;
import java.util.Properties;
import java.util.Scanner;
import java.util.concurrent.Semaphore;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.serialization.SimpleStringSchema;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.connector.kafka.sink.KafkaPartitioner;
import org.apache.flink.connector.kafka.sink.KafkaRecordSerializationSchema;
import org.apache.flink.connector.kafka.sink.KafkaSink;
import org.apache.flink.connector.kafka.sink.TransactionNamingStrategy;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.core.execution.SavepointFormatType;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/**
 * A Flink job that copies a topic of numbers exactly once, in a cluster of its own (MiniCluster). It copies as many
 * records more as the last line of its input says ("copy 40"), and says "waits" with another one at hand: transactions
 * are open then. For "fail" the job fails, and starts again by itself. It says "heard" after each line, and ends with its
 * input. A new process begins with the newest checkpoint in the directory.
 * Arguments: bootstrap servers, source, target, name, directory, transaction naming strategy.
 */
public class FlinkStory {
  static final Semaphore allowed = new Semaphore(0);
  static volatile boolean failing;

  public static void main(String[] args) throws Exception {
    var environment = StreamExecutionEnvironment.createLocalEnvironment(2, configuration(Path.of(args[4])));
    environment
        .fromSource(source(args), WatermarkStrategy.noWatermarks(), "source")
        .map(FlinkStory::take)
        .sinkTo(sink(args));
    var job = environment.executeAsync();
    for (Scanner lines = new Scanner(System.in); lines.hasNextLine(); ) {
      String line = lines.nextLine();
      if (line.equals("fail")) failing = true;
      else allowed.drainPermits();
      allowed.release(line.equals("fail") ? 1 : Integer.parseInt(line.split(" ")[1]));
      System.out.println("heard");
    }
    job.stopWithSavepoint(false, args[4], SavepointFormatType.DEFAULT).get();
    System.exit(0);
  }

  static String take(String value) throws InterruptedException {
    if (!allowed.tryAcquire()) {
      System.out.println("waits");
      allowed.acquire();
    }
    if (!failing) return value;
    failing = false;
    throw new IllegalStateException("this was asked for");
  }

  static KafkaSource<String> source(String[] args) {
    return KafkaSource.<String>builder()
        .setBootstrapServers(args[0])
        .setTopics(args[1])
        .setGroupId(args[3])
        .setStartingOffsets(OffsetsInitializer.earliest())
        .setValueOnlyDeserializer(new SimpleStringSchema())
        .setProperties(settings())
        .setProperty("max.poll.records", "10")
        .build();
  }

  static KafkaSink<String> sink(String[] args) {
    KafkaPartitioner<String> partitioner = (value, key, bytes, topic, all) -> Integer.parseInt(value) % all.length;
    var serializer =
        KafkaRecordSerializationSchema.<String>builder()
            .setTopic(args[2])
            .setPartitioner(partitioner)
            .setValueSerializationSchema(new SimpleStringSchema())
            .build();
    return KafkaSink.<String>builder()
        .setBootstrapServers(args[0])
        .setRecordSerializer(serializer)
        .setDeliveryGuarantee(DeliveryGuarantee.EXACTLY_ONCE)
        .setTransactionalIdPrefix(args[3])
        .setTransactionNamingStrategy(TransactionNamingStrategy.valueOf(args[5]))
        .setKafkaProducerConfig(settings())
        .setProperty("transaction.timeout.ms", "10000")
        .setProperty("delivery.timeout.ms", "9000")
        .build();
  }

  static Properties settings() {
    var settings = new Properties();
    settings.putAll(Map.of("request.timeout.ms", "2000", "retry.backoff.ms", "20", "reconnect.backoff.max.ms", "200"));
    settings.put("metadata.max.age.ms", "1000"); // a leader that the controller has lost says nothing of its successor
    return settings;
  }

  static Configuration configuration(Path directory) throws IOException {
    var settings = new Configuration();
    settings.setString("execution.checkpointing.interval", "100 ms");
    settings.setString("execution.checkpointing.dir", directory.toUri().toString());
    settings.setString("execution.checkpointing.externalized-checkpoint-retention", "RETAIN_ON_CANCELLATION");
    settings.setString("restart-strategy.type", "fixed-delay");
    settings.setString("restart-strategy.fixed-delay.attempts", "1000");
    settings.setString("restart-strategy.fixed-delay.delay", "50 ms");
    try (var files = Files.walk(directory)) {
      files
          .filter(each -> each.endsWith("_metadata"))
          .max(Comparator.comparing(each -> each.toFile().lastModified()))
          .ifPresent(each -> settings.setString("execution.state-recovery.path", each.getParent().toUri().toString()));
    }
    return settings;
  }
}
