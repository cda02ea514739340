"""Schedules are data: what is printed can be read back, and nothing else can."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.simulation.schedule import (
    ABORTS,
    ACKS_ALL,
    ACKS_LEADER,
    ANY,
    ARRIVES,
    BACK,
    CLEAN,
    COMMITS,
    CONTROLLER_NUMBER,
    DONE,
    FAILS,
    FAULTS,
    FORMS,
    HEED,
    IGNORE,
    LATE,
    LEAVE,
    LOST,
    STABLE,
    STAY,
    UNCLEAN,
    Action,
    ActionKind,
    Schedule,
    parse,
    parse_action,
)
from fencepost.simulation.setup import (
    CONSUMERS,
    TIERS,
    TRANSACTIONS,
    ScheduleError,
    Setup,
)

WORDS = {
    ActionKind.PRODUCE: [ACKS_ALL, ACKS_LEADER],
    ActionKind.PRODUCE_EACH: [ACKS_ALL, ACKS_LEADER],
    ActionKind.ELECT: [CLEAN, UNCLEAN],
    ActionKind.REASSIGN: ["2", "3,1,12", BACK],
    ActionKind.KILL: ["now", "timeout", "never"],
    ActionKind.ISOLATE: ["now", "timeout", "never"],
    ActionKind.HOLD: [STAY, LEAVE],
    ActionKind.FAULT: list(FAULTS),
    ActionKind.STORE: [DONE, FAILS],
    ActionKind.POLL: [HEED, IGNORE],
    ActionKind.CARRY: [ARRIVES, LOST],
    ActionKind.SEND: [ARRIVES, LATE],
    ActionKind.END: [COMMITS, ABORTS],
    ActionKind.FETCH_OFFSET: [STABLE, ANY],
}
NUMBERS = st.integers(0, 100_000)
NODES = st.integers(1, 100_000) | st.just(CONTROLLER_NUMBER)


@st.composite
def actions(draw: st.DrawFn) -> Action:
    """Any action, with the fields that its form shows."""
    verb = draw(st.sampled_from(list(ActionKind)))
    form = FORMS[verb]
    numbers = {
        name: draw(NODES if verb is ActionKind.DELIVER else NUMBERS)
        for name in ("partition", "broker", "other", "amount")
        if f"{{{name}}}" in form
    }
    return Action(verb, how=draw(st.sampled_from(WORDS.get(verb, [""]))), **numbers)


SETUPS = st.builds(
    Setup,
    seed=NUMBERS,
    brokers=st.integers(1, 9),
    first_id=st.integers(0, 2),
    partitions=st.integers(1, 9),
    replication_factor=st.integers(1, 9),
    min_insync_replicas=st.integers(1, 9),
    unclean=st.booleans(),
    fetch_version=st.integers(4, 18),
    tier=st.sampled_from(TIERS),
    checks_offsets=st.booleans(),
    consumers=st.sampled_from(CONSUMERS),
    transactions=st.sampled_from(TRANSACTIONS),
    few_epochs=st.booleans(),
    expires=st.booleans(),
)


@given(SETUPS, st.lists(actions(), max_size=20))
def test_a_printed_schedule_is_the_same_schedule(setup: Setup, done: list[Action]) -> None:
    schedule = Schedule(setup=setup, actions=tuple(done))
    assert parse(str(schedule)) == schedule


@pytest.mark.parametrize(
    ("line", "action"),
    [
        ("deliver 1->3", Action(ActionKind.DELIVER, broker=3, other=1)),
        ("deliver controller->0", Action(ActionKind.DELIVER, broker=0, other=CONTROLLER_NUMBER)),
        ("reassign p1 to 0,2", Action(ActionKind.REASSIGN, 1, how="0,2")),
        ("produce p0 to 2 acks=all x3", Action(ActionKind.PRODUCE, 0, 2, amount=3, how="all")),
        ("elect p0 3 unclean", Action(ActionKind.ELECT, 0, 3, how="unclean")),
        ("reassign p1 to 4,2", Action(ActionKind.REASSIGN, 1, how="4,2")),
        ("elect-leaders p1 via 3", Action(ActionKind.ELECT_LEADERS, 1, 3)),
        ("configure segment.ms=5 via 2", Action(ActionKind.CONFIGURE, broker=2, amount=5)),
        ("kill 2 fence=never", Action(ActionKind.KILL, broker=2, how="never")),
        ("hold-at p1 2 +5", Action(ActionKind.HOLD_AT, 1, 2, amount=5)),
        ("settle", Action(ActionKind.SETTLE)),
        ("store fails 3", Action(ActionKind.STORE, amount=3, how="fails")),
        ("delete-local p1", Action(ActionKind.DELETE_LOCAL, 1)),
        ("fetch-offset x3 p1 via 2 any", Action(ActionKind.FETCH_OFFSET, 1, 2, other=3, how="any")),
        ("wipe-group-coordinator g1 2", Action(ActionKind.WIPE_GROUP_COORDINATOR, 1, 2)),
    ],
)
def test_how_actions_are_written(line: str, action: Action) -> None:
    assert str(action) == line
    assert parse_action(line) == action


def test_comments_and_empty_lines_are_left_out() -> None:
    text = f"# found by seed 7\n\n  {Setup(seed=7)}\n\n  settle  \n# the end\n"
    assert parse(text) == Schedule(setup=Setup(seed=7), actions=(Action(ActionKind.SETTLE),))


def test_brokers_may_be_numbered_from_0() -> None:
    text = f"{Setup(brokers=2, first_id=0)}\ndeliver 0->1"
    assert " ids.from=0\n" in text
    schedule = parse(text)
    assert list(schedule.setup.broker_ids) == [0, 1]
    assert schedule.actions == (Action(ActionKind.DELIVER, broker=1, other=0),)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "no line at all"),
        ("settle", "begins with its cluster"),
        (str(Setup()).replace("unclean=no", "unclean=maybe"), "unclean is yes or no"),
        (f"{Setup()} tier=some", "tier is one of no, local, last"),
        (f"{Setup()} transactions=some", "transactions is one of no, new, old, mixed"),
        (f"{Setup()}\nexplode 3", "there is no action 'explode'"),
        (f"{Setup()}\ndeliver 1", "deliver is written 'deliver {other}->{broker}'"),
        (f"{Setup()}\ndeliver 0->1", "there is no broker 0, and the controller is a word"),
        (f"{Setup()}\nproduce p0 to controller acks=all x1", "produce is written"),
        (f"{Setup()}\nkill 1 fence=maybe", "kill knows never, now, timeout"),
        (f"{Setup()}\nreassign p0 to 1,", "reassign knows back, broker ids with commas"),
        (f"{Setup()}\nsettle down", "settle is written 'settle'"),
    ],
)
def test_what_is_no_schedule_is_refused(text: str, problem: str) -> None:
    with pytest.raises(ScheduleError) as error:
        parse(text)
    assert problem in str(error.value)
