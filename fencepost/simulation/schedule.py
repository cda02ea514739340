"""Schedules as data: the steps of a run, in a form that can be printed and parsed.

A schedule is a cluster and the actions on it. It contains every decision of a seed, so that a
replay needs no seed, and leaving actions out of it makes a smaller one. In text the first
line is the cluster, and each line after it one action:

    cluster seed=7 brokers=3 partitions=1 replicas=3 min.insync=2 unclean=no fetch=17
    produce p0 to 1 acks=all x2
    deliver 1->2
    elect p0 2 clean

Nodes are broker ids, or ``controller``. ``p0`` is a partition, ``c1`` a client, ``a1``
an application with a consumer (`fencepost.simulation.consumers`), ``x1`` a transactional producer,
``r1`` a read_committed consumer, ``s0`` a partition of ``__transaction_state``, and ``g0`` one of
``__consumer_offsets`` (`fencepost.simulation.transactions`).
"""

import re
from enum import StrEnum
from typing import Final, NamedTuple

from msgspec import Struct

from fencepost.simulation.setup import ScheduleError, Setup, form_pattern, parse_setup

TOPIC: Final = "t"
"""The one topic of a simulated cluster."""
CONTROLLER_NUMBER: Final = -1
"""The controller as a node of an action: no broker's id."""
_CONTROLLER: Final = "controller"
"""The same in text."""


class ActionKind(StrEnum):
    """What an action does."""

    __hash__ = str.__hash__  # the one of an enum is a function in Python

    DELIVER = "deliver"
    """The oldest message of a link arrives."""
    SETTLE = "settle"
    """Messages arrive, link after link, until none is left."""
    ADVANCE = "advance"
    """Time passes, in ms."""
    PRODUCE = "produce"
    """A producer sends so many batches, one request each."""
    PRODUCE_EACH = "produce-each"
    """A producer sends one request with a batch for each partition."""
    CONSUME = "consume"
    """A consumer fetches where it is, under the leader epoch that it knows."""
    LIST = "list"
    """A client asks for the latest offset, under the leader epoch that it knows."""
    COMMIT = "commit"
    """A consumer commits where it is, and asks what was committed before."""
    DELETE = "delete"
    """A client deletes records up to the high watermark."""
    ELECT = "elect"
    PREFER = "prefer"
    """The preferred leader is elected, if it is in sync."""
    REASSIGN = "reassign"
    """An administrator gives a partition other replicas, or takes back what is in progress."""
    ELECT_LEADERS = "elect-leaders"
    """An administrator asks a broker for the preferred leader."""
    CONFIGURE = "configure"
    """An administrator asks a broker for another ``segment.ms`` of the topic."""
    STOP = "stop"
    KILL = "kill"
    START = "start"
    ISOLATE = "isolate"
    """A broker is cut off from the controller."""
    CUT = "cut"
    """Two brokers are cut off from each other."""
    REJOIN = "rejoin"
    HOLD = "hold"
    HOLD_AT = "hold-at"
    """A replica is held so many records behind its log end."""
    RELEASE = "release"
    STEP = "step"
    WIPE = "wipe"
    ROLL = "roll"
    FAULT = "fault"
    """The next requests of a broker's followers meet a fault."""
    STORE = "store"
    """The tier does what it was asked, or fails; number so many of what it has not done yet."""
    UPLOAD = "upload"
    """The leader's task runs."""
    DELETE_LOCAL = "delete-local"
    """All replicas let go of what the tier has."""
    EXPIRE = "expire"
    """Retention in the tier runs."""
    FORGET = "forget"
    """The leader forgets what it knows of the tier."""
    LOSE = "lose"
    """The tier loses what it has of a partition."""
    POLL = "poll"
    """An application polls, and heeds or ignores an error."""
    CARRY = "carry"
    """One of an application's requests or answers that are under way arrives, or is lost."""
    SAVE = "save"
    """An application commits its positions."""
    RESTART = "restart"
    """An application ends, and begins again where its group has committed."""
    INIT = "init"
    """A transactional producer asks for its producer id and epoch, as one that begins or goes on
    after an error."""
    SEND = "send"
    """A transactional producer sends a batch, the first of a transaction or a further one."""
    ARRIVE = "arrive"
    """The oldest batch of a transactional producer that is late arrives."""
    END = "end"
    """A transactional producer commits or aborts."""
    READ = "read"
    """A read_committed consumer fetches where it is."""
    COMMIT_OFFSET = "commit-offset"
    """A transactional producer commits an offset of its group in its transaction, or sends the
    commit again that has no answer."""
    FETCH_OFFSET = "fetch-offset"
    """A consumer of that group asks what is committed, stable or not."""
    ELECT_GROUP_COORDINATOR = "elect-group-coordinator"
    """A partition of ``__consumer_offsets`` is led by another broker."""
    WIPE_GROUP_COORDINATOR = "wipe-group-coordinator"
    """A replica of ``__consumer_offsets`` loses its disk."""
    ELECT_COORDINATOR = "elect-coordinator"
    """A partition of ``__transaction_state`` is led by another broker."""
    WIPE_COORDINATOR = "wipe-coordinator"
    """A replica of ``__transaction_state`` loses its disk."""


class Action(NamedTuple):
    """One step. Which fields count says the form of its verb."""

    kind: ActionKind
    partition: int = 0
    broker: int = 0
    other: int = 0
    """The other node of a link, or the client."""
    amount: int = 0
    how: str = ""

    def __str__(self) -> str:
        fields = self._asdict()
        if self.kind is ActionKind.DELIVER:
            fields |= {"broker": _node(self.broker), "other": _node(self.other)}
        return f"{self.kind} {FORMS[self.kind].format(**fields)}".rstrip()


def _node(number: int) -> str:
    return _CONTROLLER if number == CONTROLLER_NUMBER else str(number)


FORMS: Final[dict[ActionKind, str]] = {
    ActionKind.DELIVER: "{other}->{broker}",
    ActionKind.SETTLE: "",
    ActionKind.ADVANCE: "{amount}",
    ActionKind.PRODUCE: "p{partition} to {broker} acks={how} x{amount}",
    ActionKind.PRODUCE_EACH: "to {broker} acks={how}",
    ActionKind.CONSUME: "c{other} p{partition} from {broker}",
    ActionKind.LIST: "c{other} p{partition} from {broker}",
    ActionKind.COMMIT: "c{other} p{partition} from {broker}",
    ActionKind.DELETE: "p{partition} at {broker}",
    ActionKind.ELECT: "p{partition} {broker} {how}",
    ActionKind.PREFER: "p{partition}",
    ActionKind.REASSIGN: "p{partition} to {how}",
    ActionKind.ELECT_LEADERS: "p{partition} via {broker}",
    ActionKind.CONFIGURE: "segment.ms={amount} via {broker}",
    ActionKind.STOP: "{broker}",
    ActionKind.KILL: "{broker} fence={how}",
    ActionKind.START: "{broker}",
    ActionKind.ISOLATE: "{broker} fence={how}",
    ActionKind.CUT: "{broker} {other}",
    ActionKind.REJOIN: "{broker}",
    ActionKind.HOLD: "p{partition} {broker} isr={how}",
    ActionKind.HOLD_AT: "p{partition} {broker} +{amount}",
    ActionKind.RELEASE: "p{partition} {broker}",
    ActionKind.STEP: "p{partition} {broker}",
    ActionKind.WIPE: "p{partition} {broker}",
    ActionKind.ROLL: "p{partition}",
    ActionKind.FAULT: "{broker} {how} x{amount}",
    ActionKind.STORE: "{how} {amount}",
    ActionKind.UPLOAD: "p{partition}",
    ActionKind.DELETE_LOCAL: "p{partition}",
    ActionKind.EXPIRE: "p{partition}",
    ActionKind.FORGET: "p{partition}",
    ActionKind.LOSE: "p{partition}",
    ActionKind.POLL: "a{other} {how}",
    ActionKind.CARRY: "a{other} {amount} {how}",
    ActionKind.SAVE: "a{other}",
    ActionKind.RESTART: "a{other}",
    ActionKind.INIT: "x{other} via {broker}",
    ActionKind.SEND: "x{other} p{partition} to {broker} {how}",
    ActionKind.ARRIVE: "x{other}",
    ActionKind.END: "x{other} {how} via {broker}",
    ActionKind.READ: "r{other} p{partition} from {broker}",
    ActionKind.COMMIT_OFFSET: "x{other} p{partition} via {broker}",
    ActionKind.FETCH_OFFSET: "x{other} p{partition} via {broker} {how}",
    ActionKind.ELECT_GROUP_COORDINATOR: "g{partition} {broker}",
    ActionKind.WIPE_GROUP_COORDINATOR: "g{partition} {broker}",
    ActionKind.ELECT_COORDINATOR: "s{partition} {broker}",
    ActionKind.WIPE_COORDINATOR: "s{partition} {broker}",
}
"""What stands behind each verb, and how it is read."""

ACKS_ALL: Final = "all"
ACKS_LEADER: Final = "1"
CLEAN: Final = "clean"
UNCLEAN: Final = "unclean"
STAY: Final = "stay"
LEAVE: Final = "leave"
BACK: Final = "back"
DONE: Final = "done"
FAILS: Final = "fails"
HEED: Final = "heed"
IGNORE: Final = "ignore"
ARRIVES: Final = "arrives"
LOST: Final = "lost"
LATE: Final = "late"
COMMITS: Final = "commit"
ABORTS: Final = "abort"
STABLE: Final = "stable"
ANY: Final = "any"
FAULTS: Final = ("error", "timeout", "delay", "hang-up", "hang-up-after", "drop", "corrupt")
_BROKERS: Final = re.compile(r"\d+(,\d+)*")
_WORDS: Final[dict[ActionKind, frozenset[str]]] = {
    ActionKind.PRODUCE: frozenset({ACKS_ALL, ACKS_LEADER}),
    ActionKind.PRODUCE_EACH: frozenset({ACKS_ALL, ACKS_LEADER}),
    ActionKind.ELECT: frozenset({CLEAN, UNCLEAN}),
    ActionKind.REASSIGN: frozenset({BACK, "broker ids with commas"}),
    ActionKind.KILL: frozenset({"now", "timeout", "never"}),
    ActionKind.ISOLATE: frozenset({"now", "timeout", "never"}),
    ActionKind.HOLD: frozenset({STAY, LEAVE}),
    ActionKind.FAULT: frozenset(FAULTS),
    ActionKind.STORE: frozenset({DONE, FAILS}),
    ActionKind.POLL: frozenset({HEED, IGNORE}),
    ActionKind.CARRY: frozenset({ARRIVES, LOST}),
    ActionKind.SEND: frozenset({ARRIVES, LATE}),
    ActionKind.END: frozenset({COMMITS, ABORTS}),
    ActionKind.FETCH_OFFSET: frozenset({STABLE, ANY}),
}
"""What ``how`` may be."""


class Schedule(Struct, frozen=True, kw_only=True):
    """A cluster and the actions on it."""

    setup: Setup
    actions: tuple[Action, ...]

    def __str__(self) -> str:
        return "\n".join([str(self.setup), *map(str, self.actions)])


def parse(text: str) -> Schedule:
    """Read what `Schedule` prints. Empty lines, and lines that begin with ``#``, are left out.

    :raises ScheduleError: When a line is none of a schedule.
    """
    lines = [line.strip() for line in text.splitlines()]
    lines = [line for line in lines if line and not line.startswith("#")]
    if not lines:
        raise ScheduleError("a schedule begins with its cluster: there is no line at all")
    setup = parse_setup(lines[0])
    actions = tuple(map(parse_action, lines[1:]))
    for line, action in zip(lines[1:], actions, strict=True):
        names_0 = action.kind is ActionKind.DELIVER and 0 in (action.broker, action.other)
        if names_0 and setup.first_id > 0:  # so the controller was written once
            raise ScheduleError(f"there is no broker 0, and the controller is a word: {line!r}")
    return Schedule(setup=setup, actions=actions)


def parse_action(line: str) -> Action:
    """Read one action.

    :raises ScheduleError: When there is none like that.
    """
    word, _, rest = line.partition(" ")
    try:
        verb = ActionKind(word)
    except ValueError:
        raise ScheduleError(f"there is no action {word!r}: {line!r}") from None
    match = _PATTERNS[verb].fullmatch(rest.strip())
    if match is None:
        raise ScheduleError(f"{verb} is written {_as_shown(verb)!r}: {line!r}")
    fields = match.groupdict()
    how = fields.pop("how", "")
    if verb is ActionKind.REASSIGN and (how == BACK or _BROKERS.fullmatch(how)):
        return Action(verb, how=how, partition=int(fields["partition"]))
    if how not in _WORDS.get(verb, ("",)):
        raise ScheduleError(f"{verb} knows {', '.join(sorted(_WORDS[verb]))}: {line!r}")
    numbers = {
        name: CONTROLLER_NUMBER if text == _CONTROLLER else int(text)
        for name, text in fields.items()
    }
    return Action(verb, how=how, **numbers)


def _as_shown(verb: ActionKind) -> str:
    return f"{verb} {FORMS[verb]}".rstrip()


_PATTERNS: Final = {verb: form_pattern(form) for verb, form in FORMS.items()} | {
    ActionKind.DELIVER: form_pattern(FORMS[ActionKind.DELIVER], number=rf"\d+|{_CONTROLLER}")
}
