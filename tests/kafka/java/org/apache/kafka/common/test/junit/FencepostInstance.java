package org.apache.kafka.common.test.junit;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
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
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.GroupProtocol;
import org.apache.kafka.clients.consumer.ShareConsumer;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.errors.UnsupportedVersionException;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.Deserializer;
import org.apache.kafka.common.test.ClusterInstance;
import org.apache.kafka.common.test.api.ClusterConfig;
import org.apache.kafka.common.test.api.Type;
import org.apache.kafka.server.common.Feature;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.server.config.AbstractKafkaConfig;
import org.apache.kafka.server.config.ServerConfigs;
import org.apache.kafka.server.fault.FaultHandlerException;
import org.apache.kafka.storage.internals.log.CleanerConfig;
import org.apache.kafka.test.TestUtils;

/** The cluster of one test: a fencepost with what the test's annotations ask for. */
final class FencepostInstance implements ClusterInstance {
    private static final int FIRST_CONTROLLER = 3000;
    /** As long as Kafka's own test cluster waits. */
    private static final long WAIT_MS = 60_000;
    private static final List<Feature> SERVED = List.of(
            Feature.ELIGIBLE_LEADER_REPLICAS_VERSION, Feature.KRAFT_VERSION,
            Feature.TRANSACTION_VERSION);
    /** What Kafka's test kit configures unless a test does. */
    private static final Map<String, String> OF_TEST_KIT = Map.of(
            CleanerConfig.LOG_CLEANER_DEDUPE_BUFFER_SIZE_PROP, "2097152",
            ServerConfigs.UNSTABLE_FEATURE_VERSIONS_ENABLE_CONFIG, "true",
            ServerConfigs.UNSTABLE_API_VERSIONS_ENABLE_CONFIG, "true");

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
        }
    }

    /** The levels that Kafka's test kit formats, of the features that fencepost has. */
    private Map<String, Short> features() {
        Map<String, Short> levels = new TreeMap<>();
        levels.put(MetadataVersion.FEATURE_NAME, config.metadataVersion().featureLevel());
        for (Feature feature : SERVED) {
            levels.put(feature.featureName(), config.features().getOrDefault(
                    feature, feature.defaultLevel(config.metadataVersion())));
        }
        // The voters of its quorum do not change, unless there is one alone at the start.
        levels.put(Feature.KRAFT_VERSION.featureName(), (short) (config.standalone() ? 1 : 0));
        return levels;
    }

    private List<String> options() {
        for (SecurityProtocol protocol :
                List.of(config.brokerSecurityProtocol(), config.controllerSecurityProtocol())) {
            if (protocol != SecurityProtocol.PLAINTEXT) {
                throw new UnsupportedOperationException("fencepost does not serve " + protocol);
            }
        }
        List<String> options = new ArrayList<>(List.of("--advertise", "localhost"));
        options.addAll(List.of("--conformance", "apache", "--log-level", "error"));
        features().forEach((name, level) -> options.addAll(List.of("--feature", name + "=" + level)));
        options.addAll(List.of("--broker-ids", list(brokerIds())));
        options.addAll(List.of("--controller-ids", list(controllerIds()), "--controller-port", "0"));
        options.addAll(List.of("--log-dirs", String.valueOf(config.numDisksPerBroker())));
        Map<String, String> common = new TreeMap<>(OF_TEST_KIT);
        common.putAll(config.serverProperties());
        config.perServerOverrideProperties().forEach((id, properties) -> {
            if (brokerIds().contains(id) || id.equals(controllerIds().iterator().next())) {
                known(properties).forEach((key, value) -> options.addAll(
                        List.of("--broker-config", id + ":" + key + "=" + value)));
            } // else a controller that is not the active one, and has no configs here
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

    /** Where there are no groups of KIP-848 its consumer fails as soon as it subscribes. */
    @Override
    public <K, V> Consumer<K, V> consumer(Map<String, Object> configs) {
        Object protocol = configs.get(ConsumerConfig.GROUP_PROTOCOL_CONFIG);
        boolean fails = GroupProtocol.CONSUMER.name().equalsIgnoreCase(String.valueOf(protocol))
                && !hasFinalized(Feature.GROUP_VERSION);
        if (!fails) {
            return ClusterInstance.super.consumer(configs);
        }
        return new ConsumerWithoutGroups<>(withDefaults(configs));
    }

    /** As Kafka's cluster instance completes the configs of a consumer. */
    private Map<String, Object> withDefaults(Map<String, Object> configs) {
        String bytes = ByteArrayDeserializer.class.getName();
        Map<String, Object> all = new HashMap<>(Map.of(
                ConsumerConfig.KEY_DESERIALIZER_CLASS_CONFIG, bytes,
                ConsumerConfig.VALUE_DESERIALIZER_CLASS_CONFIG, bytes,
                ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest",
                ConsumerConfig.GROUP_ID_CONFIG, "group_" + TestUtils.randomString(5),
                ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrapServers()));
        all.putAll(configs);
        return setClientSaslConfig(all);
    }

    /** Where there are no share groups it fails at once: it would wait for half a minute first. */
    @Override
    public <K, V> ShareConsumer<K, V> shareConsumer(
            Map<String, Object> configs, Deserializer<K> keys, Deserializer<V> values) {
        if (!hasFinalized(Feature.SHARE_VERSION)) {
            throw new UnsupportedVersionException("the cluster has no share groups");
        }
        return ClusterInstance.super.shareConsumer(configs, keys, values);
    }

    private boolean hasFinalized(Feature feature) {
        try (Admin admin = admin()) {
            return admin.describeFeatures().featureMetadata().get().finalizedFeatures()
                    .containsKey(feature.featureName());
        } catch (InterruptedException | ExecutionException error) {
            throw new IllegalStateException("the cluster does not say its features", error);
        }
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
