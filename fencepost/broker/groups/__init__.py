"""The group coordinator: classic consumer groups and committed offsets, without any I/O.

================== ===============================================================================
``state``          the state machine of a group: prose, enum, transition table
``group``          one group: its members, their votes, what they wait for
``rebalance``      the transitions and their timers
``joins``          JoinGroup
``membership``     SyncGroup, Heartbeat, LeaveGroup
``offsets``        OffsetCommit, OffsetFetch, OffsetDelete, and expiry, as decisions
``directory``      ListGroups, DescribeGroups, DeleteGroups
``records``        the formats of ``__consumer_offsets``
``durable``        what the log remembers: changed by applying records and by nothing else
``shard``          one partition of ``__consumer_offsets``: decide, append, apply, answer
``requests``       each API on a shard
``partition_log``  what a shard needs of its partition, and who waits for its commits
``coordinator``    one broker's shards
================== ===============================================================================

Two kinds of state, never mixed. What must outlive a change of leader (offsets, and a group's
members, generation and assignment once its leader has assigned) is durable: a decision yields
records, the records are appended and then applied. What members do just now (joining, syncing,
being silent) is not: it is forgotten with the shard, and members come back by themselves.
"""
