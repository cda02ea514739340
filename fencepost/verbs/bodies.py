"""The bodies and queries of the control API, as data. They are validated before any effect.

Names are the contract's: fields may be added, none renamed or removed. Offsets named ``end`` and
high watermarks are exclusive, all others inclusive; times are milliseconds.
"""

import json
from typing import Annotated, ClassVar, Final, Literal, Self, TypeAlias, TypeVar

from msgspec import Meta, field

from fencepost.broker.controller import Fence
from fencepost.protocol.topic_text import config_pairs, topic_fields
from fencepost.verbs.model import Before, Checked, Examples, Says
from fencepost.verbs.problems import InvalidModel, Problem
from fencepost.verbs.reading import read_checked

T = TypeVar("T")
Listed: TypeAlias = tuple[T, ...]
"""A JSON array."""

MAX_FETCHES: Final = 1000
MAX_LISTED: Final = 4096
MAX_DELAY_MS: Final = 24 * 3600 * 1000
DEFAULT_TIMEOUT_MS: Final = 10_000
MAX_ADVANCE_MS: Final = 31 * 24 * 3600 * 1000
"""A month: brokers do something every few seconds, and nothing else happens until all is done."""


class Body(Checked, dict=True):
    """A request. No value is converted, and an unknown field is refused.

    Its fields are not checked when it is made, but when it is read.
    """

    null_counts: ClassVar[frozenset[str]] = frozenset()
    """Fields of which null says something else than their absence."""

    @classmethod
    def model_validate(cls, given: object) -> Self:
        """See `Model.model_validate`; all that is wrong is named."""
        return read_checked(cls, given)

    @classmethod
    def model_validate_json(cls, content: str | bytes) -> Self:
        """See `Model.model_validate_json`; all that is wrong is named."""
        try:
            given = json.loads(content)
        except ValueError as error:
            raise InvalidModel([Problem(text=f"no JSON: {error}", given=content)]) from None
        return cls.model_validate(given)

    def to_json(self) -> dict[str, object]:
        """The fields to send: those that are not the default, and each null that counts."""
        sent = self.model_dump(mode="json", exclude_defaults=True)
        given = self.null_counts & self.model_fields_set
        return sent | {name: None for name in given if getattr(self, name) is None}


class NewTopicBody(Body):
    """A topic to create: counts, or assignments, not both."""

    name: str
    """Its name, or ``NAME[:PARTITIONS[:RF]][,KEY=VALUE...]`` in place of the other fields, as
    ``serve --topic`` has it: ``orders:3:2,retention.ms=1000``."""
    partitions: int | None = None
    """Left out: the broker config ``num.partitions``."""
    replication_factor: int | None = None
    """Left out: the broker config ``default.replication.factor``."""
    assignments: Listed[Listed[int]] | None = None
    """The broker ids of each partition in order of index, the preferred leader first."""
    configs: Annotated[dict[str, str], Before(config_pairs)] = field(default_factory=dict)
    """Topic configs by Kafka's names, as text; or a list of ``KEY=VALUE``."""

    @classmethod
    def read_first(cls, given: object) -> object:
        """No name of Kafka's has a colon or a comma; one that is wrong is refused as a name."""
        name = given.get("name") if isinstance(given, dict) else None
        if not isinstance(given, dict) or not isinstance(name, str) or not {":", ","} & set(name):
            return given
        try:
            spelled = topic_fields(name)
        except ValueError:
            return given
        for each in ("partitions", "replication_factor", "assignments", "configs"):
            if given.get(each):
                raise ValueError(f"{each}: name {name!r} has it too, or stands in its place")
        return {**given, **spelled}

    examples: ClassVar[Examples] = [
        {"name": "orders", "partitions": 3, "replication_factor": 3},
        {
            "name": "payments",
            "assignments": [[1, 2, 3], [3, 1, 2]],
            "configs": {"cleanup.policy": "compact"},
        },
    ]


GivenTopic: TypeAlias = str | NewTopicBody
"""A topic to create; a text is its name, or what ``serve --topic`` takes."""


class ResetBody(Body):
    """What a cluster has after a reset."""

    topics: Annotated[Listed[GivenTopic], Meta(max_length=MAX_LISTED)] = ()
    """Topics that are created before any request is answered, each as an object, or as text:
    ``orders:3:2,retention.ms=1000``. A client that is still connected can't create them first.
    Where one is refused, the cluster has been reset, and has those before it."""

    def check(self) -> None:
        """All can be read."""
        self.all_topics()

    def all_topics(self) -> tuple[NewTopicBody, ...]:
        """The topics, however they are given.

        :raises ValueError: When a text is none.
        """
        return tuple(
            NewTopicBody.model_validate({"name": each}) if isinstance(each, str) else each
            for each in self.topics
        )

    examples: ClassVar[Examples] = [
        {},
        {"topics": [{"name": "orders", "partitions": 3, "replication_factor": 3}]},
    ]


class ElectBody(Body):
    """An election."""

    leader: int
    """Broker id; it must be in the ISR, unless the election is unclean."""
    unclean: bool = False
    """Whether a replica outside the ISR may lead; the ISR is then this replica alone."""

    examples: ClassVar[Examples] = [{"leader": 2}, {"leader": 3, "unclean": True}]


class HoldBody(Body):
    """How far a replica may fetch."""

    at: Annotated[int, Meta(ge=0)] | None = None
    """It fetches up to this offset (exclusive), by whole batches; null: it stops at once."""
    leave_isr: bool = False
    """Whether its leader drops it from the ISR now. Otherwise it stays until it has lagged for
    ``replica.lag.time.max.ms``."""

    examples: ClassVar[Examples] = [{}, {"at": 17}, {"leave_isr": True}]


class StepBody(Body):
    """How many requests a replica sends."""

    fetches: Annotated[int, Meta(ge=1, le=MAX_FETCHES)] = 1

    examples: ClassVar[Examples] = [{}, {"fetches": 2}]


class KillBody(Body):
    """When the controller notices that the broker is down."""

    fence: Fence = Fence.NOW
    """When the controller considers the broker offline: ``now``, after a ``timeout`` of
    ``broker.session.timeout.ms``, or ``never``."""

    examples: ClassVar[Examples] = [{}, {"fence": "never"}]


def require_utf8(given: object) -> None:
    """Refuse half of a surrogate pair, which JSON can write, and which is no text.

    :raises ValueError: Where a text has one.
    """
    try:
        if isinstance(given, str):
            given.encode()
    except UnicodeEncodeError as error:
        raise ValueError("input should be text that UTF-8 can encode") from error


Origin: TypeAlias = Annotated[
    Literal["controller"] | Annotated[Listed[int], Meta(min_length=1)],
    Says('input should be "controller" or an array of broker ids'),
]


class IsolateBody(Body):
    """The nodes from which a broker is cut off; clients still reach it."""

    origin: Origin = field(name="from")
    """``"controller"``, or broker ids. Links that were cut before stay cut."""
    fence: Fence | None = None
    """When the controller considers the broker offline: ``now`` where it is left out, after a
    ``timeout`` of ``broker.session.timeout.ms``, or ``never``."""

    examples: ClassVar[Examples] = [{"from": "controller"}, {"from": [1, 3]}]


class AdvanceBody(Body):
    """How far a manual clock is advanced."""

    ms: Annotated[int, Meta(ge=0, le=MAX_ADVANCE_MS)]

    examples: ClassVar[Examples] = [{"ms": 30000}]


# -- the remote tier ----------------------------------------------------------------------------


class TierBody(Body):
    """An action on a partition's remote tier (KIP-405).

    The leader does it, whatever the tier's own intervals say. What it does with the tier meets
    tier faults; ``forget`` and ``lose`` do not.
    """

    action: Literal["upload", "delete-local", "expire", "forget", "lose"]
    """``upload``: the leader's task runs now: it lists the tier and uploads every segment that may
    go there. ``delete-local``: all replicas delete the closed segments that the tier has,
    whatever local retention says. ``expire``: retention in the tier runs now. ``forget``: the
    leader drops its view of the tier, as if it were newly elected, and answers -1 for the offsets
    of the tier's end until its task has run again. ``lose``: the tier loses all objects of the
    partition, and no broker is notified."""

    examples: ClassVar[Examples] = [{"action": "upload"}, {"action": "delete-local"}]


class TierFaultBody(Body):
    """A fault of the remote tier: which operations it hits, and its effect."""

    operation: Literal["upload", "fetch", "delete", "list"]
    """``upload``: a segment is copied; ``fetch``: something of one is read; ``delete``: one is
    deleted; ``list``: a leader learns what there is."""
    error: str | Literal[True] | None = None
    """The operation fails with this message; true: with a default message."""
    delay_ms: Annotated[int, Meta(ge=0, le=MAX_DELAY_MS)] | None = None
    """How much later the operation begins, or fails."""
    count: Annotated[int, Meta(ge=1)] | None = 1
    """How many operations it hits before it ends; null: all, always."""

    @classmethod
    def check_field(cls, name: str, value: object) -> None:
        """Refuse a message that is none, or that no answer could carry."""
        if name == "error" and value == "":
            raise ValueError("say something, or true")
        require_utf8(value)

    def check(self) -> None:
        """It has an effect."""
        if self.error is None and self.delay_ms is None:
            raise ValueError("name error or delay_ms")

    examples: ClassVar[Examples] = [
        {"operation": "upload", "error": "no space left"},
        {"operation": "fetch", "delay_ms": 200, "count": None},
    ]


# -- faults -------------------------------------------------------------------------------------


class HitsFilter(Body):
    """The hits to wait for."""

    is_query: ClassVar[bool] = True

    hits: Annotated[int, Meta(ge=1)] = 1
    """The number of hits."""
    timeout_ms: Annotated[int, Meta(ge=0, le=MAX_DELAY_MS)] = DEFAULT_TIMEOUT_MS
    """In real time."""


# -- journal and events -------------------------------------------------------------------------


class TraceFilter(Body):
    """A filter of the journal's exchanges; all of its fields must match."""

    is_query: ClassVar[bool] = True

    api: str | None = None
    """Kafka's name of the API, such as ``ListOffsets``, or its key."""
    client_id: str | None = None
    topic: str | None = None
    """Named in the request or in its answer; also by its id, while the topic exists."""
    broker: int | None = None
    """The broker that received the request."""
    source: Literal["clients", "brokers", "all"] | None = None
    """Senders: clients, or the followers of this cluster. Left out: any source with the client
    id;
    clients where none is given."""
    error: str | None = None
    """Kafka's name of an error that occurs in the answer, or its code."""
    since: Annotated[int, Meta(ge=0)] = 0
    """Only exchanges with a higher ``number``."""


class TraceQuery(TraceFilter):
    """A filter of the journal's exchanges, and their number."""

    limit: Annotated[int, Meta(ge=1, le=MAX_LISTED)] = 100
    """The maximum; the newest ones are answered."""


class TraceWait(TraceFilter):
    """The exchange to wait for. It may be in the journal already; of several it is
    the oldest.
    """

    timeout_ms: Annotated[int, Meta(ge=0, le=MAX_DELAY_MS)] = DEFAULT_TIMEOUT_MS
    """In real time."""


class EventFilter(Body):
    """The events to stream."""

    is_query: ClassVar[bool] = True

    since: Annotated[int, Meta(ge=0)] | None = None
    """Begin with the kept events of a higher ``number``; 0: with the first ones."""
    follow: bool = True
    """Whether later events are sent as they happen. If not, the answer is the kept events as lines
    of JSON; without ``since`` all of them."""


class TimelineQuery(Body):
    """Where the timeline begins, and how long it may be."""

    is_query: ClassVar[bool] = True

    since: Annotated[int, Meta(ge=0)] = 0
    """Only events of a higher ``number``."""
    requests_since: Annotated[int, Meta(ge=0)] = 0
    """Only requests of a higher ``number``."""
    limit: Annotated[int, Meta(ge=4, le=MAX_LISTED)] = 500
    """The maximum of lines; of more, some in the middle are left out."""
