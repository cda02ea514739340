"""Fetch sessions: room for them, and what they remember (KIP-227)."""

from __future__ import annotations

import random

import pytest
from msgspec.structs import replace

from fencepost.broker.configs.effective_configs import BrokerConfigs
from fencepost.broker.fetch.fetch_sessions import (
    EVICTION_MS,
    FetchPlan,
    FetchSessionCache,
    move_to_end,
)
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.fetch import FetchPartition, FetchRequest, ForgottenTopic
from tests.harness.typed_requests import fetch_request, from_offset

VERSION = 12


def sessions(slots: int = 10) -> FetchSessionCache:
    configs = BrokerConfigs(1, {"max.incremental.fetch.session.cache.slots": str(slots)})
    return FetchSessionCache(random.Random(0), configs)


def ask(
    kept: FetchSessionCache,
    place: tuple[int, int],
    *partitions: tuple[str, FetchPartition],
    now_ms: int = 0,
    version: int = VERSION,
) -> FetchPlan:
    return kept.plan(fetch_request(*partitions, session=place), version, now_ms)


def offsets(plan: FetchPlan) -> list[tuple[str, int, int]]:
    return [
        (name, index, cached.request.fetch_offset)
        for (name, _, index), cached in plan.partitions.items()
    ]


def test_a_session_adds_up_what_its_requests_name() -> None:
    kept = sessions()
    first = ask(kept, (0, 0), ("t", from_offset(1)), ("t", from_offset(2, index=1)))
    assert (first.incremental, first.session_id > 0) == (False, True)
    second = ask(kept, (first.session_id, 1), ("t", from_offset(5)), ("u", from_offset(7)))
    assert second.incremental
    assert offsets(second) == [("t", 0, 5), ("t", 1, 2), ("u", 0, 7)]
    forget = replace(
        fetch_request(session=(first.session_id, 2)),
        forgotten_topics_data=(ForgottenTopic(topic="t", partitions=(1, 9)),),
    )
    assert offsets(kept.plan(forget, VERSION, 0)) == [("t", 0, 5), ("u", 0, 7)]


def test_without_a_session_nothing_is_kept() -> None:
    kept = sessions()
    plan = ask(kept, (0, -1), ("t", from_offset(1)))
    assert (plan.session_id, plan.incremental, offsets(plan)) == (0, False, [("t", 0, 1)])
    assert not kept._sessions


def test_a_new_session_takes_the_place_of_the_one_it_names() -> None:
    kept = sessions()
    first = ask(kept, (0, 0), ("t", from_offset(1))).session_id
    second = ask(kept, (first, 0), ("u", from_offset(1))).session_id
    assert second != first
    assert ask(kept, (first, 1)).error is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert offsets(ask(kept, (second, 1))) == [("u", 0, 1)]


def test_a_final_request_closes_its_session() -> None:
    kept = sessions()
    session_id = ask(kept, (0, 0), ("t", from_offset(1))).session_id
    ask(kept, (session_id, -1))
    assert ask(kept, (session_id, 1)).error is ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_wrong_epoch_changes_nothing() -> None:
    kept = sessions()
    session_id = ask(kept, (0, 0), ("t", from_offset(1))).session_id
    for epoch in (2, 7):
        refused = ask(kept, (session_id, epoch), ("t", from_offset(9)))
        assert refused.error is ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert offsets(ask(kept, (session_id, 1))) == [("t", 0, 1)]


def test_epochs_go_round() -> None:
    kept = sessions()
    session_id = ask(kept, (0, 0), ("t", from_offset(1))).session_id
    largest = (1 << 31) - 1
    kept._sessions[session_id].epoch = largest - 1
    assert ask(kept, (session_id, largest)).error is ErrorCode.NONE
    assert ask(kept, (session_id, 1)).error is ErrorCode.NONE


def test_a_session_without_partitions_is_closed() -> None:
    kept = sessions()
    session_id = ask(kept, (0, 0), ("t", from_offset(1))).session_id
    forget = replace(
        fetch_request(session=(session_id, 1)),
        forgotten_topics_data=(ForgottenTopic(topic="t", partitions=(0,)),),
    )
    plan = kept.plan(forget, VERSION, 0)
    assert (plan.error, plan.session_id, offsets(plan)) == (ErrorCode.NONE, 0, [])
    assert ask(kept, (session_id, 2)).error is ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_partition_that_is_named_and_forgotten_is_forgotten() -> None:
    kept = sessions()
    session_id = ask(kept, (0, 0), ("t", from_offset(1)), ("u", from_offset(1))).session_id
    both = replace(
        fetch_request(("t", from_offset(5)), session=(session_id, 1)),
        forgotten_topics_data=(ForgottenTopic(topic="t", partitions=(0,)),),
    )
    assert offsets(kept.plan(both, VERSION, 0)) == [("u", 0, 1)]


def test_the_last_partition_that_is_named_and_forgotten_is_answered_without_a_session() -> None:
    kept = sessions()
    session_id = ask(kept, (0, 0), ("t", from_offset(1))).session_id
    both = replace(
        fetch_request(("t", from_offset(5)), session=(session_id, 1)),
        forgotten_topics_data=(ForgottenTopic(topic="t", partitions=(0,)),),
    )
    plan = kept.plan(both, VERSION, 0)
    assert (plan.session_id, plan.incremental, offsets(plan)) == (0, False, [("t", 0, 5)])


def test_names_and_ids_are_not_mixed_within_a_session() -> None:
    kept = sessions()
    session_id = ask(kept, (0, 0)).session_id
    mixed = ask(kept, (session_id, 1), version=13)
    assert mixed.error is ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def test_when_there_is_no_room_one_gets_no_session() -> None:
    kept = sessions(slots=2)
    ids = [ask(kept, (0, 0)).session_id for _ in range(3)]
    assert ids[2] == 0
    assert len(set(ids)) == 3


def test_the_longest_unused_makes_room_after_two_minutes() -> None:
    kept = sessions(slots=2)
    first = ask(kept, (0, 0), ("t", from_offset(1))).session_id
    second = ask(kept, (0, 0), ("t", from_offset(1))).session_id
    assert ask(kept, (first, 1), now_ms=1000).error is ErrorCode.NONE
    assert ask(kept, (0, 0), now_ms=EVICTION_MS - 1).session_id == 0
    assert ask(kept, (0, 0), now_ms=EVICTION_MS).session_id > 0
    assert ask(kept, (second, 1)).error is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert ask(kept, (first, 2)).error is ErrorCode.NONE


def test_no_slots_mean_no_sessions() -> None:
    assert ask(sessions(slots=0), (0, 0)).session_id == 0


def test_clearing_forgets_all() -> None:
    kept = sessions()
    session_id = ask(kept, (0, 0)).session_id
    kept.clear()
    assert ask(kept, (session_id, 1)).error is ErrorCode.FETCH_SESSION_ID_NOT_FOUND


@pytest.mark.parametrize(
    ("sent", "order"), [([], "abc"), (["a"], "bca"), (["a", "c"], "bac"), (["x"], "abc")]
)
def test_what_was_sent_goes_to_the_end(sent: list[str], order: str) -> None:
    plan = sessions().plan(
        FetchRequest(
            session_epoch=-1,
            topics=fetch_request(*((name, from_offset(0)) for name in "abc")).topics,
        ),
        VERSION,
        0,
    )
    move_to_end(plan.partitions, [(name, None, 0) for name in sent])
    assert "".join(name for name, _, _ in plan.partitions) == order
