"""The batches that a Produce of a scenario sends, as data."""

from typing import Annotated, Final

from msgspec import Meta, Struct, field

from fencepost.client.batches import NewRecord
from fencepost.scenario.actions.context import PartitionIndex
from fencepost.scenario.document import expand_ranges
from fencepost.verbs.bodies import Body, Listed
from fencepost.verbs.model import Before


class RecordBody(Body):
    """A record to be produced, as text."""

    key: str | None = None
    value: str | None = None
    headers: dict[str, str | None] = field(default_factory=dict)
    timestamp: int | None = None
    """Left out: the cluster's time."""


_SOME: Final = Meta(min_length=1)


def _as_records(given: object) -> object:
    """A text is a record's value."""
    if not isinstance(given, list):
        return given
    if not all(isinstance(each, str | dict) for each in given):
        raise ValueError("a record is text, or a mapping of key, value, headers and timestamp")
    return [{"value": each} if isinstance(each, str) else each for each in expand_ranges(given)]


Records = Annotated[
    Listed[RecordBody],
    _SOME,
    Before(_as_records, given=Annotated[Listed[RecordBody | str], _SOME]),
]


class BatchBody(Body):
    """One of the batches of a request."""

    topic: str | None = None
    """Left out: the action's. All are sent to who leads the first one's partition."""
    partition: PartitionIndex | None = None
    """Left out: the action's."""
    records: Records
    sequence: Annotated[int, Meta(ge=0)] | None = None
    """As in the action."""
    base_offset: int = 0
    """As in the action."""


class PartitionBatch(Struct, frozen=True, kw_only=True):
    """A batch, and which partition it is for."""

    topic: str
    partition: int
    content: BatchBody


def new_record(given: RecordBody, now_ms: int) -> NewRecord:
    """The record that is sent.

    :param now_ms: The timestamp where none is given.
    """
    return NewRecord(
        key=None if given.key is None else given.key.encode(),
        value=None if given.value is None else given.value.encode(),
        headers=tuple(
            (name, None if text is None else text.encode()) for name, text in given.headers.items()
        ),
        timestamp=now_ms if given.timestamp is None else given.timestamp,
    )
