"""The leader epoch that a group commits with its offset (KIP-320): docs/stories.md, played.

A member of a group reads, commits and goes away. An unclean election takes away what it has read,
and then another member comes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.clients.stories import TOPIC, Stage, prints, stage
from tests.conftest import SETTINGS
from tests.harness.confluent import delivered, send
from tests.harness.served_cluster import configs
from tests.harness.wait import wait_until

GROUP: Final = "shipping"
MEMBERS: Final = {"java": (GROUP,), "confluent": (GROUP, "seek")}
"""Members that check the epoch which was committed: librdkafka has to be told to."""
LATER: Final = pytest.mark.parametrize("later", ["truncation", "missed"])
"""What comes between commit and return: the log ends before the committed offset, or behind it."""


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A cluster on which the first member of a group need not wait for others."""
    with stage(tmp_path_factory.mktemp("groups"), *configs(SETTINGS)) as made:
        yield made


def commit_and_go_away(on: Stage, client: str) -> list[str]:
    """A member reads the twenty records of the story and commits: what it prints."""
    on.play("truncation-before")
    with on.client(client, *MEMBERS[client], policy="earliest") as member:
        told = [member.ask("read 20"), member.ask("commit")]
        member.end()
    return told


def checks(on: Stage, client: str) -> list[tuple[int, int, int]]:
    """What it was answered of epochs' ends: error, epoch and end offset."""
    answers = on.answers("OffsetForLeaderEpoch", client)
    return [(each["error_code"], each["leader_epoch"], each["end_offset"]) for each in answers]


@LATER
@pytest.mark.parametrize(
    ("client", "printed"), [("java", "return-java"), ("confluent", "return-librdkafka")]
)
def test_without_a_policy_a_member_is_told_on_its_return(
    fresh: Stage, client: str, printed: str, later: str
) -> None:
    assert commit_and_go_away(fresh, client) == prints("return-before")
    fresh.play(later)
    with fresh.client(client, *MEMBERS[client]) as member:
        assert [member.ask("read 5")] == prints(printed)
        if client == "java":
            assert [member.ask("read 5")] == prints(printed), "its position is where it was"
        member.end()
    assert checks(fresh, client)[0] == (0, 0, 10)


@LATER
@pytest.mark.parametrize("policy", ["earliest", "latest"])
@pytest.mark.parametrize("client", MEMBERS)
def test_with_a_policy_a_member_goes_on_where_the_logs_part(
    fresh: Stage, client: str, policy: str, later: str
) -> None:
    commit_and_go_away(fresh, client)
    fresh.play(later)
    with fresh.client(client, *MEMBERS[client], policy=policy, log_level="INFO") as member:
        assert [member.ask("read 5")] == prints("return-reset")
        member.end()
    assert checks(fresh, client) == [(0, 0, 10)]
    if client == "java":
        assert "Truncation detected" in (fresh.folder / "java.log").read_text()


def test_librdkafka_checks_no_epoch_where_an_assignment_begins(fresh: Stage) -> None:
    commit_and_go_away(fresh, "confluent")
    fresh.play("missed")
    with fresh.client("confluent", GROUP) as member:
        assert [member.ask("read 5")] == prints("return-unnoticed")
        member.end()
    assert checks(fresh, "confluent") == []


@pytest.mark.parametrize("client", MEMBERS)
def test_where_the_commit_has_no_epoch_no_member_is_told(client: str, tmp_path: Path) -> None:
    settings = [*configs(SETTINGS), "--api-max", "offset-commit=5"]
    with stage(tmp_path, *settings) as old:
        assert commit_and_go_away(old, client)[-1] == "committed 20, epoch -1"
        old.play("missed")
        with old.client(client, *MEMBERS[client]) as member:
            assert [member.ask("read 5")] == prints("return-unnoticed")
            member.end()
        assert checks(old, client) == []


# -- which epoch it is ---------------------------------------------------------------------------


@pytest.mark.parametrize("client", MEMBERS)
def test_it_is_that_of_the_last_record_and_not_the_leaders(fresh: Stage, client: str) -> None:
    fresh.play("truncation-before")
    with fresh.client(client, *MEMBERS[client], policy="earliest") as member:
        member.ask("read 20")
        assert fresh.control.elect(TOPIC, 2)["leader_epoch"] == 1
        assert member.ask("commit") == "committed 20, epoch 0"
        assert delivered(send(fresh.cluster, TOPIC, [b"a20"])) == [20]
        assert member.ask("read 1") == "a20 at 20 to a20 at 20"
        assert member.ask("commit") == "committed 21, epoch 1"
        member.end()


def test_metadata_older_than_it_are_waited_for(fresh: Stage) -> None:
    """As in KIP-232: a member asks no leader of an epoch before the one that was committed."""
    fresh.play("truncation-before")
    fresh.control.elect(TOPIC, 2)
    assert delivered(send(fresh.cluster, TOPIC, [b"a20"])) == [20]
    with fresh.client("java", GROUP, policy="earliest") as member:
        member.ask("read 21")
        assert member.ask("commit") == "committed 21, epoch 1"
        member.end()

    def asked(api: str) -> int:
        return len(fresh.control.trace(api=api, client_id="java"))

    before = {api: asked(api) for api in ("Fetch", "ListOffsets", "OffsetForLeaderEpoch")}
    fetched = asked("OffsetFetch")
    with fresh.verbs() as verbs, fresh.client("java", GROUP) as member:
        old = {"stale_metadata": 0}
        fault = verbs.add_fault("Metadata", client_id="java", count=None, action=old)
        member.say("read 1")
        wait_until("it knows what is committed", lambda: asked("OffsetFetch") > fetched)
        metadata = asked("Metadata")
        wait_until("it asks for newer metadata", lambda: asked("Metadata") > metadata + 2)
        assert {api: asked(api) for api in before} == before
        verbs.remove_fault(fault.id)
        assert delivered(send(fresh.cluster, TOPIC, [b"a21"])) == [21]
        assert member.hear_until(lambda _: True) == ["a21 at 21 to a21 at 21"]
        member.end()
