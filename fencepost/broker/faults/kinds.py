"""The kinds of faults: one class each, with its value, its checks and what it does to a request.

A class here is all that a kind needs: JSON, the command line and the page derive theirs from `name`
and from the one field. The docstring below that field, or the class's own where there is no field,
is its description. The command line imports this module, so it imports nothing at the top that
carries out requests.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum, auto
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final

from fencepost.broker.faults.selectors import JsonForm, Limits, Selectors, json_forms
from fencepost.protocol.apis import Api
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.lookup import find_error

if TYPE_CHECKING:
    from fencepost.broker.faults.interceptor import Interception

MAX_DELAY_MS: Final = 24 * 3600 * 1000
MAX_BANDWIDTH: Final = 1 << 40
_SLICE_MS: Final = 50
"""How often bytes are sent where a bandwidth is limited."""
_KNOWN_ERRORS: Final = frozenset(ErrorCode)


class Target(StrEnum):
    """What a fault hits."""

    REQUESTS = auto()
    CONNECTIONS = auto()
    """New ones, before any request of them."""
    PORTS = auto()


class Action(ABC):
    """What a fault does to a request that it hits, or to a connection or port."""

    name: ClassVar[str]
    """The field of JSON that says it."""
    target: ClassVar[Target] = Target.REQUESTS
    changes_responses: ClassVar[bool] = False
    """Whether it changes the response, and so may select a partition that only that names."""
    has_count: ClassVar[bool] = True
    """Whether it ends after a number of hits."""
    only_counts: ClassVar[bool] = False
    """Whether other faults may hit the same request."""
    needs_bytes: ClassVar[bool] = False
    """Whether it acts on bytes, which only clients send: brokers exchange messages."""

    @abstractmethod
    def problems(self, selectors: Selectors, api: Api, /) -> Iterator[str]:
        """Why no request of an API that is selected could meet it, one line each."""

    def intercept(self, hit: "Interception") -> object:
        """Answer a request that it hits; carries it out, unless a kind does something else."""
        return hit.carry_out()

    def first_version(self, api: Api) -> int:
        """The first version of an API whose requests it can hit."""
        return api.min_version

    def is_decided_by_response(self, _api: Api, /) -> bool:
        """Whether only the response tells if a request of this API is hit."""
        return False

    def to_json(self) -> dict[str, object]:
        """One field: the kind's name, and its value or true."""
        forms = json_forms(type(self))
        for each in fields(self):  # type: ignore[arg-type]  # every kind is a dataclass
            value = getattr(self, each.name)
            return {self.name: forms[each.name].write(value) if each.name in forms else value}
        return {self.name: True}


class DisconnectWhen(StrEnum):
    """When a connection is closed."""

    BEFORE = "before"
    """The request is not carried out."""
    AFTER = "after"
    """The request was carried out, and its response would be sent now."""


def _error_name(code: int) -> str | int:
    return ErrorCode(code).name if code in _KNOWN_ERRORS else code


_ERROR: Final = JsonForm(
    given=str | int,
    answered=str | int,
    read=lambda given: find_error(str(given)),
    write=_error_name,
)


@dataclass(frozen=True)
class Refuse(Action):
    """Refuse with an error code."""

    name = "error"
    changes_responses = True

    code: int = field(metadata=_ERROR.as_metadata())
    """Kafka's name of an error, or its code. The request is refused with it and not carried out;
    REQUEST_TIMED_OUT comes after it was, as at a real broker."""

    def problems(self, selectors: Selectors, api: Api, /) -> Iterator[str]:
        """Only an error, and only of what the API has an error for."""
        from fencepost.broker.faults.request_fields import topic_fields

        if self.code == ErrorCode.NONE:
            yield "action: error: NONE is no error"
        topics = None if selectors.topic is None else topic_fields(api)
        if topics is not None and topics.response_field is None:
            yield f"topic: {api.title} has no error for one topic, only for all; leave it out"

    def intercept(self, hit: "Interception") -> object:
        """Refuse what is selected; carry out the rest."""
        from fencepost.broker.faults.partial_refusal import refuse

        return refuse(hit, self.code)


@dataclass(frozen=True)
class Delay(Action):
    """Delay a request; no later request of its connection overtakes it."""

    name = "delay"

    ms: Annotated[int, Limits(ge=0, le=MAX_DELAY_MS)]
    """Milliseconds that the request waits in the broker's queue, and its connection with it."""

    def problems(self, _selectors: Selectors, _api: Api, /) -> Iterator[str]:
        """Any request can be delayed."""
        yield from ()

    def intercept(self, hit: "Interception") -> object:
        """Carry the request out later, even if the client no longer waits."""
        return hit.carry_out_later(self.ms)


@dataclass(frozen=True)
class Disconnect(Action):
    """Close the connection instead of a response."""

    name = "disconnect"

    when: DisconnectWhen = field(
        metadata=JsonForm(
            given=DisconnectWhen,
            answered=DisconnectWhen,
            read=DisconnectWhen,
            write=lambda when: when.value,
        ).as_metadata()
    )
    """The connection closes instead of an answer: before the request is executed, or after."""

    def problems(self, _selectors: Selectors, _api: Api, /) -> Iterator[str]:
        """Any connection can be closed."""
        yield from ()

    def intercept(self, hit: "Interception") -> object:
        """Hang up, before or after."""
        from fencepost.broker.core.outcomes import HANG_UP

        if self.when is DisconnectWhen.BEFORE:
            return HANG_UP
        return hit.block(hit.carry_out(), lambda _: HANG_UP)


@dataclass(frozen=True)
class Throttle(Action):
    """Respond with a throttle time, and do not read from the connection for as long (KIP-219)."""

    name = "throttle"

    ms: Annotated[int, Limits(ge=0, le=MAX_DELAY_MS)]
    """``throttle_time_ms`` of the answer, during which the connection is not read (KIP-219)."""

    def problems(self, selectors: Selectors, api: Api, /) -> Iterator[str]:
        """Only where the response has a throttle time."""
        from fencepost.broker.faults.request_fields import throttled_since

        versions = selectors.versions
        since = throttled_since(api)
        if since is None:
            yield f"action: throttle: answers to {api.title} have no throttle_time_ms"
        elif versions is not None and not any(
            version in versions for version in range(since, api.max_version + 1)
        ):
            yield (
                f"action: throttle: answers to {api.title} have throttle_time_ms from version "
                f"{since} on, and versions says {versions}"
            )

    def first_version(self, api: Api) -> int:
        """The first version whose response has a throttle time."""
        from fencepost.broker.faults.request_fields import throttled_since

        return throttled_since(api) or api.min_version

    def intercept(self, hit: "Interception") -> object:
        """Send the response with the throttle time."""
        return hit.block(hit.carry_out(), lambda response: hit.throttle(response, self.ms))


@dataclass(frozen=True)
class Drop(Action):
    """The request is executed and never answered, nor is any later one on its connection."""

    name = "drop"

    def problems(self, _selectors: Selectors, _api: Api, /) -> Iterator[str]:
        """Any response can be dropped."""
        yield from ()

    def intercept(self, hit: "Interception") -> object:
        """Carry out, and never respond."""
        return hit.carry_out_unanswered()


@dataclass(frozen=True)
class Corrupt(Action):
    """One byte of the records is changed: of a Produce request, or of a Fetch answer."""

    name = "corrupt"

    def problems(self, _selectors: Selectors, api: Api, /) -> Iterator[str]:
        """Only messages with records."""
        if api.name not in ("produce", "fetch"):
            records = "Produce and Fetch, which bring records"
            yield f"action: corrupt is for {records}; {api.title} does not"

    def is_decided_by_response(self, api: Api, /) -> bool:
        """A Fetch without records can't be corrupted."""
        return api.name == "fetch"

    def intercept(self, hit: "Interception") -> object:
        """Change the request, or the response."""
        from fencepost.broker.faults.wrong_responses import corrupt

        return corrupt(hit)


@dataclass(frozen=True)
class StaleMetadata(Action):
    """Answer the metadata of partitions as it was in an earlier leader epoch (KIP-232)."""

    name = "stale_metadata"
    changes_responses = True

    epoch: Annotated[int, Limits(ge=0)]
    """Metadata answers the leader, its epoch and the ISR as they were in this leader epoch."""

    def problems(self, _selectors: Selectors, api: Api, /) -> Iterator[str]:
        """Only Metadata."""
        if api.name != "metadata":
            yield f"action: stale_metadata is for Metadata, not for {api.title}"

    def intercept(self, hit: "Interception") -> object:
        """Change the response."""
        from fencepost.broker.faults.wrong_responses import with_stale_epoch

        return with_stale_epoch(hit, self.epoch)


@dataclass(frozen=True)
class Bandwidth(Action):
    """Let a request and its response take the time that their bytes take on a slow line."""

    name = "bandwidth"
    needs_bytes = True

    bytes_per_s: Annotated[int, Limits(ge=1, le=MAX_BANDWIDTH)]
    """Bytes a second: the request is carried out when all of it has come at this rate, and its
    answer is sent at this rate; the connection waits meanwhile."""

    def problems(self, _selectors: Selectors, _api: Api, /) -> Iterator[str]:
        """Any request has bytes."""
        yield from ()

    def intercept(self, hit: "Interception") -> object:
        """Carry the request out when its last byte has come, and send the response as slowly."""
        size = max(1, self.bytes_per_s * _SLICE_MS // 1000)
        ms = -(-hit.ctx.request_bytes * 1000 // self.bytes_per_s)
        return hit.carry_out_later(ms, lambda response: hit.pace(response, size, self.bytes_per_s))


@dataclass(frozen=True)
class Pieces(Action):
    """Send a response in pieces."""

    name = "pieces"
    needs_bytes = True

    size: Annotated[int, Limits(ge=1)]
    """Bytes of each piece in which the answer is sent, so that it comes in several reads."""

    def problems(self, _selectors: Selectors, _api: Api, /) -> Iterator[str]:
        """Any response has bytes."""
        yield from ()

    def intercept(self, hit: "Interception") -> object:
        """Carry out, and send the response piece by piece."""
        return hit.block(hit.carry_out(), lambda response: hit.pace(response, self.size, None))


@dataclass(frozen=True)
class Silent(Action):
    """A new connection is accepted, and nothing is read from it until the fault is removed."""

    name = "silent"
    target = Target.CONNECTIONS

    def problems(self, _selectors: Selectors, _api: Api, /) -> Iterator[str]:
        """Any connection can be silent."""
        yield from ()


@dataclass(frozen=True)
class RefuseConnections(Action):
    """New connections are refused while the broker is up, and its port stays its own."""

    name = "refuse"
    target = Target.PORTS
    has_count = False

    def problems(self, _selectors: Selectors, _api: Api, /) -> Iterator[str]:
        """Any port can refuse."""
        yield from ()


@dataclass(frozen=True)
class Observe(Action):
    """Only count the request; other faults may hit it too."""

    name = "observe"
    has_count = False
    only_counts = True

    def problems(self, _selectors: Selectors, _api: Api, /) -> Iterator[str]:
        """Any request can be counted."""
        yield from ()


@dataclass(frozen=True)
class Pass(Action):
    """Carry the request out as usual; no later fault hits it."""

    name = "pass"

    def problems(self, _selectors: Selectors, _api: Api, /) -> Iterator[str]:
        """Any request can be left alone."""
        yield from ()


KINDS: Final[Mapping[str, type[Action]]] = {kind.name: kind for kind in Action.__subclasses__()}
"""Every kind by its name, in the order of this module."""


def action_from_json(given: Mapping[str, Any]) -> Action:
    """Make the action that checked JSON describes: one field with a value.

    :raises UnknownName: Where Kafka has no error of that name.
    """
    ((name, value),) = given.items()
    kind = KINDS[name]
    forms = json_forms(kind)
    values = (
        forms[each.name].read(value) if each.name in forms else value
        for each in fields(kind)  # type: ignore[arg-type]  # every kind is a dataclass
    )
    return kind(*values)
