import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.time.Duration;
import java.util.HexFormat;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Reads partition 0 from its beginning to its end, and prints how many records there were and the
 * SHA-256 of them all: offset (8 bytes), timestamp (8 bytes) and value of each. Arguments: bootstrap
 * servers, topic.
 */
public class DigestStory {
  public static void main(String[] args) throws Exception {
    Properties settings = new Properties();
    settings.put("bootstrap.servers", args[0]);
    TopicPartition partition = new TopicPartition(args[1], 0);
    MessageDigest digest = MessageDigest.getInstance("SHA-256");
    ByteArrayDeserializer bytes = new ByteArrayDeserializer();
    int count = 0;
    try (var consumer = new KafkaConsumer<byte[], byte[]>(settings, bytes, bytes)) {
      consumer.assign(List.of(partition));
      consumer.seekToBeginning(List.of(partition));
      long end = consumer.endOffsets(List.of(partition)).get(partition);
      while (consumer.position(partition) < end) {
        for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofSeconds(1))) {
          digest.update(ByteBuffer.allocate(16).putLong(record.offset()).putLong(record.timestamp()).flip());
          digest.update(record.value());
          count++;
        }
      }
    }
    System.out.println("records=" + count);
    System.out.println("sha256=" + HexFormat.of().formatHex(digest.digest()));
  }
}
