package org.apache.kafka.common.test.junit;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.Map;
import java.util.function.Function;

/**
 * What a test gets in place of a Java object of Kafka's: it answers the calls that a cluster can
 * answer over the network, and throws {@link OutOfReach} at all others.
 */
final class ServerHandle implements InvocationHandler {
    private final Class<?> type;
    private final Map<String, Function<Object[], Object>> answers;

    private ServerHandle(Class<?> type, Map<String, Function<Object[], Object>> answers) {
        this.type = type;
        this.answers = answers;
    }

    /** @param answers what the methods answer, by their names; their arguments may be null. */
    static <T> T of(Class<T> type, Map<String, Function<Object[], Object>> answers) {
        ServerHandle handle = new ServerHandle(type, answers);
        Class<?>[] types = {type};
        return type.cast(Proxy.newProxyInstance(type.getClassLoader(), types, handle));
    }

    @Override
    public Object invoke(Object proxy, Method method, Object[] arguments) {
        String name = method.getName();
        Function<Object[], Object> answer = answers.get(name);
        if (answer != null) {
            return answer.apply(arguments);
        }
        return switch (name) {
            case "equals" -> proxy == arguments[0];
            case "hashCode" -> System.identityHashCode(proxy);
            case "toString" -> "a handle of a " + type.getSimpleName();
            default -> throw new OutOfReach(type.getSimpleName() + "." + name + "()");
        };
    }
}
