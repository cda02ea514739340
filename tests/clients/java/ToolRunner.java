import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import org.apache.kafka.common.utils.Exit;

/**
 * Runs Kafka's tools, one after the other: a JVM that has loaded them already is much quicker than
 * a new one. A line of input is the tool's standard input, the number of lines after which it is
 * told to end (0: it ends by itself), its main class and its arguments; a line of output the exit
 * code, standard output and standard error. Each word is in Base64.
 *
 * <p>A tool ends by Kafka's own Exit, whose procedures are others here, as in Kafka's own tests.
 * What it asks to be done when its JVM ends is done when it ends.
 */
public class ToolRunner {
  static class Ended extends Error {}

  static final long END_NS = 20_000_000_000L;
  static final List<Runnable> hooks = new ArrayList<>();

  public static void main(String[] none) throws Exception {
    BufferedReader input = new BufferedReader(new InputStreamReader(System.in, UTF_8));
    PrintStream output = System.out;
    Exit.setExitProcedure((status, message) -> end(status));
    Exit.setHaltProcedure((status, message) -> end(status));
    Exit.setShutdownHookAdder(
        (name, hook) -> {
          synchronized (hooks) {
            hooks.add(hook);
          }
        });
    System.setOut(new PrintStream(new Switch(tool -> tool.out), true, UTF_8));
    System.setErr(new PrintStream(new Switch(tool -> tool.err), true, UTF_8));
    output.println("ready");
    for (String line; (line = input.readLine()) != null; ) {
      String[] words = line.split(" ", -1);
      for (int i = 0; i < words.length; i++) {
        words[i] = new String(Base64.getDecoder().decode(words[i]), UTF_8);
      }
      System.setIn(new ByteArrayInputStream(words[0].getBytes(UTF_8)));
      Tool tool = new Tool(words[2], Arrays.copyOfRange(words, 3, words.length));
      tool.run(Integer.parseInt(words[1]));
      output.println(encoded(tool.code) + " " + encoded(tool.out) + " " + encoded(tool.err));
    }
    System.exit(0); // threads that a tool left
  }

  static void end(int status) {
    Tool tool = Tool.current();
    if (tool != null) tool.ended(status);
    throw new Ended();
  }

  static String encoded(Object text) {
    return Base64.getEncoder().encodeToString(text.toString().getBytes(UTF_8));
  }

  /** One run of a tool: its threads, and what they print. */
  static class Tool extends ThreadGroup {
    final Output out = new Output();
    final Output err = new Output();
    final String[] arguments;
    volatile int code;
    boolean ended;

    Tool(String main, String[] arguments) {
      super(main);
      this.arguments = arguments;
    }

    /** The one that this thread belongs to, or null. */
    static Tool current() {
      ThreadGroup group = Thread.currentThread().getThreadGroup();
      while (group != null && !(group instanceof Tool)) group = group.getParent();
      return (Tool) group;
    }

    /** Its first exit counts; a tool that catches every Throwable must not report it. */
    synchronized void ended(int status) {
      if (!ended) code = status;
      ended = true;
      out.closed = true;
      err.closed = true;
    }

    void run(int lines) throws Exception {
      Thread thread = new Thread(this, this::call, "main");
      thread.start();
      while (thread.isAlive() && (lines == 0 || out.lines < lines)) {
        thread.join(5);
      }
      Thread last = new Thread(this, () -> taken().forEach(Runnable::run), "shutdown");
      last.start();
      last.join();
      if (lines == 0) await();
      out.closed = true;
      err.closed = true;
      thread.interrupt();
    }

    void call() {
      try {
        Class.forName(getName()).getMethod("main", String[].class).invoke(null, (Object) arguments);
      } catch (InvocationTargetException thrown) {
        if (thrown.getCause() instanceof Ended) return;
        thrown.getCause().printStackTrace();
        ended(1);
      } catch (ReflectiveOperationException unknown) {
        unknown.printStackTrace();
        ended(1);
      }
    }

    /** A JVM ends when all threads have that are no daemons. */
    void await() throws InterruptedException {
      Thread[] found = new Thread[activeCount() + 8];
      long deadline = System.nanoTime() + END_NS;
      for (int i = enumerate(found) - 1; i >= 0; i--) {
        while (!ended && found[i].isAlive() && !found[i].isDaemon()) {
          found[i].join(10);
          if (System.nanoTime() > deadline) Runtime.getRuntime().halt(1);
        }
      }
    }

    /** What is to be done at the end: by Kafka's Exit, and by Java's Runtime. */
    static List<Runnable> taken() {
      synchronized (hooks) {
        List<Runnable> found = new ArrayList<>(hooks);
        hooks.clear();
        for (Object thread : ofRuntime().toArray()) {
          // Not those of the logging, which goes on.
          if (((Thread) thread).getName().endsWith("-shutdown-hook")) {
            ofRuntime().remove(thread);
            found.add((Runnable) thread);
          }
        }
        return found;
      }
    }

    static Collection<?> ofRuntime() {
      try {
        Field field = Class.forName("java.lang.ApplicationShutdownHooks").getDeclaredField("hooks");
        field.setAccessible(true);
        return ((Map<?, ?>) field.get(null)).keySet();
      } catch (ReflectiveOperationException closed) {
        throw new IllegalStateException(closed);
      }
    }
  }

  /** What a tool prints, and how many lines that is by now. */
  static class Output extends ByteArrayOutputStream {
    volatile boolean closed;
    volatile int lines;

    @Override
    public synchronized void write(byte[] from, int start, int length) {
      if (closed) return;
      super.write(from, start, length);
      for (int i = start; i < start + length; i++) {
        if (from[i] == '\n') lines++;
      }
    }

    @Override
    public synchronized String toString() {
      return toString(UTF_8);
    }
  }

  /** To the tool that the writing thread belongs to. */
  static class Switch extends OutputStream {
    final Function<Tool, Output> chosen;

    Switch(Function<Tool, Output> chosen) {
      this.chosen = chosen;
    }

    @Override
    public void write(int octet) {
      write(new byte[] {(byte) octet}, 0, 1);
    }

    @Override
    public void write(byte[] from, int start, int length) {
      Tool tool = Tool.current();
      if (tool != null) chosen.apply(tool).write(from, start, length);
    }
  }
}
