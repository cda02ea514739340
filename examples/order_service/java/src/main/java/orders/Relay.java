package orders;

import java.sql.SQLException;
import java.time.Duration;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Sends what stands in the outbox to Kafka, in the order of the outbox.
 *
 * <p>A message whose acknowledgement is not noted is sent again: consumers skip what they have
 * handled already.
 */
public final class Relay implements AutoCloseable {
  static final String TOPIC = "orders";
  private static final Map<String, Object> SETTINGS =
      Map.of(
          "client.id", "order-relay",
          // A retry after a lost acknowledgement is stored once, and retries keep the order.
          "enable.idempotence", true,
          // Every in-sync replica; the topic's min.insync.replicas says how many these must be.
          "acks", "all",
          "linger.ms", 0);

  private final Outbox outbox;
  private final KafkaProducer<String, String> producer;

  /**
   * @param settings of the producer, besides those that the service depends on
   */
  public Relay(Outbox outbox, String bootstrap, Map<String, Object> settings) {
    this.outbox = outbox;
    Map<String, Object> all = new HashMap<>(settings);
    all.putAll(SETTINGS);
    all.put("bootstrap.servers", bootstrap);
    producer = new KafkaProducer<>(all, new StringSerializer(), new StringSerializer());
  }

  /**
   * Sends all unsent messages, and waits for their acknowledgements. What is not acknowledged
   * within {@code delivery.timeout.ms} stays in the outbox.
   *
   * @return the number of acknowledged messages
   */
  public int runOnce() throws SQLException, InterruptedException {
    Map<Outbox.Message, Future<RecordMetadata>> sent = new LinkedHashMap<>();
    for (Outbox.Message each : outbox.unsent()) {
      sent.put(each, producer.send(new ProducerRecord<>(TOPIC, each.orderId(), each.payload())));
    }
    int acknowledged = 0;
    for (var each : sent.entrySet()) {
      try {
        RecordMetadata stored = each.getValue().get();
        outbox.markSent(each.getKey(), stored.partition(), stored.offset());
        acknowledged++;
      } catch (ExecutionException failed) {
        System.err.println(each.getKey() + " stays in the outbox: " + failed.getCause());
      }
    }
    return acknowledged;
  }

  /** For how long brokers have delayed the relay at most: a sign of a quota that is too low. */
  public double throttledMs() {
    return producer.metrics().values().stream()
        .filter(metric -> metric.metricName().name().equals("produce-throttle-time-max"))
        .mapToDouble(metric -> (double) metric.metricValue())
        .max()
        .orElse(0);
  }

  /** Forgets what is in flight: it stands in the outbox. */
  @Override
  public void close() {
    producer.close(Duration.ZERO);
  }
}
