"""Classic consumer groups and committed offsets, on the shared parts of ``broker.coordinator``.

======================== =========================================================================
``group_config``         the configs of group coordination
``records``              the formats of ``__consumer_offsets``, and the state that they replay to
``classic_group_state``  the states of a group and their transitions
``classic_group_member`` one member
``classic_group``        one group: members, protocol, generation
``rebalance``            the steps of a rebalance, and their timers
``classic_membership``   JoinGroup, SyncGroup, Heartbeat, LeaveGroup on one group
``offsets``              decisions of OffsetCommit, OffsetFetch and OffsetDelete; expiry
``group_coordinator``    the shards: groups of one partition of ``__consumer_offsets``
``requests``             each API on a shard
======================== =========================================================================

There are two kinds of state, which never mix. Offsets, and a group's members, generation and
assignment once its leader has assigned, are durable: a decision yields records, which are appended
and then replayed. The progress of a rebalance (joins, syncs, sessions) is only in memory: it is
lost with the shard, and the members join again.
"""
