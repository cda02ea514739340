package org.apache.kafka.common.test.junit;

import java.util.AbstractMap;
import java.util.AbstractSet;
import java.util.Collection;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** Thrown where a test asks for a Java object that only brokers in its own JVM have. */
public final class OutOfReach extends UnsupportedOperationException {
    private static final long serialVersionUID = 1;

    private OutOfReach(String call) {
        super(call + " is a Java object of Kafka's");
    }

    /**
     * Servers by their ids, of which only the ids are known. The collection of all servers is
     * empty, so that waiting until each of them has something ends at once.
     *
     * @param call the call that a test gets the map from, such as {@code brokers()}.
     */
    static <V> Map<Integer, V> servers(String call, Set<Integer> ids) {
        return new Servers<>(call, ids);
    }

    private static final class Servers<V> extends AbstractMap<Integer, V> {
        private final String call;
        private final Set<Integer> ids;

        Servers(String call, Set<Integer> ids) {
            this.call = call;
            this.ids = ids;
        }

        @Override
        public V get(Object id) {
            throw new OutOfReach(call);
        }

        @Override
        public Set<Integer> keySet() {
            return ids;
        }

        @Override
        public Collection<V> values() {
            return List.of();
        }

        @Override
        public Set<Map.Entry<Integer, V>> entrySet() {
            return new AbstractSet<>() {
                @Override
                public Iterator<Map.Entry<Integer, V>> iterator() {
                    return ids.stream().map(Servers.this::entry).iterator();
                }

                @Override
                public int size() {
                    return ids.size();
                }
            };
        }

        private Map.Entry<Integer, V> entry(Integer id) {
            return new SimpleImmutableEntry<>(id, null) {
                @Override
                public V getValue() {
                    throw new OutOfReach(call);
                }
            };
        }
    }
}
