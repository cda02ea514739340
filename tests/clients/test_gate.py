"""ListOffsets after an election (KIP-207): docs/stories.md, played."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.clients.stories import Stage, prints, stage
from tests.harness.wait import wait_until

CLIENTS = ("java", "confluent")
OFFSET_NOT_AVAILABLE = 78


@pytest.mark.parametrize("client", CLIENTS)
def test_the_end_is_told_when_it_is_known_again(fresh: Stage, client: str) -> None:
    fresh.play("gate-before")
    with fresh.client(client) as reader:
        assert [reader.ask("end")] == prints("gate-end")
        fresh.play("gate-election")
        fresh.play("gate-kcat")
        # Records go on being fetched, as far as the new leader knows that all have them.
        assert [reader.ask("read 10")] == prints("gate-read")
        reader.say("end")
        wait_until("it was refused and asked again", lambda: _refusals(fresh, client) > 1)
        fresh.play("gate-release")
        assert reader.hear_until(lambda _: True) == prints("gate-end")
        reader.end()
    answers = [a for a in fresh.answers("ListOffsets", client) if a["broker"] == 2]
    assert {answer["error_code"] for answer in answers} == {OFFSET_NOT_AVAILABLE, 0}
    assert min(answer["version"] for answer in answers) >= 5
    assert {answer["offset"] for answer in answers if answer["error_code"] == 0} <= {0, 20}


def _refusals(stage: Stage, client: str) -> int:
    codes = [answer["error_code"] for answer in stage.answers("ListOffsets", client)]
    return codes.count(OFFSET_NOT_AVAILABLE)


@pytest.mark.parametrize("client", CLIENTS)
def test_without_the_gate_the_end_goes_back(client: str, tmp_path: Path) -> None:
    with stage(tmp_path, "--config", "list.offsets.gate=off") as ungated:
        ungated.play("gate-before")
        with ungated.client(client) as asking:
            before = asking.ask("end")
            elected = ungated.control.elect("orders", 2)
            assert elected["high_watermark"] == 10
            ungated.play("gate-off")
            after = asking.ask("end")
            ungated.play("gate-release")
            at_last = asking.ask("end")
            asking.end()
    assert (before, after, at_last) == ("ends at 20", "ends at 10", "ends at 20")
