"""The partition of an internal topic that a key (a group id, a transactional id) belongs to.

A module of its own: FindCoordinator and the audit need the partition of a key and no coordinator.
"""


def java_hash(text: str) -> int:
    """Java's ``String.hashCode``, as an unsigned number: over UTF-16 units, modulo 2**32."""
    value = 0
    data = text.encode("utf-16-be", "surrogatepass")
    for at in range(0, len(data), 2):
        value = (value * 31 + (data[at] << 8 | data[at + 1])) & 0xFFFFFFFF
    return value


def partition_for(key: str, partition_count: int) -> int:
    """The partition of a key, as Kafka's ``partitionFor`` computes it."""
    return (java_hash(key) & 0x7FFFFFFF) % partition_count
