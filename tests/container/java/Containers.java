import java.util.ArrayList;
import java.util.List;
import org.testcontainers.containers.GenericContainer;
import org.testcontainers.containers.wait.strategy.Wait;

/** The example of docs/containers.md, with an image, a first port, and a command to run meanwhile. */
class Containers {
// EXAMPLE

  public static void main(String[] arguments) throws Exception {
    int firstPort = Integer.parseInt(arguments[0]);
    try (GenericContainer<?> kafka = kafka(3, firstPort)) {
      kafka.start();
      System.out.println("http://localhost:" + kafka.getMappedPort(9644));
      List<String> command = List.of(arguments).subList(1, arguments.length);
      new ProcessBuilder(command).inheritIO().start().waitFor();
    }
  }
}
