import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Scanner;
import java.util.concurrent.Semaphore;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Materialized;

/**
 * A Kafka Streams application that counts words in a state store. It counts as many as the lines of its input say
 * ("count 40"). With one more at hand it says "waits": its transaction is open then. It ends with its input.
 * Arguments: bootstrap servers, source, target, application id, directory of its state, and more settings as key=value.
 */
public class WordCountStory {
  static final Semaphore allowed = new Semaphore(0);

  public static void main(String[] args) {
    var streams = new KafkaStreams(topology(args[1], args[2]), settings(args));
    streams.setUncaughtExceptionHandler(error -> StreamThreadExceptionResponse.REPLACE_THREAD);
    streams.start();
    for (Scanner lines = new Scanner(System.in); lines.hasNextLine(); )
      allowed.release(Integer.parseInt(lines.nextLine().split(" ")[1]));
    streams.close(Duration.ofMinutes(1));
  }

  static Topology topology(String source, String target) {
    var builder = new StreamsBuilder();
    builder
        .<String, String>stream(source)
        .flatMapValues(line -> List.of(line.split(" ")))
        .groupBy((key, word) -> word)
        .count(Materialized.as("counts"))
        .toStream()
        .peek((word, count) -> take())
        .mapValues((word, count) -> word + " " + count)
        .to(target);
    return builder.build();
  }

  static void take() {
    if (allowed.tryAcquire()) return;
    System.out.println("waits");
    allowed.acquireUninterruptibly();
  }

  static Properties settings(String[] args) {
    var settings = new Properties();
    settings.putAll(Map.of("bootstrap.servers", args[0], "application.id", args[3], "state.dir", args[4]));
    for (String each : List.of("default.key.serde", "default.value.serde")) settings.put(each, Serdes.StringSerde.class);
    settings.putAll(Map.of("statestore.cache.max.bytes", "0", "commit.interval.ms", "50", "poll.ms", "20"));
    settings.put("metadata.max.age.ms", "1000"); // a leader that the controller has lost says nothing of its successor
    settings.putAll(Map.of("request.timeout.ms", "2000", "producer.delivery.timeout.ms", "120000"));
    settings.putAll(Map.of("retry.backoff.ms", "20", "reconnect.backoff.max.ms", "200", "replication.factor", "3"));
    for (String each : List.of(args).subList(5, args.length)) settings.put(each.split("=")[0], each.split("=")[1]);
    return settings;
  }
}
