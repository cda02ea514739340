package org.apache.kafka.common.test.junit;

import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.apache.kafka.common.test.api.ClusterConfig;
import org.apache.kafka.test.TestUtils;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.Extension;
import org.junit.jupiter.api.extension.TestTemplateInvocationContext;

/**
 * Gives a cluster test of Kafka a fencepost. It stands before Kafka's class of this name, which
 * starts brokers in the same JVM, on the class path.
 */
public final class RaftClusterInvocationContext implements TestTemplateInvocationContext {
    /** About the time that a cluster of Kafka's takes to stop. */
    private static final long STOP_S = 3;

    private final String name;
    private final ClusterConfig config;
    private final boolean combined;

    /** @param combined whether the brokers are controllers too. */
    public RaftClusterInvocationContext(String name, ClusterConfig config, boolean combined) {
        this.name = name;
        this.config = config;
        this.combined = combined;
    }

    @Override
    public String getDisplayName(int invocation) {
        return String.format("%s [%d]", name, invocation);
    }

    @Override
    public List<Extension> getAdditionalExtensions() {
        FencepostInstance cluster = new FencepostInstance(config, combined);
        Set<Thread> before = new HashSet<>();
        BeforeEachCallback start = context -> {
            before.addAll(Thread.getAllStackTraces().keySet());
            if (config.isAutoStart()) {
                cluster.start();
            }
        };
        AfterEachCallback stop = context -> {
            cluster.stop();
            awaitEnd(before);
        };
        return List.of(start, stop, new ClusterInstanceParameterResolver(cluster));
    }

    /**
     * Waits for threads that the test has told to end. Kafka's brokers take so long to stop that
     * these have ended when its extension looks for threads that the test has left.
     */
    private static void awaitEnd(Set<Thread> before) throws InterruptedException {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(STOP_S);
        for (Thread thread : Thread.getAllStackTraces().keySet()) {
            long left = TimeUnit.NANOSECONDS.toMillis(deadline - System.nanoTime());
            if (!before.contains(thread) && thread != Thread.currentThread() && left > 0) {
                thread.join(left);
            }
        }
    }

    /** Kafka's classes of this package wait by it. */
    static void waitForCondition(Supplier<Boolean> condition, String what)
            throws InterruptedException {
        TestUtils.waitForCondition(condition::get, what);
    }
}
