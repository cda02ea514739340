package org.apache.kafka.common.test.junit;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Function;
import kafka.cluster.Partition;
import kafka.log.LogManager;
import kafka.server.KafkaBroker;
import kafka.server.KafkaConfig;
import kafka.server.ReplicaManager;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.metadata.BrokerState;
import org.apache.kafka.metadata.MetadataCache;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.mockito.Mockito;
import scala.Option;

/**
 * What a test gets in place of a broker of Kafka's: objects that answer the calls which the control
 * API can answer, and throw {@link OutOfReach} at all others.
 */
record BrokerHandle(int id, FencepostInstance cluster) {
    /** What a method answers to its arguments. */
    private interface Answer extends Function<Object[], Object> {}

    KafkaBroker broker() {
        return handle(KafkaBroker.class, Map.of(
                "shutdown", arguments -> runs(false),
                "startup", arguments -> runs(true),
                "awaitShutdown", arguments -> null,
                "brokerState", arguments -> state().runningIds().contains(id)
                        ? BrokerState.RUNNING
                        : BrokerState.SHUTTING_DOWN,
                "isShutdown", arguments -> !state().runningIds().contains(id),
                "boundPort", arguments -> cluster.nodes().get(id).port(),
                "config", arguments -> config(),
                "metadataCache", arguments -> metadataCache(),
                "logManager", arguments -> logManager(),
                "replicaManager", arguments -> replicaManager()));
    }

    private static <T> T handle(Class<T> type, Map<String, Answer> answers) {
        return Mockito.mock(type, Mockito.withSettings().stubOnly().defaultAnswer(call -> {
            String name = call.getMethod().getName();
            return switch (name) {
                case "toString", "hashCode", "equals" -> Mockito.RETURNS_DEFAULTS.answer(call);
                default -> answers.getOrDefault(name, arguments -> {
                    throw new OutOfReach(type.getSimpleName() + "." + name + "()");
                }).apply(call.getArguments());
            };
        }));
    }

    private ClusterState state() {
        return cluster.state();
    }

    private Object runs(boolean wanted) {
        if (wanted) {
            cluster.startBroker(id);
        } else {
            cluster.shutdownBroker(id);
        }
        return null;
    }

    /** Logs are in memory: there are no log directories. */
    private KafkaConfig config() {
        return handle(KafkaConfig.class, Map.of(
                "brokerId", arguments -> id,
                "nodeId", arguments -> id,
                "logDirs", arguments -> List.of()));
    }

    private MetadataCache metadataCache() {
        return handle(MetadataCache.class, Map.of(
                "numPartitions", arguments -> state().partitions((String) arguments[0]),
                "getAliveBrokerNodes", arguments -> List.copyOf(cluster.nodes().values()),
                "hasAliveBroker", arguments -> state().runningIds().contains(arguments[0]),
                "getLeaderAndIsr", arguments ->
                        state().leaderAndIsr((String) arguments[0], (int) arguments[1])));
    }

    private LogManager logManager() {
        return handle(LogManager.class, Map.of(
                "getLog", arguments -> option(replica(arguments).map(this::log)),
                "liveLogDirs", arguments -> scala.collection.immutable.Nil$.MODULE$));
    }

    private ReplicaManager replicaManager() {
        return handle(ReplicaManager.class, Map.of(
                "localLog", arguments -> option(replica(arguments).map(this::log)),
                "onlinePartition", arguments -> option(replica(arguments).map(this::partition))));
    }

    private Optional<JsonNode> replica(Object[] arguments) {
        return state().replica(id, (TopicPartition) arguments[0]);
    }

    private UnifiedLog log(JsonNode replica) {
        return handle(UnifiedLog.class, Map.of(
                "highWatermark", arguments -> replica.get("high_watermark").asLong(),
                "logEndOffset", arguments -> replica.get("log_end_offset").asLong()));
    }

    private Partition partition(JsonNode replica) {
        boolean leads = replica.get("role").asText().equals("leader");
        return handle(Partition.class, Map.of(
                "isLeader", arguments -> leads,
                "leaderIdIfLocal", arguments -> leads ? Option.apply(id) : Option.empty()));
    }

    private static <T> Option<T> option(Optional<T> value) {
        return Option.apply(value.orElse(null));
    }
}
