"""The kinds of faults: one class each, with its value, its checks and what it does to a request.

A class here is all that a kind needs: JSON, the command line and the page derive theirs from `name`
and from the one field. The docstring below that field, or the class's own where there is no field,
is its description. The command line imports this module, so it imports nothing at the top that
carries out requests.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final

from fencepost.broker.faults.selectors import JsonForm, Limits, Selectors, json_forms
from fencepost.protocol.apis import Api
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.lookup import find_error

if TYPE_CHECKING:
    from fencepost.broker.faults.interceptor import Interception

MAX_DELAY_MS: Final = 24 * 3600 * 1000
_KNOWN_ERRORS: Final = frozenset(ErrorCode)


class Action(ABC):
    """What a fault does to a request that it hits."""

    name: ClassVar[str]
    """The field of JSON that says it."""
    changes_responses: ClassVar[bool] = False
    """Whether it changes the response, and so may select a partition that only that names."""

    @abstractmethod
    def problems(self, selectors: Selectors, /) -> Iterator[str]:
        """Why no request that is selected could meet it, one line each."""

    @abstractmethod
    def intercept(self, hit: "Interception") -> object:
        """Answer a request that it hits."""

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

    def problems(self, selectors: Selectors, /) -> Iterator[str]:
        """Only an error, and only of what the API has an error for."""
        from fencepost.broker.faults.request_fields import topic_fields

        if self.code == ErrorCode.NONE:
            yield "action: error: NONE is no error"
        topics = None if selectors.topic is None else topic_fields(selectors.api)
        if topics is not None and topics.response_field is None:
            title = selectors.api.title
            yield f"topic: {title} has no error for one topic, only for all; leave it out"

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

    def problems(self, _selectors: Selectors, /) -> Iterator[str]:
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

    def problems(self, _selectors: Selectors, /) -> Iterator[str]:
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

    def problems(self, selectors: Selectors, /) -> Iterator[str]:
        """Only where the response has a throttle time."""
        from fencepost.broker.faults.request_fields import throttled_since

        api, versions = selectors.api, selectors.versions
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

    def problems(self, _selectors: Selectors, /) -> Iterator[str]:
        """Any response can be dropped."""
        yield from ()

    def intercept(self, hit: "Interception") -> object:
        """Carry out, and never respond."""
        return hit.carry_out_unanswered()


@dataclass(frozen=True)
class Corrupt(Action):
    """One byte of the records is changed: of a Produce request, or of a Fetch answer."""

    name = "corrupt"

    def problems(self, selectors: Selectors, /) -> Iterator[str]:
        """Only messages with records."""
        if selectors.api.name not in ("produce", "fetch"):
            records = "Produce and Fetch, which bring records"
            yield f"action: corrupt is for {records}; {selectors.api.title} does not"

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

    def problems(self, selectors: Selectors, /) -> Iterator[str]:
        """Only Metadata."""
        if selectors.api.name != "metadata":
            yield f"action: stale_metadata is for Metadata, not for {selectors.api.title}"

    def intercept(self, hit: "Interception") -> object:
        """Change the response."""
        from fencepost.broker.faults.wrong_responses import with_stale_epoch

        return with_stale_epoch(hit, self.epoch)


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
