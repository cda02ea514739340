"""What the actions of a scenario's clients take, as data. Times are milliseconds."""

from typing import Annotated, Final, Literal, Self, get_args

from pydantic import (
    BeforeValidator,
    Field,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)

from fencepost.scenario.value_syntax import expand_ranges
from fencepost.verbs.bodies import MAX_DELAY_MS, Body, Listed

DEFAULT_CLIENT: Final = "scenario"
TIMEOUT_MS: Final = 30_000
_Ms = Annotated[int, Field(ge=0, le=MAX_DELAY_MS)]
_Index = Annotated[int, Field(ge=0)]
_Version = Annotated[int, Field(ge=0, le=32767)]
Isolated = Literal["read_uncommitted", "read_committed"]
_TargetName = Literal[
    "latest",
    "earliest",
    "max_timestamp",
    "earliest_local",
    "latest_tiered",
    "earliest_pending_upload",
]


class ActionBody(Body):
    """What all of them take."""

    client: str = DEFAULT_CLIENT
    """The client that acts: its client id, with connections of its own. An action in the background
    is done by a client of that name."""
    broker: int | None = None
    """Whom to ask. Left out: the partition's leader as it really is, or the group's coordinator by
    FindCoordinator; else the first broker that runs."""
    version: _Version | None = None
    """Of the API. Left out: the highest that both sides know, by ApiVersions."""
    timeout_ms: _Ms = TIMEOUT_MS
    """How long to wait for an answer."""


class PartitionBody(ActionBody):
    """What is asked of a partition."""

    topic: str
    partition: _Index = 0


class RecordBody(Body):
    """A record to be produced, as text."""

    key: str | None = None
    value: str | None = None
    headers: dict[str, str | None] = Field(default_factory=dict)
    timestamp: int | None = None
    """Left out: the cluster's time."""


def _as_records(given: object) -> object:
    """A text is a record's value."""
    if not isinstance(given, list):
        return given
    if not all(isinstance(each, str | dict) for each in given):
        raise ValueError("a record is text, or a mapping of key, value, headers and timestamp")
    return [{"value": each} if isinstance(each, str) else each for each in expand_ranges(given)]


def _as_target(given: object, check: ValidatorFunctionWrapHandler) -> object:
    """Say in one sentence what may be there, not one for each kind."""
    try:
        checked: object = check(given)
    except ValidationError as error:
        names = ", ".join(get_args(_TargetName))
        raise ValueError(f"input should be one of {names}, or a timestamp in ms") from error
    return checked


Target = Annotated[_TargetName | int, WrapValidator(_as_target)]


_Records = Annotated[Listed[RecordBody], Field(min_length=1), BeforeValidator(_as_records)]


class BatchBody(Body):
    """One of the batches of a request."""

    topic: str | None = None
    """Left out: the action's. All are sent to who leads the first one's partition."""
    partition: _Index | None = None
    """Left out: the action's."""
    records: _Records
    sequence: Annotated[int, Field(ge=0)] | None = None
    """As in the action."""
    base_offset: int = 0
    """As in the action."""


class ProduceBody(PartitionBody):
    """Records to a partition, or to several."""

    records: _Records = ()
    """Texts, or more of each; ``a0..a9`` stands for a0 to a9."""
    batches: Annotated[Listed[BatchBody], Field(min_length=1)] = ()
    """In place of ``records``: batches that are sent in one request, to one partition or to
    several, in this order."""
    acks: Literal["all", 1, 0] = "all"
    compression: Literal["none", "gzip", "snappy", "lz4", "zstd"] = "none"
    producer: str | None = None
    """An idempotent producer of that name; it asks for its id when it first produces."""
    sequence: Annotated[int, Field(ge=0)] | None = None
    """Of the first record, with a producer. Left out: the one after all that it has sent; the same
    again is a retry."""
    base_offset: int = 0
    """In the batch: the offset that is expected under KIP-27, -1 for any. Where ``every_ms`` makes
    each record a batch, those of later records follow, if this is given and not -1."""
    wait_ms: _Ms = TIMEOUT_MS
    """How long the broker may wait for other replicas, with acks=all."""
    every_ms: _Ms | None = None
    """Each record is a batch of its own, sent so long after the answer to the one before. Left
    out: all are one batch."""
    retry_ms: _Ms = 0
    """For so long a batch is sent again to the leader that metadata names, after errors that may
    pass and connections that are lost."""

    @model_validator(mode="after")
    def _says_what_to_send(self) -> Self:
        if not self.batches:
            if not self.records:
                raise ValueError("records is left out (or batches, where there are several)")
            return self
        for name in _OF_ONE_BATCH:
            if name in self.model_fields_set:
                raise ValueError(f"batches are given, which have their own {name}")
        if self.every_ms is not None:
            raise ValueError("batches are sent at once, and every_ms is for records")
        return self


_OF_ONE_BATCH: Final = ("records", "sequence", "base_offset")


class FetchBody(PartitionBody):
    """Records from a partition."""

    offset: Annotated[int, Field(ge=0)] = 0
    epoch: int = -1
    """The current leader epoch, as the client believes; -1: not said."""
    last_epoch: int = -1
    """The epoch of the record before the offset; -1: not said."""
    isolation: Isolated = "read_uncommitted"
    wait_ms: _Ms = 0
    """How long the broker may wait for ``min_bytes``."""
    min_bytes: Annotated[int, Field(ge=0)] = 1
    max_bytes: Annotated[int, Field(ge=0)] = 1 << 20
    rack: str = ""


class ListOffsetsBody(PartitionBody):
    """An offset by what it means, or by time."""

    at: Target = "latest"
    """What is meant, or a timestamp."""
    epoch: int = -1
    """The current leader epoch, as the client believes; -1: not said."""
    isolation: Isolated = "read_uncommitted"
    replica: int = -1
    """The broker id of a replica that asks; -1: a consumer does."""


class EpochEndBody(PartitionBody):
    """Where an epoch ends."""

    of: int
    """The epoch asked about."""
    epoch: int = -1
    """The current leader epoch, as the client believes; -1: not said."""


class MetadataBody(PartitionBody):
    """A partition as a broker sees it; the first broker that runs, if none is named."""


class GroupBody(ActionBody):
    """What is asked of a group's coordinator."""

    group: str


class CommitBody(GroupBody):
    """An offset to be committed."""

    topic: str
    partition: _Index = 0
    offset: Annotated[int, Field(ge=-1)]
    epoch: int = -1
    """The epoch of the record before the offset; -1: not said."""
    metadata: str = ""
    member: str | None = None
    """In the name of a member that has joined."""


class CommittedBody(GroupBody):
    """What is committed for a partition."""

    topic: str
    partition: _Index = 0
    stable: bool = False
    """Whether to be refused while a transaction commits for the group."""


class FindCoordinatorBody(GroupBody):
    """A group whose coordinator is looked for."""


class JoinBody(GroupBody):
    """A member that joins, or joins again; it is done when all members have joined."""

    member: str
    """A name in this scenario; the first time also the name of the client."""
    topics: Listed[str]
    session_timeout_ms: _Ms = 30_000
    rebalance_timeout_ms: _Ms = 30_000
    instance: str | None = None
    """Group instance id of a static member."""
    heartbeat_ms: _Ms = 0
    """Then it lives on as a consumer does: heartbeats so often, and joins again when it has to.
    0: it does nothing by itself."""


class MemberBody(ActionBody):
    """A member that has joined; a request about it goes to its group's coordinator."""

    member: str


class ReplicatedBody(PartitionBody):
    """A follower, of which is told what it was sent."""

    replica: int
    """Broker id."""


class CallBody(ActionBody):
    """Any request of any API."""

    api: str
    """Kafka's name, such as ``DescribeGroups``, or the key."""
    request: dict[str, object] = Field(default_factory=dict)
    """Its fields by Kafka's names in snake_case; those left out have Kafka's defaults."""
