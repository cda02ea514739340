import java.util.HashMap;
import java.util.Map;
import java.util.Scanner;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

/** Transactional producers that do what they are told, line by line; ../transactors.py says how they are talked to. */
public class TransactorStory {
  static final Map<String, KafkaProducer<String, String>> producers = new HashMap<>();

  public static void main(String[] args) {
    System.out.println("ready");
    for (Scanner lines = new Scanner(System.in); lines.hasNextLine(); ) {
      String answer = "done";
      try {
        obey(lines.nextLine().split(" "));
      } catch (ExecutionException refused) {
        answer = refused.getCause().getClass().getSimpleName();
      } catch (Exception refused) {
        answer = refused.getClass().getSimpleName();
      }
      System.out.println(answer);
    }
  }

  static void obey(String[] words) throws Exception {
    var producer = producers.get(words[0]);
    switch (words[1]) {
      case "init" -> {
        var serializer = new StringSerializer();
        Map<String, Object> settings = new HashMap<>(Map.of("bootstrap.servers", words[2], "transactional.id", words[3]));
        settings.putAll(Map.of("transaction.timeout.ms", words[4], "linger.ms", "0"));
        settings.putAll(Map.of("retry.backoff.ms", "20", "reconnect.backoff.max.ms", "100"));
        producer = new KafkaProducer<>(settings, serializer, serializer);
        producers.put(words[0], producer);
        producer.initTransactions();
      }
      case "begin" -> producer.beginTransaction();
      case "send" -> producer.send(new ProducerRecord<>(words[2], 0, null, words[3])).get();
      case "commit" -> producer.commitTransaction();
      case "abort" -> producer.abortTransaction();
      default -> throw new IllegalArgumentException(words[1]);
    }
  }
}
