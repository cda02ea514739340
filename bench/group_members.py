"""Members of one classic group, all of which join at once, on the raw client."""

from __future__ import annotations

import struct
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final

from bench import servers, wire

JOIN_GROUP: Final = 11
SYNC_GROUP: Final = 14
FIND_COORDINATOR: Final = 10
REBALANCE_IN_PROGRESS: Final = 27
METADATA_BYTES: Final = 64
"""Of each member's subscription and of its assignment."""
GROUP: Final = "many"
_SESSION_MS: Final = 120_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """A JoinGroup v3 answer; ``members`` are there for the leader alone."""

    generation: int
    leader: str
    member: str
    members: tuple[str, ...]


def _bytes(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


def find_coordinator_request(group: str) -> bytes:
    """FindCoordinator v2."""
    return wire.frame(FIND_COORDINATOR, 2, wire.string(group) + b"\0", flexible=False)


def decode_find_coordinator(answer: bytes) -> tuple[str, int]:
    """:raises bench.wire.BadAnswer: When there is none yet."""
    reader = wire.Reader(answer, 8)
    error = reader.int16()
    reader.string()
    reader.int32()
    if error:
        raise wire.BadAnswer(f"FindCoordinator answered error {error}")
    return reader.string() or "", reader.int32()


def join_request(group: str, member: str) -> bytes:
    """JoinGroup v3, of a member that is not known yet by an empty id."""
    body = wire.string(group) + struct.pack(">ii", _SESSION_MS, _SESSION_MS)
    body += wire.string(member) + wire.string("consumer") + struct.pack(">i", 1)
    body += wire.string("range") + _bytes(bytes(METADATA_BYTES))
    return wire.frame(JOIN_GROUP, 3, body, flexible=False)


def decode_join(answer: bytes) -> Joined:
    """:raises bench.wire.BadAnswer: When it is refused."""
    reader = wire.Reader(answer, 8)
    error, generation = reader.int16(), reader.int32()
    reader.string()
    leader, member = reader.string() or "", reader.string() or ""
    if error:
        raise wire.BadAnswer(f"JoinGroup answered error {error}")
    members = []
    for _ in range(reader.int32()):
        members.append(reader.string() or "")
        reader.take(reader.int32())
    return Joined(generation=generation, leader=leader, member=member, members=tuple(members))


def sync_request(group: str, joined: Joined) -> bytes:
    """SyncGroup v2, with the assignments of all where it is the leader's."""
    body = wire.string(group) + struct.pack(">i", joined.generation) + wire.string(joined.member)
    body += struct.pack(">i", len(joined.members))
    body += b"".join(wire.string(each) + _bytes(bytes(METADATA_BYTES)) for each in joined.members)
    return wire.frame(SYNC_GROUP, 2, body, flexible=False)


def decode_sync(answer: bytes) -> int:
    """Its error, 0 for none."""
    return wire.Reader(answer, 8).int16()


def rebalance(server: servers.Server, members: int) -> None:
    """Let so many members join at once, until all have an assignment of one generation.

    :raises bench.wire.BadAnswer: When one is refused, or is left out of the generation.
    """
    with server.connect() as connection:
        address = decode_find_coordinator(connection.ask(find_coordinator_request(GROUP)))
    with ExitStack() as opened:
        made = [opened.enter_context(wire.Connection.open(*address)) for _ in range(members)]
        ids = [""] * members
        while True:
            joined = _join(made, ids)
            ids = [each.member for each in joined]
            errors = _sync(made, joined)
            if not any(errors) and len({each.generation for each in joined}) == 1:
                return
            if any(error not in (0, REBALANCE_IN_PROGRESS) for error in errors):
                raise wire.BadAnswer(f"SyncGroup answered errors {set(errors)}")


def _join(made: list[wire.Connection], ids: list[str]) -> list[Joined]:
    for connection, member in zip(made, ids, strict=True):
        connection.send(join_request(GROUP, member))
    return [decode_join(connection.receive()) for connection in made]


def _sync(made: list[wire.Connection], joined: list[Joined]) -> list[int]:
    for connection, each in zip(made, joined, strict=True):
        connection.send(sync_request(GROUP, each))
    return [decode_sync(connection.receive()) for connection in made]
