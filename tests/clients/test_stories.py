"""Brokers that the controller does not reach (KAFKA-6880, KIP-232): docs/stories.md, played."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.clients.stories import PAGE, Stage, prints
from tests.harness.wait import wait_until

CLIENTS = ("java", "confluent")
FENCED_LEADER_EPOCH = 74
UNKNOWN_LEADER_EPOCH = 75


def test_a_zombie_fetches_but_does_not_count(fresh: Stage) -> None:
    fresh.play("zombie")
    fresh.play("zombie-acks")
    fresh.play("zombie-fenced")
    fresh.play("zombie-rejoins")


@pytest.mark.parametrize("client", CLIENTS)
def test_clients_get_over_stale_metadata(fresh: Stage, client: str) -> None:
    fresh.play("stale")
    with fresh.client(client, bootstrap=fresh.address(3)) as reader:
        assert [reader.ask("read 10")] == prints("stale")
        fenced = _codes(fresh, "Fetch", client, broker=1)
        # librdkafka asks for metadata once more when it connects, maybe before it fetches.
        assert fenced == {FENCED_LEADER_EPOCH} or (client, fenced) == ("confluent", set())
        fresh.play("stale-leader")
        reader.say("read 5")
        wait_until(
            "it was refused",
            lambda: _codes(fresh, "OffsetForLeaderEpoch", client, 3) == {UNKNOWN_LEADER_EPOCH},
        )
        fresh.play("stale-rejoins")
        assert reader.hear_until(lambda _: True) == prints("stale-leader")
        reader.end()


def test_every_block_of_the_page_is_played() -> None:
    sources = "".join(path.read_text() for path in Path(__file__).parent.glob("*.py"))
    names = re.findall(r"<!-- (?:run|prints): (\S+) -->", PAGE.read_text())
    assert names
    assert [name for name in names if f'"{name}"' not in sources] == []


def _codes(stage: Stage, api: str, client: str, broker: int) -> set[int]:
    """What a broker answered to the client's requests."""
    answers = stage.answers(api, client)
    return {answer["error_code"] for answer in answers if answer["broker"] == broker}
