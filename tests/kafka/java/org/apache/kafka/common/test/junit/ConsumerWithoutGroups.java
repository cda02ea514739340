package org.apache.kafka.common.test.junit;

import java.util.Collection;
import java.util.Map;
import java.util.regex.Pattern;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.common.errors.UnsupportedVersionException;

/**
 * A consumer of KIP-848 where there are no such groups. It fails when it has subscribed; Kafka's
 * own fails at a later poll, before or after the test has what it waits for.
 */
final class ConsumerWithoutGroups<K, V> extends KafkaConsumer<K, V> {
    ConsumerWithoutGroups(Map<String, Object> configs) {
        super(configs);
    }

    @Override
    public void subscribe(Collection<String> topics) {
        super.subscribe(topics);
        fail();
    }

    @Override
    public void subscribe(Collection<String> topics, ConsumerRebalanceListener listener) {
        super.subscribe(topics, listener);
        fail();
    }

    @Override
    public void subscribe(Pattern pattern) {
        super.subscribe(pattern);
        fail();
    }

    @Override
    public void subscribe(Pattern pattern, ConsumerRebalanceListener listener) {
        super.subscribe(pattern, listener);
        fail();
    }

    @Override
    public void subscribe(SubscriptionPattern pattern) {
        super.subscribe(pattern);
        fail();
    }

    @Override
    public void subscribe(SubscriptionPattern pattern, ConsumerRebalanceListener listener) {
        super.subscribe(pattern, listener);
        fail();
    }

    private static void fail() {
        throw new UnsupportedVersionException("the cluster has no groups of KIP-848");
    }
}
