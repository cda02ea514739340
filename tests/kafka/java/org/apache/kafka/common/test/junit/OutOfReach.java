package org.apache.kafka.common.test.junit;

/** Thrown where a test asks for a Java object that only a server in its own JVM has. */
public final class OutOfReach extends UnsupportedOperationException {
    private static final long serialVersionUID = 1;

    /** @param call the Java call that fails, such as {@code KafkaBroker.logManager()}. */
    OutOfReach(String call) {
        super(call + " is out of reach");
    }
}
