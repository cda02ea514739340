import java.io.File;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.Callable;

/**
 * Runs VersionSteps with the classes of each kafka-clients jar of a folder, in one JVM. Arguments:
 * the bootstrap servers, the folder, and how the topics' names begin.
 */
public class VersionStory {
  public static void main(String[] args) throws Exception {
    List<URL> logging = new ArrayList<>();
    URL steps = null;
    for (String entry : System.getProperty("java.class.path").split(File.pathSeparator)) {
      URL url = Path.of(entry).toUri().toURL();
      if (entry.contains("slf4j-api")) logging.add(url);
      if (Files.isDirectory(Path.of(entry))) steps = url;
    }
    ClassLoader parent =
        new URLClassLoader(logging.toArray(URL[]::new), ClassLoader.getPlatformClassLoader());
    File[] jars = new File(args[1]).listFiles();
    Arrays.sort(jars);
    for (File jar : jars) run(jar.toPath(), new URL[] {jar.toURI().toURL(), steps}, parent, args);
    System.exit(0); // threads of clients that could not be closed
  }

  static void run(Path jar, URL[] urls, ClassLoader parent, String[] args) throws Exception {
    String version = jar.getFileName().toString().replaceAll("kafka-clients-|[.]jar", "");
    ClassLoader loader = new URLClassLoader(urls, parent);
    Thread.currentThread().setContextClassLoader(loader);
    Class<?> type = loader.loadClass("VersionSteps");
    Object steps =
        type.getConstructor(String.class, String.class).newInstance(args[0], args[2] + version);
    for (Object line : (List<?>) ((Callable<?>) steps).call()) {
      System.out.println(version + " " + line);
    }
  }
}
