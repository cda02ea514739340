"""Brokers that the controller does not reach (KAFKA-6880, KIP-232): docs/stories.md, played."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.clients.stories import Stage, prints, stage
from tests.harness.cluster import wait_until

CLIENTS = ("java", "confluent")
FENCED_LEADER_EPOCH = 74
UNKNOWN_LEADER_EPOCH = 75


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with stage(tmp_path_factory.mktemp("stage")) as made:
        yield made


@pytest.fixture
def fresh(kept: Stage) -> Stage:
    """Nothing of the test before is left."""
    kept.control.reset()
    return kept


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
        assert _codes(fresh, "Fetch", client, broker=1) == {FENCED_LEADER_EPOCH}
        fresh.play("stale-leader")
        reader.say("read 5")
        wait_until(
            "it was refused",
            lambda: _codes(fresh, "OffsetForLeaderEpoch", client, 3) == {UNKNOWN_LEADER_EPOCH},
        )
        fresh.play("stale-rejoins")
        assert reader.hear_until(lambda _: True) == prints("stale-leader")
        reader.end()


def _codes(stage: Stage, api: str, client: str, broker: int) -> set[int]:
    """What a broker answered to the client's requests."""
    answers = stage.answers(api, client)
    return {answer["error_code"] for answer in answers if answer["broker"] == broker}
