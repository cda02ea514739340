import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Scanner;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.errors.FencedInstanceIdException;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * An application that copies a topic in transactions, line by line; ../copier.py says how it is talked to.
 * Arguments: bootstrap servers, source, target, how many records the source has, name.
 */
public class CopierStory {
  final String[] args;
  final KafkaConsumer<String, String> consumer;
  KafkaProducer<String, String> producer;

  public static void main(String[] args) {
    var copier = new CopierStory(args);
    for (Scanner lines = new Scanner(System.in); lines.hasNextLine(); ) {
      String answer = "copied";
      try {
        copier.copy(Integer.parseInt(lines.nextLine().split(" ")[1]));
      } catch (ProducerFencedException | FencedInstanceIdException fenced) {
        answer = "fenced";
      }
      System.out.println(answer);
    }
  }

  CopierStory(String[] args) {
    this.args = args;
    Map<String, Object> settings = settings();
    settings.putAll(Map.of("group.id", args[4], "group.instance.id", args[4], "auto.offset.reset", "earliest"));
    settings.putAll(Map.of("enable.auto.commit", "false", "isolation.level", "read_committed"));
    settings.putAll(Map.of("max.poll.records", "10", "fetch.max.wait.ms", "50"));
    consumer = new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
    consumer.subscribe(List.of(args[1]));
    start();
  }

  void copy(int transactions) {
    while (transactions > 0 && !isAtEnd()) {
      var records = consumer.poll(Duration.ofMillis(100));
      if (records.isEmpty()) continue;
      try {
        copy(records);
        transactions--;
      } catch (KafkaException refused) {
        check(refused);
        giveUp();
      }
    }
  }

  void copy(ConsumerRecords<String, String> records) {
    producer.beginTransaction();
    for (var record : records) producer.send(new ProducerRecord<>(args[2], record.partition(), null, record.value()));
    producer.sendOffsetsToTransaction(records.nextOffsets(), consumer.groupMetadata());
    producer.commitTransaction();
  }

  boolean isAtEnd() {
    long sum = 0;
    try {
      for (var partition : consumer.assignment()) sum += consumer.position(partition);
    } catch (KafkaException refused) {
      check(refused);
      return false;
    }
    return sum == Long.parseLong(args[3]);
  }

  /** Aborts the transaction, and goes back to what is committed. */
  void giveUp() {
    try {
      producer.abortTransaction();
    } catch (KafkaException refused) {
      check(refused);
      producer.close(Duration.ZERO);
      start();
    }
    while (true) {
      try {
        consumer.committed(consumer.assignment()).forEach(
            (partition, committed) -> consumer.seek(partition, committed == null ? 0 : committed.offset()));
        return;
      } catch (KafkaException refused) {
        check(refused);
      }
    }
  }

  void start() {
    while (true) {
      Map<String, Object> settings = settings();
      settings.putAll(Map.of("transactional.id", args[4], "linger.ms", "0", "max.block.ms", "120000"));
      settings.putAll(Map.of("delivery.timeout.ms", "120000", "transaction.timeout.ms", "5000"));
      producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
      try {
        producer.initTransactions();
        return;
      } catch (KafkaException refused) {
        check(refused);
        producer.close(Duration.ZERO);
      }
    }
  }

  /** Goes on, unless another has its name. */
  static void check(KafkaException refused) {
    System.err.println(refused);
    if (refused instanceof ProducerFencedException || refused instanceof FencedInstanceIdException) throw refused;
    if (refused.getCause() instanceof ProducerFencedException cause) throw cause;
    if (refused.getCause() instanceof FencedInstanceIdException cause) throw cause;
  }

  Map<String, Object> settings() {
    Map<String, Object> settings = new HashMap<>(Map.of("bootstrap.servers", args[0], "request.timeout.ms", "2000"));
    settings.putAll(Map.of("retry.backoff.ms", "20", "reconnect.backoff.max.ms", "200"));
    // A leader that is cut off from the controller goes on answering: only metadata name its successor.
    settings.put("metadata.max.age.ms", "2000");
    return settings;
  }
}
