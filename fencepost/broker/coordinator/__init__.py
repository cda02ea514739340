"""What all coordinators share; nothing here knows groups or transactions.

A coordinator's state is in an internal topic (``__consumer_offsets``, ``__transaction_state``); the
leader of a key's partition coordinates that key.

================== ===============================================================================
``partitioner``    the partition of a key
``record_fields``  the wire format of records: fields of their keys and values
``commit_queue``   records that are appended but not committed, and the callbacks that wait for them
``shard``          one partition while this broker leads it: decide, append, replay, respond
``replica_log``    a leader replica as the log of a shard
``runtime``        the shards of one broker for one topic
================== ===============================================================================

A coordinator binds this to its own records: a serde, a state that replays the records, and a
subclass of ``CoordinatorShard`` with the requests that it serves.
"""
