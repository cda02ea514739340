package org.apache.kafka.common.test.junit;

import java.util.List;
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
        BeforeEachCallback start = context -> {
            if (config.isAutoStart()) {
                cluster.start();
            }
        };
        AfterEachCallback stop = context -> cluster.stop();
        return List.of(start, stop, new ClusterInstanceParameterResolver(cluster));
    }

    /** Kafka's classes of this package wait by it. */
    static void waitForCondition(Supplier<Boolean> condition, String what)
            throws InterruptedException {
        TestUtils.waitForCondition(condition::get, what);
    }
}
