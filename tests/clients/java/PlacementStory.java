import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import java.util.Scanner;
import java.util.stream.Collectors;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.errors.InvalidReplicationFactorException;
import org.apache.kafka.metadata.placement.ClusterDescriber;
import org.apache.kafka.metadata.placement.PlacementSpec;
import org.apache.kafka.metadata.placement.StripedReplicaPlacer;
import org.apache.kafka.metadata.placement.UsableBroker;

/**
 * Where Kafka's placer places replicas. A line of input is what is drawn, partitions, replication factor and
 * the brokers as id:rack:fenced; a line of output the replicas of each partition, or the error.
 */
public class PlacementStory {
  /** Draws the same number always, so that the order in which racks are asked for does not matter. */
  static class Constant extends Random {
    final int drawn;

    Constant(int drawn) {
      this.drawn = drawn;
    }

    @Override
    public int nextInt(int bound) {
      return drawn % bound;
    }
  }

  record Described(List<UsableBroker> brokers) implements ClusterDescriber {
    @Override
    public Iterator<UsableBroker> usableBrokers() {
      return brokers.iterator();
    }

    @Override
    public Uuid defaultDir(int brokerId) {
      return Uuid.ZERO_UUID;
    }
  }

  public static void main(String[] none) {
    for (Scanner input = new Scanner(System.in); input.hasNextLine(); ) {
      String[] words = input.nextLine().split(" ");
      List<UsableBroker> brokers = new ArrayList<>();
      for (String broker : words[3].split(",")) {
        String[] parts = broker.split(":");
        Optional<String> rack = parts[1].equals("-") ? Optional.empty() : Optional.of(parts[1]);
        brokers.add(new UsableBroker(Integer.parseInt(parts[0]), rack, parts[2].equals("fenced")));
      }
      var placer = new StripedReplicaPlacer(new Constant(Integer.parseInt(words[0])));
      var wanted = new PlacementSpec(0, Integer.parseInt(words[1]), Short.parseShort(words[2]));
      try {
        var placed = placer.place(wanted, new Described(brokers)).assignments().stream();
        System.out.println(placed.map(p -> joined(p.replicas(), ",")).collect(Collectors.joining(" ")));
      } catch (InvalidReplicationFactorException error) {
        System.out.println(error.getMessage());
      }
    }
  }

  static String joined(List<Integer> ids, String between) {
    return ids.stream().map(String::valueOf).collect(Collectors.joining(between));
  }
}
