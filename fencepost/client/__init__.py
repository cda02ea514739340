"""A Kafka client in the raw: one request, one answer, at the version that is asked for.

It does what it is told and nothing besides: it does not retry, look for a leader, or wait its turn
after a throttled answer, because a test is about just that. Errors of the protocol are values, by
their codes; `KafkaClientError` is raised where no answer came.

`connection` carries requests to one broker, `client` keeps one connection a broker. On these stand
`partitions` (produce, fetch, list offsets, where an epoch ends), `cluster` (metadata, coordinators,
producer ids), `offsets` (commit, committed) and `groups` (join, sync, heartbeat, leave). What they
say and are answered is data: `model`, and `batches` for records. `calls` has the types of messages
for requests that have no function here.
"""
