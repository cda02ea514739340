"""Schedules as data: the steps of a run, in a form that can be printed and parsed.

A schedule is a cluster and the actions on it. It contains every decision of a seed, so that a
replay needs no seed, and leaving actions out of it makes a smaller one. In text the first
line is the cluster, and each line after it one action:

    cluster seed=7 brokers=3 partitions=1 replicas=3 min.insync=2 unclean=no fetch=17
    produce p0 to 1 acks=all x2
    deliver 1->2
    elect p0 2 clean

Nodes are broker ids, or ``controller``. ``p0`` is a partition, ``c1`` a client, ``a1``
an application with a consumer (`fencepost.simulation.consumers`).
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

TOPIC: Final = "t"
"""The one topic of a simulated cluster."""
NO_TIER: Final = "no"
FROM_LOCAL: Final = "local"
FROM_LAST: Final = "last"
TIERS: Final = (NO_TIER, FROM_LOCAL, FROM_LAST)
"""No tier; or where a follower starts that has nothing: at its leader's local log start, or behind
the last tiered offset (``follower.fetch.last.tiered.offset.enable``, KIP-1023)."""
NO_CONSUMERS: Final = "no"
FINAL_CONSUMERS: Final = "final"
DRAFT_CONSUMERS: Final = "draft"
CONSUMERS: Final = (NO_CONSUMERS, FINAL_CONSUMERS, DRAFT_CONSUMERS)
"""No applications with consumers; those of the final KIP-320; or those of its earlier draft as
well, on a cluster that serves the dialect."""
NEWEST_FETCH: Final = 18
"""The Fetch version of a cluster without a ceiling."""
CONTROLLER_NUMBER: Final = -1
"""The controller as a node of an action: no broker's id."""
_CONTROLLER: Final = "controller"
"""The same in text."""


class ScheduleError(ValueError):
    """A text is no schedule."""


class ActionKind(StrEnum):
    """What an action does."""

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
}
"""What ``how`` may be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """The cluster of a schedule, with one topic."""

    seed: int = 0
    """Of the cluster's own randomness: ids and the like."""
    brokers: int = 3
    first_id: int = 1
    """The lowest id of the brokers, which have consecutive ones."""
    partitions: int = 1
    replication_factor: int = 3
    min_insync_replicas: int = 1
    unclean: bool = False
    """``unclean.leader.election.enable``."""
    fetch_version: int = NEWEST_FETCH
    """The highest Fetch version that brokers serve (``--api-max``)."""
    tier: str = NO_TIER
    """Whether the topic is tiered, and where new followers start then; see `TIERS`."""

    checks_offsets: bool = False
    """``check.expected.offsets``: producers state where they believe the log to end (KIP-27)."""
    consumers: str = NO_CONSUMERS
    """Which applications there are; see `CONSUMERS`."""
    gate: bool = True
    """Whether ListOffsets waits after an election (KIP-207); off: ``list.offsets.gate=off``."""

    @property
    def broker_ids(self) -> range:
        """The ids of the brokers."""
        return range(self.first_id, self.first_id + self.brokers)

    @property
    def is_tiered(self) -> bool:
        """Whether the topic has a remote tier."""
        return self.tier != NO_TIER

    def __str__(self) -> str:
        return _SETUP.format(
            seed=self.seed,
            brokers=self.brokers,
            partitions=self.partitions,
            replication_factor=self.replication_factor,
            min_insync_replicas=self.min_insync_replicas,
            unclean="yes" if self.unclean else "no",
            fetch_version=self.fetch_version,
            tier=f" tier={self.tier}" if self.is_tiered else "",
            check=_CHECK if self.checks_offsets else "",
            consumers=f" consumers={self.consumers}" if self.consumers != NO_CONSUMERS else "",
            ids="" if self.first_id == 1 else f" ids.from={self.first_id}",
            gate="" if self.gate else _NO_GATE,
        )


_CHECK: Final = " check=yes"
_NO_GATE: Final = " gate=off"
_SETUP: Final = (
    "cluster seed={seed} brokers={brokers} partitions={partitions} replicas={replication_factor}"
    " min.insync={min_insync_replicas} unclean={unclean} fetch={fetch_version}{tier}{check}"
    "{consumers}{ids}{gate}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
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


def parse_setup(line: str) -> Setup:
    """Read the first line of a schedule.

    :raises ScheduleError: When it is none.
    """
    match = _PATTERN_OF_SETUP.fullmatch(line)
    if match is None:
        raise ScheduleError(f"a schedule begins with its cluster, as {str(Setup())!r}: {line!r}")
    fields = match.groupdict()
    unclean = fields.pop("unclean")
    if unclean not in ("yes", "no"):
        raise ScheduleError(f"unclean is yes or no: {line!r}")
    tier = (fields.pop("tier") or f" tier={NO_TIER}").removeprefix(" tier=")
    if tier not in TIERS:
        raise ScheduleError(f"tier is one of {', '.join(TIERS)}: {line!r}")
    checks = fields.pop("check") is not None
    gate = fields.pop("gate") is None
    consumers = fields.pop("consumers") or NO_CONSUMERS
    if consumers not in CONSUMERS:
        raise ScheduleError(f"consumers is one of {', '.join(CONSUMERS)}: {line!r}")
    fields["first_id"] = fields["first_id"] or "1"
    numbers = {name: int(text) for name, text in fields.items()}
    return Setup(
        **numbers,
        unclean=unclean == "yes",
        tier=tier,
        checks_offsets=checks,
        consumers=consumers,
        gate=gate,
    )


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


def _pattern(
    form: str, words: Iterable[str] = ("how", "unclean"), number: str = r"\d+"
) -> re.Pattern[str]:
    """A form as a regular expression with a group for each field."""
    pattern = re.escape(form)
    for name in re.findall(r"\{(\w+)\}", form):
        kind = r"\S+" if name in words else number
        pattern = pattern.replace(re.escape(f"{{{name}}}"), f"(?P<{name}>{kind})")
    return re.compile(pattern)


def _as_shown(verb: ActionKind) -> str:
    return f"{verb} {FORMS[verb]}".rstrip()


_PATTERNS: Final = {verb: _pattern(form) for verb, form in FORMS.items()} | {
    ActionKind.DELIVER: _pattern(FORMS[ActionKind.DELIVER], number=rf"\d+|{_CONTROLLER}")
}
_PATTERN_OF_SETUP: Final = re.compile(
    _pattern(_SETUP.removesuffix("{tier}{check}{consumers}{ids}{gate}")).pattern
    + rf"(?P<tier> tier=\S+)?(?P<check>{_CHECK})?(?: consumers=(?P<consumers>\S+))?"
    rf"(?: ids\.from=(?P<first_id>\d+))?(?P<gate>{_NO_GATE})?"
)
