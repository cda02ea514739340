package org.apache.kafka.common.test.junit;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ExecutionException;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import kafka.server.ControllerServer;
import kafka.server.KafkaBroker;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.FeatureUpdate;
import org.apache.kafka.clients.admin.UpdateFeaturesOptions;
import org.apache.kafka.clients.consumer.GroupProtocol;
import org.apache.kafka.clients.consumer.ShareConsumer;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.errors.UnsupportedVersionException;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.serialization.Deserializer;
import org.apache.kafka.common.test.ClusterInstance;
import org.apache.kafka.common.test.api.ClusterConfig;
import org.apache.kafka.common.test.api.Type;
import org.apache.kafka.server.common.Feature;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.server.config.AbstractKafkaConfig;
import org.apache.kafka.server.fault.FaultHandlerException;
import org.apache.kafka.test.TestUtils;

/** The cluster of one test: a fencepost with what the test's annotations ask for. */
final class FencepostInstance implements ClusterInstance {
    private static final int FIRST_CONTROLLER = 3000;
    /** As long as Kafka's own test cluster waits. */
    private static final long WAIT_MS = 60_000;
    private static final short LATEST = MetadataVersion.latestProduction().featureLevel();

    private final ClusterConfig config;
    private final boolean combined;
    private FencepostProcess process;
    private boolean stopped;

    FencepostInstance(ClusterConfig config, boolean combined) {
        this.config = config;
        this.combined = combined;
    }

    // -- life ----------------------------------------------------------------------------------

    @Override
    public void start() {
        if (process == null) {
            process = FencepostProcess.start(options());
            if (level() < LATEST) {
                downgrade();
            }
        }
    }

    /** The metadata.version that the test wants, of those that fencepost has. */
    private short level() {
        return (short) Math.min(config.metadataVersion().featureLevel(), LATEST);
    }

    private void downgrade() {
        FeatureUpdate.UpgradeType type = FeatureUpdate.UpgradeType.UNSAFE_DOWNGRADE;
        Feature replicas = Feature.ELIGIBLE_LEADER_REPLICAS_VERSION;
        short without = replicas.defaultLevel(config.metadataVersion());
        try (Admin admin = admin()) {
            admin.updateFeatures(
                    Map.of(
                            MetadataVersion.FEATURE_NAME, new FeatureUpdate(level(), type),
                            replicas.featureName(), new FeatureUpdate(without, type)),
                    new UpdateFeaturesOptions()).all().get();
        } catch (InterruptedException | ExecutionException error) {
            throw new IllegalStateException("metadata.version is not " + level(), error);
        }
    }

    private List<String> options() {
        for (SecurityProtocol protocol :
                List.of(config.brokerSecurityProtocol(), config.controllerSecurityProtocol())) {
            if (protocol != SecurityProtocol.PLAINTEXT) {
                throw new UnsupportedOperationException("fencepost does not serve " + protocol);
            }
        }
        List<String> options = new ArrayList<>(List.of("--advertise", "localhost"));
        // Kafka refuses a downgrade that may lose metadata; its own tests format the level instead.
        String conformance = level() < LATEST ? "kip" : "apache";
        options.addAll(List.of("--conformance", conformance, "--log-level", "warning"));
        options.addAll(List.of("--broker-ids", list(brokerIds())));
        options.addAll(List.of("--controller-ids", list(controllerIds()), "--controller-port", "0"));
        options.addAll(List.of("--log-dirs", String.valueOf(config.numDisksPerBroker())));
        Map<String, String> common = new TreeMap<>(config.serverProperties());
        config.perServerOverrideProperties().forEach((id, properties) -> {
            if (brokerIds().contains(id)) {
                known(properties).forEach((key, value) -> options.addAll(
                        List.of("--broker-config", id + ":" + key + "=" + value)));
            } else { // a controller's config is one of the whole process
                common.putAll(properties);
            }
        });
        known(common).forEach((key, value) ->
                options.addAll(List.of("--config", key + "=" + value)));
        return options;
    }

    /** Those of brokers: Kafka ignores others, in which fencepost sees a slip. */
    private static SortedMap<String, String> known(Map<String, String> properties) {
        SortedMap<String, String> known = new TreeMap<>(properties);
        known.keySet().retainAll(AbstractKafkaConfig.CONFIG_DEF.names());
        return known;
    }

    @Override
    public boolean started() {
        return process != null;
    }

    @Override
    public void stop() {
        if (process != null && !stopped) {
            process.release();
        }
        stopped = true;
    }

    @Override
    public boolean stopped() {
        return stopped;
    }

    @Override
    public void shutdownBroker(int id) {
        if (state().runningIds().contains(id)) {
            process.ask("POST", "/v1/brokers/" + id + "/stop");
        }
    }

    @Override
    public void startBroker(int id) {
        if (!state().runningIds().contains(id)) {
            process.ask("POST", "/v1/brokers/" + id + "/start");
        }
    }

    ClusterState state() {
        return new ClusterState(process);
    }

    // -- what it is ----------------------------------------------------------------------------

    @Override
    public Type type() {
        return combined ? Type.CO_KRAFT : Type.KRAFT;
    }

    @Override
    public ClusterConfig config() {
        return config;
    }

    @Override
    public String clusterId() {
        return state().clusterId();
    }

    @Override
    public Set<Integer> brokerIds() {
        return range(0, config.numBrokers());
    }

    @Override
    public Set<Integer> controllerIds() {
        return range(combined ? 0 : FIRST_CONTROLLER, config.numControllers());
    }

    private static Set<Integer> range(int first, int count) {
        return IntStream.range(first, first + count)
                .boxed()
                .collect(Collectors.toCollection(TreeSet::new));
    }

    private static String list(Set<Integer> ids) {
        return ids.stream().map(String::valueOf).collect(Collectors.joining(","));
    }

    @Override
    public ListenerName clientListener() {
        return config.brokerListenerName();
    }

    @Override
    public ListenerName controllerListenerName() {
        return config.controllerListenerName();
    }

    @Override
    public String bootstrapServers() {
        return process.bootstrap();
    }

    /** The brokers, by id. */
    Map<Integer, Node> nodes() {
        Iterator<Integer> ports = brokerBoundPorts().iterator();
        Map<Integer, Node> nodes = new TreeMap<>();
        brokerIds().forEach(id -> nodes.put(id, new Node(id, "localhost", ports.next())));
        return nodes;
    }

    @Override
    public String bootstrapControllers() {
        return process.controllers();
    }

    @Override
    public List<Integer> brokerBoundPorts() {
        return ports(bootstrapServers());
    }

    @Override
    public List<Integer> controllerBoundPorts() {
        return ports(bootstrapControllers());
    }

    private static List<Integer> ports(String addresses) {
        return Arrays.stream(addresses.split(","))
                .map(each -> Integer.valueOf(each.substring(each.lastIndexOf(':') + 1)))
                .toList();
    }

    @Override
    public Set<GroupProtocol> supportedGroupProtocols() {
        return Set.of(GroupProtocol.CLASSIC);
    }

    /** Where there are no share groups it fails at once: it would wait for half a minute first. */
    @Override
    public <K, V> ShareConsumer<K, V> shareConsumer(
            Map<String, Object> configs, Deserializer<K> keys, Deserializer<V> values) {
        try (Admin admin = admin()) {
            if (!admin.describeFeatures().featureMetadata().get().finalizedFeatures()
                    .containsKey(Feature.SHARE_VERSION.featureName())) {
                throw new UnsupportedVersionException("the cluster has no share groups");
            }
        } catch (InterruptedException | ExecutionException error) {
            throw new IllegalStateException("the cluster does not say its features", error);
        }
        return ClusterInstance.super.shareConsumer(configs, keys, values);
    }

    // -- what is in Kafka's JVM only -----------------------------------------------------------

    @Override
    public Map<Integer, KafkaBroker> brokers() {
        return handles(brokerIds());
    }

    @Override
    public Map<Integer, KafkaBroker> aliveBrokers() {
        return handles(state().runningIds());
    }

    private Map<Integer, KafkaBroker> handles(Set<Integer> ids) {
        Map<Integer, KafkaBroker> handles = new TreeMap<>();
        ids.forEach(id -> handles.put(id, new BrokerHandle(id, this).broker()));
        return handles;
    }

    @Override
    public Map<Integer, ControllerServer> controllers() {
        throw new OutOfReach("ClusterInstance.controllers()");
    }

    @Override
    public Optional<FaultHandlerException> firstFatalException() {
        return Optional.empty();
    }

    @Override
    public Optional<FaultHandlerException> firstNonFatalException() {
        return Optional.empty();
    }

    // -- waiting -------------------------------------------------------------------------------

    @Override
    public void waitForReadyBrokers() {
        // start() and startBroker() return when they are.
    }

    @Override
    public void waitTopicCreation(String topic, int partitions) throws InterruptedException {
        TestUtils.waitForCondition(
                () -> state().partitions(topic).filter(count -> count == partitions).isPresent(),
                WAIT_MS,
                topic + " has no " + partitions + " partitions");
    }

    @Override
    public void waitTopicDeletion(String topic) throws InterruptedException {
        TestUtils.waitForCondition(
                () -> state().partitions(topic).isEmpty(), WAIT_MS, topic + " is still there");
    }

    @Override
    public void ensureConsistentMetadata() {
        // A change is answered when every broker has applied it.
    }
}
