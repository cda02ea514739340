package fencepost;

import static org.junit.platform.engine.discovery.DiscoverySelectors.selectClass;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import org.junit.platform.engine.FilterResult;
import org.junit.platform.engine.TestDescriptor;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.support.descriptor.MethodSource;
import org.junit.platform.launcher.Launcher;
import org.junit.platform.launcher.LauncherDiscoveryRequest;
import org.junit.platform.launcher.PostDiscoveryFilter;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;

/**
 * Runs the tests of classes in one JVM: reads a line {@code CLASS}, {@code CLASS +METHOD...} or
 * {@code CLASS -METHOD...} for each (the methods that are run, or those that are not), and prints a
 * line of JSON for each test that begins, each that ends, and the end of the class.
 */
public final class SuiteRunner {
    private static final ObjectMapper JSON = new ObjectMapper();

    private SuiteRunner() {}

    public static void main(String[] arguments) throws Exception {
        PrintStream out = System.out;
        // The tools under test print; a test that wants to see it takes their output itself.
        System.setOut(new PrintStream(OutputStream.nullOutputStream()));
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        Launcher launcher = LauncherFactory.create();
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            launcher.execute(request(words), new Reporter(out, words[0]));
            print(out, JSON.createObjectNode().put("event", "end"));
        }
        System.exit(0); // a test may leave threads that are no daemons
    }

    private static LauncherDiscoveryRequest request(String[] words) {
        return LauncherDiscoveryRequestBuilder.request()
                .selectors(selectClass(words[0]))
                .filters((PostDiscoveryFilter) each -> FilterResult.includedIf(wanted(each, words)))
                .build();
    }

    /** Whether the words after the class let a test run. */
    private static boolean wanted(TestDescriptor test, String[] words) {
        Optional<MethodSource> method = test.getSource()
                .filter(MethodSource.class::isInstance)
                .map(MethodSource.class::cast);
        if (method.isEmpty()) {
            return true;
        }
        List<String> methods = Arrays.asList(words).subList(1, words.length);
        String name = method.get().getMethodName();
        return methods.isEmpty() || methods.get(0).startsWith("+")
                ? methods.isEmpty() || methods.contains("+" + name)
                : !methods.contains("-" + name);
    }

    private static synchronized void print(PrintStream out, ObjectNode line) {
        out.println(line);
        out.flush();
    }

    private record Reporter(PrintStream out, String type) implements TestExecutionListener {
        @Override
        public void executionStarted(TestIdentifier test) {
            if (test.isTest()) {
                print(out, line("start", test));
            }
        }

        @Override
        public void executionSkipped(TestIdentifier test, String reason) {
            print(out, line("skip", test).put("reason", reason));
        }

        @Override
        public void executionFinished(TestIdentifier test, TestExecutionResult result) {
            boolean passed = result.getStatus() == TestExecutionResult.Status.SUCCESSFUL;
            if (!test.isTest() && passed) {
                return; // a class, or all invocations of a method
            }
            ObjectNode line = line(passed ? "pass" : "fail", test);
            result.getThrowable().ifPresent(each -> line.put("trace", trace(each)));
            print(out, line);
        }

        private ObjectNode line(String event, TestIdentifier test) {
            ObjectNode line = JSON.createObjectNode().put("event", event).put("class", type);
            test.getSource()
                    .filter(MethodSource.class::isInstance)
                    .ifPresent(each -> line.put("method", ((MethodSource) each).getMethodName()));
            line.put("name", test.getLegacyReportingName());
            return line.put("display", test.getDisplayName());
        }

        private static String trace(Throwable error) {
            StringWriter text = new StringWriter();
            error.printStackTrace(new PrintWriter(text));
            return text.toString();
        }
    }
}
