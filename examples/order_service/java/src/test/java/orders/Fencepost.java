package orders;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.regex.Pattern;

/** A cluster for tests: the process, and its verbs over HTTP. */
final class Fencepost {
  /** For a machine that has much else to do. */
  static final int TIMEOUT_MS = 60_000;

  private final HttpClient http = HttpClient.newHttpClient();
  private final Process process;
  private final String control;
  final String bootstrap;

  /** Starts three brokers on free ports; they end with this process at the latest. */
  Fencepost() throws IOException {
    process =
        new ProcessBuilder(
                "fencepost", "serve", "--brokers", "3", "--port", "0", "--control-port", "0",
                "--stop-with-stdin", "--config", "group.initial.rebalance.delay.ms=0")
            .redirectError(ProcessBuilder.Redirect.DISCARD)
            .start();
    String ready = process.inputReader().readLine();
    bootstrap = field(ready, "bootstrap");
    control = field(ready, "control");
  }

  void stop() throws InterruptedException {
    process.destroy();
    process.waitFor();
  }

  String get(String path) throws Exception {
    return ask("GET", path, "");
  }

  String post(String path, String body) throws Exception {
    return ask("POST", path, body.replace('\'', '"'));
  }

  /** Adds a fault, such as {@code 'api': 'Produce', 'action': 'drop'}; its path. */
  String addFault(String body) throws Exception {
    return "/v1/faults/" + field(post("/v1/faults", "{" + body + "}"), "id");
  }

  /** Waits until a fault has a hit. */
  void waitForFault(String path) throws Exception {
    get(path + "/wait?timeout_ms=" + TIMEOUT_MS);
  }

  /** What happened, a line each: what a test prints when it fails. */
  String timeline() throws Exception {
    StringBuilder text = new StringBuilder();
    var lines = Pattern.compile("\"text\": *\"((?:[^\"\\\\]|\\\\.)*)\"").matcher(get("/v1/timeline"));
    while (lines.find()) {
      text.append(lines.group(1)).append('\n');
    }
    return text.toString();
  }

  private String ask(String method, String path, String body) throws Exception {
    HttpRequest request =
        HttpRequest.newBuilder(URI.create(control + path))
            .header("Content-Type", "application/json")
            .method(method, HttpRequest.BodyPublishers.ofString(body))
            .build();
    HttpResponse<String> answer = http.send(request, HttpResponse.BodyHandlers.ofString());
    if (answer.statusCode() != 200) {
      throw new AssertionError(method + " " + path + ": " + answer.body());
    }
    return answer.body();
  }

  /** The first field of a name. */
  static String field(String json, String name) {
    return fields(json, name).stream().findFirst().orElse(null);
  }

  /** All fields of a name. A project that has a JSON library takes that. */
  static List<String> fields(String json, String name) {
    return Pattern.compile("\"" + name + "\": *(\"[^\"]*\"|[^,}\\]]*)")
        .matcher(json)
        .results()
        .map(found -> found.group(1).replace("\"", ""))
        .toList();
  }

  /** Asks again until it holds. */
  static void waitUntil(Callable<Boolean> holds) throws Exception {
    long deadline = System.nanoTime() + TIMEOUT_MS * 1_000_000L;
    while (!holds.call()) {
      if (System.nanoTime() > deadline) {
        throw new AssertionError("not within " + TIMEOUT_MS + " ms");
      }
      Thread.sleep(5);
    }
  }
}
