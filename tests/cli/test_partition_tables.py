"""The tables of a remote tier, of the actions on it, and of compaction."""

from __future__ import annotations

from typing import Final

import pytest

from fencepost.verbs.answers.faults import TierFaultState
from fencepost.verbs.answers.topics import CompactionState, PartitionState, TierState
from tests.cli.shell import Shell
from tests.harness.fake_control_api import FakeControlApi, ok

(_TIERED,) = TierState.examples
(_PARTITION,) = PartitionState.examples
(_FAULT,) = TierFaultState.examples
(_COMPACTED,) = CompactionState.examples
ID: Final = "C36fXIxjTw6cXApKXB0uPw"
NOTHING: Final = {
    "start_offset": -1,
    "last_tiered_offset": -1,
    "pending_upload_offset": -1,
    "segments": [],
}
SEGMENTS: Final = (
    "tier: from 0 to 41, next to be uploaded is 42\n"
    "remote segment          from  to  bytes  epochs\n"
    f"{ID}  0     41  4711   0 from 0\n"
)


def test_a_partition_with_a_tier_shows_what_is_in_it(stub: FakeControlApi, shell: Shell) -> None:
    stub.will(ok({**_PARTITION, "remote": _TIERED["remote"]}))
    text = shell.text("partition orders 0")
    _, header, _, *tier = text.splitlines(keepends=True)
    assert "log start  local start  log end" in header
    assert "".join(tier) == SEGMENTS


def test_a_partition_without_one_shows_nothing_of_it(stub: FakeControlApi, shell: Shell) -> None:
    stub.will(ok(_PARTITION))
    text = shell.text("partition orders 0")
    assert "tier" not in text
    assert "local start" not in text


def test_a_leader_that_knows_nothing_says_so(stub: FakeControlApi, shell: Shell) -> None:
    stub.will(ok({**_PARTITION, "remote": NOTHING}))
    last = shell.text("partition orders 0").splitlines()[-1]
    assert last == "tier: nothing, or its leader does not know of it"


@pytest.mark.parametrize(
    ("done", "said"),
    [
        ({}, f"uploaded 0 to 41, 4711 bytes ({ID})\n"),
        ({"uploaded": []}, "nothing to do\n"),
        ({"uploaded": [], "lost_objects": 6}, "lost 6 objects\n"),
        ({"uploaded": [], "lost_objects": 1}, "lost 1 object\n"),
        (
            {"uploaded": [], "expired": _TIERED["uploaded"]},
            f"expired 0 to 41, 4711 bytes ({ID})\n",
        ),
        (
            {
                "uploaded": [],
                "deleted_locally": [
                    {"broker": 2, "segments": 1, "local_log_start_offset": 42},
                    {"broker": 1, "segments": 0, "local_log_start_offset": 0},
                ],
            },
            (
                "broker 2 let go of 1 segment and begins at 42\n"
                "broker 1 let go of 0 segments and begins at 0\n"
            ),
        ),
    ],
)
def test_what_was_done_is_a_line_each(
    done: dict[str, object], said: str, stub: FakeControlApi, shell: Shell
) -> None:
    stub.will(ok({**_TIERED, **done}))
    assert shell.text("tier upload orders 0") == said + SEGMENTS


@pytest.mark.parametrize(
    ("given", "action", "left"),
    [
        ({}, "error no space left", "1"),
        ({"error": None, "delay_ms": 200, "left": None}, "delay 200", "always"),
        ({"delay_ms": 200}, "error no space left, delay 200", "1"),
    ],
)
def test_a_tier_fault_is_a_row(
    given: dict[str, object], action: str, left: str, stub: FakeControlApi, shell: Shell
) -> None:
    stub.will(ok([{**_FAULT, **given}]))
    header, row = shell.text("tier faults").splitlines()
    assert header.split("  ")[0] == "tier fault"
    assert action in row
    assert row.split()[-1] == left


def test_compaction_is_a_row_a_replica(stub: FakeControlApi, shell: Shell) -> None:
    stub.will(ok(_COMPACTED))
    assert shell.text("compact orders 0") == "broker  records dropped\n1       17\n"
