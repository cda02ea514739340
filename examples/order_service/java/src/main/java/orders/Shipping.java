package orders;

import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.LogTruncationException;
import org.apache.kafka.clients.consumer.OffsetOutOfRangeException;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** Shipping: a consumer that retries, writes dead letters, and ships each order once. */
public final class Shipping implements AutoCloseable, ConsumerRebalanceListener {
  static final String GROUP = "shipping";
  static final String DEAD_LETTERS = "orders.dead-letters";

  /** An order cannot be shipped, now or ever. */
  public static final class CannotShip extends RuntimeException {
    private static final long serialVersionUID = 1;

    public CannotShip(String reason) {
      super(reason);
    }
  }

  /** Does the work. */
  public interface Handler {
    /**
     * @throws CannotShip to be called again, until no retry is left
     */
    void ship(Order order) throws Exception;
  }

  /** Called when the log has lost records from an offset on that were read. */
  public interface LossListener {
    void onLost(int partition, long fromOffset) throws SQLException;
  }

  private static final Map<String, Object> CONSUMER =
      Map.of(
          "client.id", GROUP,
          "group.id", GROUP,
          // Committed after the order is handled, so that none is passed over.
          "enable.auto.commit", false,
          "max.poll.records", 1,
          // Lost records are an exception, instead of a silent jump to either end of the log.
          "auto.offset.reset", "none");
  private static final int RETRIES = 3;
  private static final String IS_SHIPPED = "SELECT 1 FROM shipments WHERE order_id = ?";

  private final String url;
  private final Handler handler;
  private final LossListener lossListener;
  private final Map<String, Object> settings;
  private final KafkaProducer<String, String> deadLetters;
  private KafkaConsumer<String, String> consumer;
  private volatile boolean stopping;

  /**
   * @param url of the database of shipments; its table is created if there is none
   * @param settings of the consumer, besides those that the service depends on
   */
  public Shipping(
      String url,
      String bootstrap,
      Map<String, Object> settings,
      Handler handler,
      LossListener lossListener)
      throws SQLException {
    this.url = url;
    this.handler = handler;
    this.lossListener = lossListener;
    try (Connection database = DriverManager.getConnection(url)) {
      String table =
          "CREATE TABLE IF NOT EXISTS shipments"
              + " (number IDENTITY PRIMARY KEY, order_id VARCHAR UNIQUE, article VARCHAR)";
      database.createStatement().execute(table);
    }
    deadLetters =
        new KafkaProducer<>(
            Map.of("bootstrap.servers", bootstrap, "client.id", "shipping-dead-letters"),
            new StringSerializer(),
            new StringSerializer());
    this.settings = new HashMap<>(settings);
    this.settings.putAll(CONSUMER);
    this.settings.put("bootstrap.servers", bootstrap);
    consumer = newConsumer();
  }

  /** Handles orders until {@link #stop} is called. */
  public void run() throws Exception {
    while (!stopping) {
      try {
        for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(100))) {
          handle(record);
          commit();
        }
      } catch (OffsetOutOfRangeException lost) {
        recover(lost);
      } catch (ApiException failed) {
        throw failed;
      } catch (KafkaException corrupt) {
        // What was fetched can't be read, and this consumer would keep it.
        consumer.close();
        consumer = newConsumer();
      }
    }
  }

  /** Lets {@link #run} end after the order that it handles. */
  public void stop() {
    stopping = true;
  }

  /** The ids of all orders that were shipped, in that order. */
  public List<String> shipped() throws SQLException {
    List<String> ids = new ArrayList<>();
    try (Connection database = DriverManager.getConnection(url);
        ResultSet rows =
            database
                .createStatement()
                .executeQuery("SELECT order_id FROM shipments ORDER BY number")) {
      while (rows.next()) {
        ids.add(rows.getString(1));
      }
    }
    return ids;
  }

  /** A partition of which nothing is committed is read from its beginning. */
  @Override
  public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
    var committed = consumer.committed(Set.copyOf(partitions));
    consumer.seekToBeginning(
        partitions.stream().filter(each -> committed.get(each) == null).toList());
  }

  @Override
  public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
    // Every order that was handled is committed already.
  }

  @Override
  public void close() {
    consumer.close();
    deadLetters.close();
  }

  private void handle(ConsumerRecord<String, String> record) throws Exception {
    RuntimeException reason = null;
    for (int attempt = 0; attempt <= RETRIES; attempt++) {
      try {
        shipOnce(Order.parse(record.key(), record.value()));
        return;
      } catch (CannotShip | IllegalArgumentException failed) {
        reason = failed;
      }
    }
    writeDeadLetter(record, reason);
  }

  /** Ships an order that was not shipped before; the database notes it, unless that fails. */
  private void shipOnce(Order order) throws Exception {
    try (Connection database = DriverManager.getConnection(url)) {
      database.setAutoCommit(false);
      PreparedStatement query = database.prepareStatement(IS_SHIPPED);
      query.setString(1, order.id());
      if (query.executeQuery().next()) {
        return;
      }
      String insert = "INSERT INTO shipments (order_id, article) VALUES (?, ?)";
      PreparedStatement update = database.prepareStatement(insert);
      update.setString(1, order.id());
      update.setString(2, order.article());
      update.executeUpdate();
      handler.ship(order);
      database.commit();
    }
  }

  /** Writes a dead letter, and waits until it is stored: the offset is committed next. */
  private void writeDeadLetter(ConsumerRecord<String, String> record, Exception reason)
      throws InterruptedException, ExecutionException {
    String origin = record.topic() + "-" + record.partition() + "@" + record.offset();
    var letter = new ProducerRecord<>(DEAD_LETTERS, record.key(), record.value());
    letter.headers().add("error", reason.getMessage().getBytes(StandardCharsets.UTF_8));
    letter.headers().add("origin", origin.getBytes(StandardCharsets.UTF_8));
    deadLetters.send(letter).get();
  }

  private void commit() {
    try {
      consumer.commitSync();
    } catch (KafkaException failed) {
      // The next commit covers it, or else the order is read again, and skipped.
      System.err.println("not committed: " + failed);
    }
  }

  /** Reports lost records, and goes on where the log parts from what was read. */
  private void recover(OffsetOutOfRangeException lost) throws SQLException {
    for (TopicPartition each : lost.partitions()) {
      var divergent =
          lost instanceof LogTruncationException truncation
              ? truncation.divergentOffsets().get(each)
              : null;
      if (divergent == null) {
        lossListener.onLost(each.partition(), 0);
        consumer.seekToBeginning(List.of(each));
      } else {
        lossListener.onLost(each.partition(), divergent.offset());
        consumer.seek(each, divergent.offset());
      }
    }
  }

  private KafkaConsumer<String, String> newConsumer() {
    var made = new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
    made.subscribe(List.of(Relay.TOPIC), this);
    return made;
  }
}
