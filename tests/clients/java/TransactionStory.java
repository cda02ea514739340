import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * A transactional producer: it commits and aborts transactions in turn, one record in each of the
 * topic's partitions, and is fenced by a second one in the middle of the last. Arguments: bootstrap
 * servers, topic, partitions, transactional id, how many transactions.
 */
public class TransactionStory {
  public static void main(String[] args) throws Exception {
    int partitions = Integer.parseInt(args[2]);
    try (var producer = producer(args); var successor = producer(args)) {
      producer.initTransactions();
      for (int number = 0; number < Integer.parseInt(args[4]); number++) {
        producer.beginTransaction();
        for (int partition = 0; partition < partitions; partition++) {
          producer.send(new ProducerRecord<>(args[1], partition, "k", number + "-" + partition));
        }
        if (number % 2 == 0) {
          producer.commitTransaction();
        } else {
          producer.abortTransaction();
        }
      }
      producer.beginTransaction();
      producer.send(new ProducerRecord<>(args[1], 0, "k", "zombie")).get();
      successor.initTransactions();
      try {
        producer.commitTransaction();
        System.out.println("committed");
      } catch (ProducerFencedException fenced) {
        System.out.println("fenced");
      }
    }
    try (var admin = Admin.create(Map.of("bootstrap.servers", args[0]))) {
      var described = admin.describeTransactions(List.of(args[3])).description(args[3]).get();
      System.out.println(described.state());
      admin.fenceProducers(List.of(args[3])).all().get();
      var fenced = admin.describeTransactions(List.of(args[3])).description(args[3]).get();
      System.out.println(fenced.producerEpoch() - described.producerEpoch());
    }
  }

  static KafkaProducer<String, String> producer(String[] args) {
    var serializer = new StringSerializer();
    var settings = Map.<String, Object>of("bootstrap.servers", args[0], "transactional.id", args[3]);
    return new KafkaProducer<>(settings, serializer, serializer);
  }
}
