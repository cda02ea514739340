import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.util.Arrays;
import java.util.Base64;
import org.apache.kafka.common.utils.Exit;

/**
 * Runs Kafka's tools, each to its end, one after the other: a JVM that has loaded them already is
 * much quicker than a new one. A line of input is a class and its arguments, a line of output the
 * exit code, standard output and standard error; each word is in Base64.
 *
 * <p>A tool ends by Kafka's own Exit, whose procedure is another one here, as in Kafka's own tests.
 */
public class ToolRunner {
  static class Ended extends Error {}

  static Integer code;

  public static void main(String[] none) throws Exception {
    BufferedReader input = new BufferedReader(new InputStreamReader(System.in, UTF_8));
    PrintStream output = System.out;
    Exit.setExitProcedure((status, message) -> end(status));
    Exit.setHaltProcedure((status, message) -> end(status));
    output.println("ready");
    for (String line; (line = input.readLine()) != null; ) {
      String[] words = line.split(" ", -1);
      for (int i = 0; i < words.length; i++) {
        words[i] = new String(Base64.getDecoder().decode(words[i]), UTF_8);
      }
      output.println(run(words[0], Arrays.copyOfRange(words, 1, words.length)));
    }
    System.exit(0); // threads that a tool left
  }

  static void end(int status) {
    if (code == null) code = status;
    throw new Ended();
  }

  static String run(String tool, String[] arguments) throws Exception {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    ByteArrayOutputStream err = new ByteArrayOutputStream();
    System.setIn(InputStream.nullInputStream());
    System.setOut(new PrintStream(out, true, UTF_8));
    System.setErr(new PrintStream(err, true, UTF_8));
    code = null;
    try {
      Class.forName(tool).getMethod("main", String[].class).invoke(null, (Object) arguments);
    } catch (InvocationTargetException thrown) {
      if (!(thrown.getCause() instanceof Ended)) {
        thrown.getCause().printStackTrace();
        if (code == null) code = 1;
      }
    }
    System.out.flush();
    System.err.flush();
    return encoded(code == null ? 0 : code) + " " + encoded(out) + " " + encoded(err);
  }

  static String encoded(Object text) {
    return Base64.getEncoder().encodeToString(text.toString().getBytes(UTF_8));
  }
}
