"""The tables of groups, their members and their offsets."""

from collections.abc import Mapping, Sequence
from typing import Final

from fencepost.cli.output import GOOD, ODD, QUIET, STRONG, Block, Cell, Table, Text, line
from fencepost.verbs.answers.groups import (
    CommittedOffsetState,
    GroupsState,
    GroupState,
    MemberState,
)

_STATES: Final[Mapping[str, str]] = {"Stable": GOOD, "Empty": QUIET}
"""How a state looks; all others are odd."""
_MEMBERS: Final = ("member", "client", "host", "assignment")
_OFFSETS: Final = ("partition", "committed", "epoch", "log end", "lag", "member")
_UNKNOWN: Final = "-"


def group_answer(answer: GroupsState | GroupState) -> Sequence[Block]:
    """What is shown of an answer about groups."""
    match answer:
        case GroupsState():
            rows = tuple(
                (Text(each.group, STRONG), each.type, _state(each.state)) for each in answer.groups
            )
            return [Table(("group", "type", "state"), rows)]
        case GroupState():
            return _group(answer)


def _group(state: GroupState) -> Sequence[Block]:
    """A line for the group, a row for each member, a row for each partition."""
    protocol = "" if state.protocol is None else f", protocol {state.protocol}"
    blocks: list[Block] = [
        line(
            "group ",
            Text(state.group, STRONG),
            ": ",
            _state(state.state),
            f", generation {state.generation}{protocol}, coordinator {state.coordinator}"
            f" (__consumer_offsets-{state.offsets_partition})",
        )
    ]
    if state.members:
        blocks.append(Table(_MEMBERS, tuple(map(_member, state.members))))
    if state.offsets:
        blocks.append(Table(_OFFSETS, tuple(map(_offset, state.offsets))))
    return blocks


def _state(name: str) -> Text:
    return Text(name, _STATES.get(name, ODD))


def _member(member: MemberState) -> tuple[Cell, ...]:
    return (
        member.member_id,
        member.client_id,
        member.host,
        ", ".join(member.assignment) or _UNKNOWN,
    )


def _offset(state: CommittedOffsetState) -> tuple[Cell, ...]:
    return (
        Text(f"{state.topic}-{state.partition}", STRONG),
        *map(_number, (state.committed_offset, state.leader_epoch, state.log_end_offset)),
        Text(_UNKNOWN if state.lag is None else str(state.lag), ODD if state.lag else ""),
        state.member_id or _UNKNOWN,
    )


def _number(value: int) -> str:
    return _UNKNOWN if value < 0 else str(value)
