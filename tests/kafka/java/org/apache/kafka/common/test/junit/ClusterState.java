package org.apache.kafka.common.test.junit;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.metadata.LeaderAndIsr;

/** The state of the cluster, as its control API shows it. */
record ClusterState(FencepostProcess process) {
    private static Stream<JsonNode> elements(JsonNode array) {
        return StreamSupport.stream(array.spliterator(), false);
    }

    String clusterId() {
        return process.ask("GET", "/v1/cluster").get("cluster_id").asText();
    }

    /** The ids of the brokers that run. */
    Set<Integer> runningIds() {
        return elements(process.ask("GET", "/v1/cluster").get("brokers"))
                .filter(broker -> broker.get("state").asText().equals("running"))
                .map(broker -> broker.get("id").asInt())
                .collect(Collectors.toCollection(TreeSet::new));
    }

    /** How many partitions a topic has; empty where there is no such topic. */
    Optional<Integer> partitions(String topic) {
        return elements(process.ask("GET", "/v1/topics"))
                .filter(each -> each.get("name").asText().equals(topic))
                .map(each -> each.get("partitions").asInt())
                .findFirst();
    }

    private Optional<JsonNode> partition(String topic, int partition) {
        return partitions(topic)
                .filter(count -> partition < count)
                .map(count -> "/v1/topics/" + topic + "/partitions/" + partition)
                .map(path -> process.ask("GET", path));
    }

    Optional<LeaderAndIsr> leaderAndIsr(String topic, int partition) {
        return partition(topic, partition).map(found -> {
            List<Integer> isr = elements(found.get("isr")).map(JsonNode::asInt).toList();
            return new LeaderAndIsr(found.get("leader").asInt(), isr);
        });
    }

    /** A broker's replica of a partition; empty where it has none. */
    Optional<JsonNode> replica(int broker, TopicPartition partition) {
        return partition(partition.topic(), partition.partition())
                .flatMap(found -> elements(found.get("replicas"))
                        .filter(each -> each.get("broker").asInt() == broker)
                        .findFirst());
    }
}
