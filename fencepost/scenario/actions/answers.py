"""What the actions of a scenario's clients are answered, as data.

Offsets named ``end`` or ``next`` and high watermarks are exclusive, all others inclusive; times are
milliseconds.
"""

from fencepost.verbs.answers.base import Answer


class ActionAnswer(Answer):
    """What all of them answer."""

    error: str | None
    """Kafka's name of the error, ``NONE`` for none; null where no answer came."""
    failed: str | None
    """Why no answer came: ``disconnected``, ``timed_out``, ``unreachable``, ``malformed``,
    ``not_served``, ``no_leader``."""
    broker: int | None
    """Who was asked."""
    version: int | None
    throttle_time_ms: int
    elapsed_ms: int
    """Of real time."""


class RecordError(Answer):
    """A record that is refused."""

    index: int
    message: str | None


class ProduceAnswer(ActionAnswer):
    """Of several requests the last one's answer; of several partitions the first one's with an
    error, or the first one's.
    """

    message: str | None
    base_offset: int
    log_append_time_ms: int
    log_start_offset: int
    record_errors: tuple[RecordError, ...]
    leader: "LeaderAnswer | None"
    partitions: "tuple[PartitionProduced, ...]"
    """Of the last answer, in the order in which they were sent."""
    sent: int
    """Batches, each counted once."""
    acknowledged: int
    """Batches."""
    attempts: int
    """Requests."""


class PartitionProduced(Answer):
    """What is answered for one partition."""

    topic: str
    partition: int
    error: str
    """Kafka's name of the error, ``NONE`` for none."""
    message: str | None
    base_offset: int
    log_append_time_ms: int
    log_start_offset: int
    record_errors: tuple[RecordError, ...]
    leader: "LeaderAnswer | None"


class LeaderAnswer(Answer):
    """Who leads instead."""

    id: int
    epoch: int


class DivergingAnswer(Answer):
    """Where the logs part."""

    epoch: int
    end_offset: int


class RecordAnswer(Answer):
    """A record as text."""

    offset: int
    epoch: int
    timestamp: int
    key: str | None
    value: str | None
    headers: dict[str, str | None]


class FetchAnswer(ActionAnswer):
    """Records and offsets."""

    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    diverging: DivergingAnswer | None
    leader: LeaderAnswer | None
    preferred_read_replica: int
    values: tuple[str | None, ...]
    """Of the records."""
    records: tuple[RecordAnswer, ...]
    next_offset: int
    """Where to go on."""
    corrupt: bool
    """Whether a batch is broken; it and all behind it are left out."""
    corruption: str | None
    """What is wrong with it."""


class ListOffsetsAnswer(ActionAnswer):
    """An offset."""

    offset: int
    timestamp: int
    epoch: int


class EpochEndAnswer(ActionAnswer):
    """The largest epoch that is not above the one asked about, and its end."""

    epoch: int
    end_offset: int


class MetadataAnswer(ActionAnswer):
    """A partition as a broker sees it."""

    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline: tuple[int, ...]
    topic_id: str | None
    brokers: tuple[int, ...]
    """Ids."""
    controller: int


class CommitAnswer(ActionAnswer):
    """Whether it is committed."""


class CommittedAnswer(ActionAnswer):
    """What is committed."""

    offset: int
    epoch: int
    metadata: str | None


class CoordinatorAnswer(ActionAnswer):
    """Who coordinates."""

    coordinator: int
    """Broker id; -1 for none."""
    message: str | None


class MemberAnswer(ActionAnswer):
    """A member as it is."""

    member_id: str
    generation: int
    leads: bool
    """Whether it assigns the partitions."""
    members: int
    """How many the group has; 0 unless it leads."""
    assigned: tuple[str, ...]
    """``orders-0`` and so on, sorted."""
    joins: int
    """How often it has joined."""


class ReplicatedAnswer(ActionAnswer):
    """What a follower was sent since the scenario began, as far back as the journal goes."""

    first_offset: int
    """Of the first batch; -1 where it was sent nothing."""
    last_offset: int
    records: int
    bytes: int
    """Of all batches that it was sent."""
    of_bytes: int
    """Of the whole log: in the tier, and here where it is not tiered yet."""
    percent: float
    """The one of the other."""


class CallAnswer(ActionAnswer):
    """Any answer. Its error is the first one in it that is not NONE."""

    response: dict[str, object] | None
