"""How a shard's log tells operations: one record each, JSON that any consumer can read.

Each entry has an id that no other entry has, of this process or of another. Without it, two nodes
that log the same operation at the same offset could not tell whose it is that is there.
"""

import json
from dataclasses import dataclass

from examples.kvstore.state import Kind, Operation


class UnreadableLog(Exception):
    """A record of the log is none that this program wrote."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A record of the log."""

    id: str
    operation: Operation | None
    """None is a barrier: it changes nothing, and shows that the log ended there."""


def encode(entry: Entry) -> tuple[bytes | None, bytes]:
    """Key and value of the record."""
    operation = entry.operation
    if operation is None:
        return None, _json({"id": entry.id, "op": _BARRIER})
    said: dict[str, str | None] = {"id": entry.id, "op": operation.kind.value}
    if operation.kind is not Kind.DELETE:
        said["value"] = operation.value
    if operation.kind is Kind.CAS:
        said["expected"] = operation.expected
    return operation.key.encode(), _json(said)


def decode(key: bytes | None, value: bytes | None) -> Entry:
    """The entry that a record tells.

    :raises UnreadableLog: When it tells none.
    """
    try:
        said = json.loads(value or b"")
        if said["op"] == _BARRIER:
            return Entry(id=said["id"], operation=None)
        operation = Operation(
            kind=Kind(said["op"]),
            key=(key or b"").decode(),
            value=said.get("value"),
            expected=said.get("expected"),
        )
        return Entry(id=said["id"], operation=operation)
    except (ValueError, KeyError, TypeError) as error:
        raise UnreadableLog(f"no entry of the store: {key!r} {value!r}") from error


_BARRIER = "barrier"


def _json(said: dict[str, str | None]) -> bytes:
    return json.dumps(said, separators=(",", ":")).encode()
