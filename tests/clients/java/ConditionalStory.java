import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Scanner;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * An unmodified Java producer that says in a header what it expects, line by line; ../conditional.py says how it
 * is talked to. Argument: bootstrap servers.
 */
public class ConditionalStory {
  static final Map<String, KafkaProducer<String, String>> producers = new HashMap<>();

  public static void main(String[] args) throws Exception {
    System.out.println("ready");
    for (Scanner input = new Scanner(System.in); input.hasNextLine(); ) {
      String[] words = input.nextLine().split(" +");
      Map<String, String> options = new HashMap<>();
      for (String word : words) if (word.contains("=")) options.put(word.split("=")[0], word.split("=")[1]);
      var producer = producers.computeIfAbsent(words[0], id -> producer(args[0], id, options));
      List<Future<RecordMetadata>> sent = new ArrayList<>();
      for (int at = 2; at < words.length; at++)
        if (!words[at].contains("=")) sent.add(producer.send(record(words[1], words[at], options)));
      List<String> told = new ArrayList<>();
      for (Future<RecordMetadata> each : sent) told.add(told(each));
      System.out.println(String.join(" | ", told));
    }
    for (var each : producers.values()) each.close();
  }

  static KafkaProducer<String, String> producer(String bootstrap, String id, Map<String, String> options) {
    boolean alone = "one".equals(options.get("batch"));
    Properties settings = new Properties();
    settings.putAll(Map.of("bootstrap.servers", bootstrap, "client.id", id, "acks", "all"));
    settings.put("enable.idempotence", options.getOrDefault("idempotent", "false"));
    settings.put("linger.ms", alone ? "0" : "100");
    settings.put("batch.size", alone ? "0" : "16384");
    return new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
  }

  static ProducerRecord<String, String> record(String topic, String word, Map<String, String> options) {
    int slash = word.indexOf('/');
    String[] parts = word.substring(slash + 1).split("@");
    int partition = slash < 0 ? 0 : Integer.parseInt(word.substring(0, slash));
    var record = new ProducerRecord<String, String>(topic, partition, null, parts[0]);
    if (parts.length > 1) {
      boolean bytes = "bytes".equals(options.get("encoding"));
      record.headers().add("expected-offset", bytes
          ? ByteBuffer.allocate(8).putLong(Long.parseLong(parts[1])).array()
          : parts[1].getBytes(StandardCharsets.UTF_8));
    }
    return record;
  }

  static String told(Future<RecordMetadata> sent) throws Exception {
    try {
      return "" + sent.get(30, TimeUnit.SECONDS).offset();
    } catch (ExecutionException refused) {
      Throwable why = refused.getCause();
      return why.getClass().getSimpleName() + ": " + why.getMessage();
    }
  }
}
