package orders;

import java.util.Map;

/** The command line: {@code place ID QUANTITY ARTICLE | relay | ship}, and where the parts are. */
public final class Main {
  private static final long PAUSE_MS = 500;

  private Main() {}

  /**
   * Runs a part of the service; {@code relay} and {@code ship} go on until they are killed.
   *
   * @param arguments the brokers, a folder for the databases, the part, and what it needs
   */
  public static void main(String[] arguments) throws Exception {
    String bootstrap = arguments[0];
    String folder = "jdbc:h2:" + arguments[1];
    switch (arguments[2]) {
      case "place" ->
          new Outbox(folder + "/orders")
              .place(new Order(arguments[3], Integer.parseInt(arguments[4]), arguments[5]));
      case "relay" -> relay(new Outbox(folder + "/orders"), bootstrap);
      case "ship" -> {
        try (Shipping shipping =
            new Shipping(
                folder + "/shipments",
                bootstrap,
                Map.of(),
                order -> {},
                // H2 lets one process at a time into a database: it is opened when it is needed.
                (partition, from) -> new Outbox(folder + "/orders").sendAgain(partition, from))) {
          shipping.run();
        }
      }
      default -> throw new IllegalArgumentException(arguments[2]);
    }
  }

  private static void relay(Outbox outbox, String bootstrap) throws Exception {
    try (Relay relay = new Relay(outbox, bootstrap, Map.of())) {
      while (true) {
        relay.runOnce();
        Thread.sleep(PAUSE_MS);
      }
    }
  }
}
