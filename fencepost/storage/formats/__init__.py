"""The bytes of the files that Kafka keeps beside its records, as pure functions.

What is written is what Kafka 4.3 writes, byte for byte, and what Kafka wrote can be read. The log
directory and the remote tier both use them.
"""
