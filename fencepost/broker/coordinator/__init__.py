"""What all coordinators share; nothing here knows groups or transactions.

A coordinator's state is in an internal topic (``__consumer_offsets``, ``__transaction_state``); the
leader of a key's partition coordinates that key. `partition_for` is that partition, by a group id
or a transactional id; the audit computes it as well.

================== ===============================================================================
``record_fields``  the wire format of records: fields of their keys and values
``commit_queue``   records that are appended but not committed, and the callbacks that wait for them
``shard``          one partition while this broker leads it: decide, append, replay, respond; and
                   the runtime, the shards of one broker for one topic
================== ===============================================================================

A coordinator binds this to its own records: a serde, a state that replays the records, and a
subclass of ``CoordinatorShard`` with the requests that it serves.
"""

from functools import lru_cache
from typing import Final

_KEPT: Final = 100
"""How many keys' partitions are kept: each request asks several times."""


def java_hash(text: str) -> int:
    """Java's ``String.hashCode``, as an unsigned number: over UTF-16 units, modulo 2**32."""
    value = 0
    data = text.encode("utf-16-be", "surrogatepass")
    for at in range(0, len(data), 2):
        value = (value * 31 + (data[at] << 8 | data[at + 1])) & 0xFFFFFFFF
    return value


@lru_cache(_KEPT)
def partition_for(key: str, partition_count: int) -> int:
    """The partition of a key, as Kafka's ``partitionFor`` has it: by the hash's absolute value.

    Of the one hash that has none in 32 bits it is 0.
    """
    value = java_hash(key)
    return min(value, (1 << 32) - value) % (1 << 31) % partition_count
