"""The consumer's core: synchronous and deterministic, without I/O, clock or randomness.

`core.ConsumerCore` decides which requests are due at a time that it is handed, and handles their
answers. `fencepost.client.asyncio_consumer` carries the requests over sockets; a simulation or a
test carries them to handlers.

A partition's position is a state machine (`position`), in an `assignment`. What moves it, each part
with the requests of its own: `fetcher`, `epoch_validation` (KIP-320), `divergence` (KIP-320's
earlier draft), `position_reset`, `offset_lookup`, `committed_offsets`. `cluster_metadata` knows the
leaders, `nodes` the brokers and the versions that they serve, `coordinator` and `classic_group` the
group. `model`, `errors` and `config` are public.
"""
