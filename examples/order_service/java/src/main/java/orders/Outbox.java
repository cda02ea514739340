package orders;

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;

/**
 * The transactional outbox: an order and the message about it are committed together, or not.
 *
 * <p>Messages stay after they were sent, because Kafka may lose what it has acknowledged.
 */
public final class Outbox {
  /** A message that Kafka has not acknowledged yet. */
  record Message(long number, String orderId, String payload) {}

  private static final String ORDERS =
      "CREATE TABLE IF NOT EXISTS orders (id VARCHAR PRIMARY KEY, article VARCHAR NOT NULL)";
  // The offset is null until Kafka has acknowledged the message.
  private static final String MESSAGES =
      "CREATE TABLE IF NOT EXISTS outbox (number IDENTITY PRIMARY KEY,"
          + " order_id VARCHAR NOT NULL UNIQUE, payload VARCHAR NOT NULL,"
          + " sent_partition INT, sent_offset BIGINT)";
  private static final String ADD_ORDER = "INSERT INTO orders VALUES (?, ?)";
  private static final String ADD_MESSAGE = "INSERT INTO outbox (order_id, payload) VALUES (?, ?)";
  private static final String UNSENT =
      "SELECT number, order_id, payload FROM outbox"
          + " WHERE sent_offset IS NULL ORDER BY number LIMIT 100";
  private static final String MARK_SENT =
      "UPDATE outbox SET sent_partition = ?, sent_offset = ? WHERE number = ?";
  private static final String SEND_AGAIN =
      "UPDATE outbox SET sent_partition = NULL, sent_offset = NULL"
          + " WHERE sent_partition = ? AND sent_offset >= ?";

  private final String url;

  /** Opens the database; its tables are created if there are none. */
  public Outbox(String url) throws SQLException {
    this.url = url;
    try (Connection database = DriverManager.getConnection(url)) {
      database.createStatement().execute(ORDERS);
      database.createStatement().execute(MESSAGES);
    }
  }

  /** Takes an order. No broker is needed for it. */
  public void place(Order order) throws SQLException {
    try (Connection database = DriverManager.getConnection(url)) {
      database.setAutoCommit(false);
      update(database, ADD_ORDER, order.id(), order.article());
      update(database, ADD_MESSAGE, order.id(), order.value());
      database.commit();
    }
  }

  /** The first messages that are to be sent, in their order. */
  public List<Message> unsent() throws SQLException {
    List<Message> messages = new ArrayList<>();
    try (Connection database = DriverManager.getConnection(url);
        PreparedStatement query = database.prepareStatement(UNSENT);
        ResultSet rows = query.executeQuery()) {
      while (rows.next()) {
        messages.add(new Message(rows.getLong(1), rows.getString(2), rows.getString(3)));
      }
    }
    return messages;
  }

  /** Notes where Kafka has stored a message. */
  void markSent(Message message, int partition, long offset) throws SQLException {
    try (Connection database = DriverManager.getConnection(url)) {
      update(database, MARK_SENT, partition, offset, message.number());
    }
  }

  /** Makes messages unsent that Kafka had stored at this offset or a later one. */
  public void sendAgain(int partition, long fromOffset) throws SQLException {
    try (Connection database = DriverManager.getConnection(url)) {
      update(database, SEND_AGAIN, partition, fromOffset);
    }
  }

  private static void update(Connection database, String sql, Object... values)
      throws SQLException {
    try (PreparedStatement statement = database.prepareStatement(sql)) {
      for (int i = 0; i < values.length; i++) {
        statement.setObject(i + 1, values[i]);
      }
      statement.executeUpdate();
    }
  }
}
