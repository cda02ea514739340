"""Transactions (KIP-98, KIP-890), on the shared parts of ``broker.coordinator``.

=========================== ======================================================================
``transaction_state``       the states of a transaction and their transitions
``transaction_metadata``    what a transactional id is remembered by, and each change of it
``records``                 the formats of ``__transaction_state``, and the state they replay to
``transaction_config``      the configs of the coordinator
``producer_epochs``         decisions of InitProducerId: bump, rotate, fence
``end_transaction``         decisions of EndTxn, in both flows
``transaction_partitions``  decisions of AddPartitionsToTxn: add, verify
``transaction_coordinator`` the shards: transactional ids of one partition; time-outs, expiration
``requests``                each API on a shard
``marker_channel``          markers on their way from a coordinator to the leaders
``verification``            a leader asks the coordinator: is this partition part of it, or add it
=========================== ======================================================================

A transactional id has one record, which holds all of it. A decision yields the next record; it is
appended and replayed, and answered when it is committed. Until then the id has a transition in
progress, and every other request is CONCURRENT_TRANSACTIONS. The present coordinator carries out a
committed decision to commit or to abort: after each election it sends the markers again, until the
record of the complete transaction is committed.
"""
