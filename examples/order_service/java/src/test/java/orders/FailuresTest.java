package orders;

import static orders.Fencepost.field;
import static orders.Fencepost.fields;
import static orders.Fencepost.waitUntil;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.AfterTestExecutionCallback;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.io.TempDir;

/** Ten failures that an order service survives, made with fencepost's verbs and nothing else. */
class FailuresTest {
  static final Map<String, Object> QUICK =
      Map.of(
          "retry.backoff.ms", 10,
          "retry.backoff.max.ms", 50,
          "reconnect.backoff.ms", 10,
          "reconnect.backoff.max.ms", 50);
  static final List<String> IDS = List.of("17", "18", "19", "20", "21");
  static final String SHIPPING = "/v1/groups/shipping";
  static final String ORDERS = "/v1/topics/orders/partitions/0";

  static Fencepost fencepost;
  static ExecutorService threads;

  @RegisterExtension
  final AfterTestExecutionCallback report =
      context -> {
        if (context.getExecutionException().isPresent()) {
          System.out.println(context.getDisplayName() + "\n" + fencepost.timeline());
        }
      };

  @TempDir Path folder;
  Outbox outbox;
  Relay relay;

  @BeforeAll
  static void serve() throws Exception {
    fencepost = new Fencepost();
    threads = Executors.newCachedThreadPool();
  }

  @AfterAll
  static void end() throws Exception {
    threads.shutdown();
    fencepost.stop();
  }

  @BeforeEach
  void reset() throws Exception {
    fencepost.post(
        "/v1/reset",
        "{'topics': ['orders.dead-letters:1:3', {'name': 'orders', 'assignments': [[1, 2, 3]],"
            + " 'configs': {'min.insync.replicas': '2'}}]}");
    outbox = new Outbox("jdbc:h2:" + folder + "/orders;DB_CLOSE_DELAY=-1");
    relay = new Relay(outbox, fencepost.bootstrap, QUICK);
  }

  @AfterEach
  void close() {
    relay.close();
  }

  // -- the relay ------------------------------------------------------------------------------

  @Test
  void theLeaderIsKilledWhileTheRelaySends() throws Exception {
    placeAll();
    String unanswered =
        fencepost.addFault("'api': 'Produce', 'topic': 'orders', 'action': 'drop'");
    Future<Integer> sending = threads.submit(relay::runOnce);
    fencepost.waitForFault(unanswered);
    fencepost.post("/v1/brokers/1/kill", "{}");
    assertEquals(IDS.size(), sending.get());
    assertNotEquals("1", field(fencepost.get(ORDERS), "leader"));
    assertEquals(IDS, stored());
    assertEquals(List.of(), outbox.unsent());
  }

  @Test
  void anAcknowledgementIsLostAndTheOrderIsStoredOnce() throws Exception {
    outbox.place(new Order("17", 2, "fence posts"));
    fencepost.addFault("'api': 'Produce', 'topic': 'orders', 'action': {'disconnect': 'after'}");
    assertEquals(1, relay.runOnce());
    verify("'api': 'Produce', 'client_id': 'order-relay', 'count': 2");
    assertEquals(List.of("17"), stored());
  }

  @Test
  void ordersWaitInTheOutboxWhileReplicasAreMissing() throws Exception {
    fencepost.post("/v1/brokers/2/stop", "");
    fencepost.post("/v1/brokers/3/stop", "");
    placeAll();
    Future<Integer> sending = threads.submit(relay::runOnce);
    fencepost.get(
        "/v1/trace/wait?api=Produce&error=NOT_ENOUGH_REPLICAS&timeout_ms=" + Fencepost.TIMEOUT_MS);
    assertEquals(IDS.size(), outbox.unsent().size());
    assertEquals(List.of(), stored());
    fencepost.post("/v1/brokers/2/start", "");
    assertEquals(IDS.size(), sending.get());
    assertEquals(IDS, stored());
  }

  @Test
  void aThrottledBrokerDelaysTheRelayAndLosesNoOrder() throws Exception {
    fencepost.addFault("'api': 'Produce', 'topic': 'orders', 'action': {'throttle': 300}");
    outbox.place(new Order("17", 2, "fence posts"));
    assertEquals(1, relay.runOnce());
    outbox.place(new Order("18", 1, "gate"));
    assertEquals(1, relay.runOnce());
    assertEquals(300, relay.throttledMs());
    List<String> received =
        fields(fencepost.get("/v1/trace?api=Produce&client_id=order-relay"), "time_ms");
    assertTrue(Long.parseLong(received.get(1)) - Long.parseLong(received.get(0)) >= 300);
    assertEquals(List.of("17", "18"), stored());
  }

  // -- shipping -------------------------------------------------------------------------------

  @Test
  void aPoisonRecordBecomesADeadLetterAfterAllRetries() throws Exception {
    String records =
        "{'records': [{'key': '17', 'value': '2 posts'}, {'key': '18', 'value': '1 gate'},"
            + " {'key': '19', 'value': 'some posts'}]}";
    fencepost.post("/v1/topics/orders/records", records);
    List<String> attempts = new ArrayList<>();
    Shipping.Handler handler =
        order -> {
          attempts.add(order.id());
          if (order.id().equals("17")) {
            throw new Shipping.CannotShip("there is no such street");
          }
        };
    try (Started started = startShipping(handler)) {
      waitUntilHandled(3);
      assertEquals(List.of("18"), started.shipping.shipped());
    }
    assertEquals(List.of("17", "17", "17", "17", "18"), attempts);
    String letters = "/v1/topics/orders.dead-letters/records/expect";
    fencepost.post(
        letters,
        "{'key': '17', 'headers': {'origin': 'orders-0@0', 'error': 'there is no such street'}}");
    fencepost.post(letters, "{'key': '19', 'value': 'some posts'}");
  }

  @Test
  void theCoordinatorMovesWhileAnOrderIsHandled() throws Exception {
    List<String> handled = new ArrayList<>();
    Shipping.Handler handler =
        order -> {
          if (order.id().equals("18")) {
            int other = 1 + Integer.parseInt(field(fencepost.get(SHIPPING), "coordinator")) % 3;
            fencepost.post(SHIPPING + "/coordinator", "{'broker': " + other + "}");
          }
          handled.add(order.id());
        };
    placeAll();
    relay.runOnce();
    try (Started started = startShipping(handler)) {
      waitUntilHandled(IDS.size());
      assertEquals(IDS, started.shipping.shipped());
    }
    assertEquals(IDS, handled);
  }

  @Test
  void aConsumerIsKilledBetweenHandlingAndCommit() throws Exception {
    outbox.place(new Order("17", 2, "fence posts"));
    relay.runOnce();
    String pending =
        fencepost.addFault(
            "'api': 'OffsetCommit', 'group': 'shipping', 'action': {'delay': 600000}");
    Process process =
        new ProcessBuilder(
                ProcessHandle.current().info().command().orElseThrow(),
                "-cp", System.getProperty("java.class.path"),
                "orders.Main", fencepost.bootstrap, folder.toString(), "ship")
            .inheritIO()
            .start();
    try {
      fencepost.waitForFault(pending);
    } finally {
      process.destroyForcibly().waitFor();
    }
    String member = field(fencepost.get(SHIPPING), "member_id");
    fencepost.post(SHIPPING + "/members/" + member + "/remove", "");
    List<Order> handledAgain = new ArrayList<>();
    try (Started started = startShipping(handledAgain::add)) {
      waitUntilHandled(1);
      assertEquals(List.of("17"), started.shipping.shipped());
    }
    assertEquals(List.of(), handledAgain);
    verify("'api': 'OffsetCommit', 'group': 'shipping', 'count': 2");
  }

  @Test
  void rebalancesInARowLoseNoOrder() throws Exception {
    placeAll();
    try (Started first = startShipping(order -> {})) {
      waitForMembers(1);
      Future<Integer> sending = threads.submit(relay::runOnce);
      try (Started second = startShipping(order -> {})) {
        waitForMembers(2);
        for (int i = 0; i < 3; i++) {
          fencepost.post(SHIPPING + "/rebalance", "");
          waitForMembers(2);
        }
        assertEquals(IDS.size(), sending.get());
        waitUntil(() -> second.shipping.shipped().equals(IDS));
      }
      waitUntilHandled(IDS.size());
      assertEquals(IDS, first.shipping.shipped());
    }
  }

  @Test
  void aCorruptRecordIsFetchedAgain() throws Exception {
    placeAll();
    relay.runOnce();
    String corrupt =
        fencepost.addFault("'api': 'Fetch', 'client_id': 'shipping', 'action': 'corrupt'");
    try (Started started = startShipping(order -> {})) {
      waitUntilHandled(IDS.size());
      assertEquals(IDS, started.shipping.shipped());
    }
    assertEquals("1", field(fencepost.get(corrupt), "hits"));
  }

  @Test
  void ordersThatAnUncleanElectionLosesAreSentAgain() throws Exception {
    outbox.place(new Order("17", 2, "fence posts"));
    relay.runOnce();
    try (Started started = startShipping(order -> {})) {
      fencepost.post(ORDERS + "/replicas/3/hold", "{'leave_isr': true}");
      outbox.place(new Order("18", 1, "gate"));
      relay.runOnce();
      waitUntilHandled(2);
      String elected = fencepost.post(ORDERS + "/elect", "{'leader': 3, 'unclean': true}");
      assertEquals("1", field(elected, "committed_records"));
      waitUntil(() -> !outbox.unsent().isEmpty());
      waitUntil(() -> relay.runOnce() == 1);
      fencepost.post("/v1/topics/orders/records/expect", "{'key': '18'}");
      assertEquals(List.of("17", "18"), started.shipping.shipped());
    }
  }

  // -- what they share ------------------------------------------------------------------------

  /** A member of the group, on a thread; closed at the end of the block. */
  final class Started implements AutoCloseable {
    final Shipping shipping;
    private final CompletableFuture<Void> running;

    Started(Shipping shipping) {
      this.shipping = shipping;
      running = CompletableFuture.runAsync(this::run, threads);
    }

    private void run() {
      try (shipping) {
        shipping.run();
      } catch (Exception failed) {
        throw new CompletionException(failed);
      }
    }

    @Override
    public void close() {
      shipping.stop();
      running.join();
    }
  }

  Started startShipping(Shipping.Handler handler) throws Exception {
    String url = "jdbc:h2:" + folder + "/shipments;DB_CLOSE_DELAY=-1";
    Map<String, Object> settings = new HashMap<>(QUICK);
    settings.put("heartbeat.interval.ms", 50);
    return new Started(
        new Shipping(url, fencepost.bootstrap, settings, handler, outbox::sendAgain));
  }

  void placeAll() throws Exception {
    for (String id : IDS) {
      outbox.place(new Order(id, 2, "fence posts"));
    }
  }

  /** The keys of all records of the topic. */
  static List<String> stored() throws Exception {
    return fields(fencepost.get(ORDERS + "/records"), "key");
  }

  static void verify(String requests) throws Exception {
    fencepost.post("/v1/trace/verify", "{" + requests + "}");
  }

  static void waitForMembers(int count) throws Exception {
    fencepost.post(
        SHIPPING + "/wait",
        "{'members': " + count + ", 'timeout_ms': " + Fencepost.TIMEOUT_MS + "}");
  }

  /** Waits until the group has committed this offset. */
  static void waitUntilHandled(int offset) throws Exception {
    waitForMembers(1);
    waitUntil(() -> ("" + offset).equals(field(fencepost.get(SHIPPING), "committed_offset")));
  }
}
