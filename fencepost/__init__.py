"""fencepost: a Kafka cluster for tests that does what it is told, when it is told."""
