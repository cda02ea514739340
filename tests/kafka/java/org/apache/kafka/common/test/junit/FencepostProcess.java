package org.apache.kafka.common.test.junit;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.HttpURLConnection;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/**
 * A served fencepost, which may serve one test after the other. Its output goes to files: a test
 * that finds a new thread in its JVM fails, and what read a pipe would be one.
 */
final class FencepostProcess {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final long READY_MS = 60_000;
    private static final int ANSWER_MS = 60_000;
    private static final long STOP_S = 20;

    /** That of the last test, which the next one has if it wants the same options. */
    private static FencepostProcess spare;

    private final List<String> options;
    private final Path folder;
    private final Process process;
    private final JsonNode ready;
    private int resets;

    /**
     * Returns when every listener accepts, and nothing is there of tests before.
     *
     * @param options of {@code fencepost serve}.
     */
    static FencepostProcess start(List<String> options) {
        try {
            FencepostProcess last = spare;
            spare = null;
            if (last != null && last.options.equals(options)) {
                last.reset();
                return last;
            }
            if (last != null) {
                last.stop();
            }
            return new FencepostProcess(options);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        } catch (InterruptedException error) {
            throw new IllegalStateException("interrupted before fencepost had started", error);
        }
    }

    private FencepostProcess(List<String> options) throws IOException, InterruptedException {
        this.options = options;
        folder = Files.createTempDirectory("fencepost-");
        List<String> command = new ArrayList<>(List.of(System.getProperty("fencepost.python")));
        command.addAll(List.of("-m", "fencepost", "serve", "--stop-with-stdin"));
        command.addAll(List.of("--port", "0", "--control-port", "0", "--controller-port", "0"));
        command.addAll(options);
        process = new ProcessBuilder(command)
                .redirectOutput(folder.resolve("out").toFile())
                .redirectError(folder.resolve("log").toFile())
                .start();
        ready = awaitReady();
    }

    private void reset() throws IOException, InterruptedException {
        process.getOutputStream().write("reset\n".getBytes());
        process.getOutputStream().flush();
        resets++;
        awaitReady();
    }

    /** The line that it prints when it has started, and after each reset. */
    private JsonNode awaitReady() throws IOException, InterruptedException {
        Path out = folder.resolve("out");
        long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(READY_MS);
        while (System.nanoTime() < deadline && process.isAlive()) {
            String[] lines = Files.readString(out).split("\n", -1);
            if (lines.length > resets + 1) {
                return JSON.readTree(lines[resets]);
            }
            Thread.sleep(10);
        }
        String log = Files.readString(folder.resolve("log"));
        stop();
        throw new IllegalStateException("fencepost did not start: " + log.strip());
    }

    /** {@code host:port} of each broker, by their ids' order. */
    String bootstrap() {
        return ready.get("bootstrap").asText();
    }

    /** {@code host:port} of the controller, for tools. */
    String controllers() {
        return ready.get("controller").asText();
    }

    /** Asks the control API; throws on any answer that is no success. */
    JsonNode ask(String method, String path) {
        try {
            URI address = URI.create(ready.get("control").asText() + path);
            HttpURLConnection connection = (HttpURLConnection) address.toURL().openConnection();
            connection.setRequestMethod(method);
            connection.setReadTimeout(ANSWER_MS);
            if (connection.getResponseCode() != 200) {
                throw new IOException(path + ": " + text(connection.getErrorStream()));
            }
            return JSON.readTree(text(connection.getInputStream()));
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    private static String text(InputStream stream) throws IOException {
        try (stream) {
            return new String(stream.readAllBytes());
        }
    }

    /** Keeps it for the next test. */
    void release() {
        spare = this;
    }

    /** Ends the process and removes its files. */
    private void stop() {
        process.destroy();
        try {
            if (!process.waitFor(STOP_S, TimeUnit.SECONDS)) {
                process.destroyForcibly().waitFor();
            }
            try (Stream<Path> files = Files.walk(folder)) {
                for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
                    Files.delete(file);
                }
            }
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        } catch (InterruptedException error) {
            process.destroyForcibly();
            Thread.currentThread().interrupt();
        }
    }
}
