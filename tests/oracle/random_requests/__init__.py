"""Random requests to a real Kafka and to fencepost, one after the other, both answers compared."""
