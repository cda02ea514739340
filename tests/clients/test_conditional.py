"""Conditional publish (KIP-27) by clients that know nothing of it: they say it in a header.

What each client tells an application stands in docs/conditional-publish.md too, word for word.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from docs.generate import ROOT
from tests.clients import conditional
from tests.clients.grounds import Fencepost, fencepost, stored
from tests.clients.refusals import CLIENTS, INVALID_RECORD, LIBRDKAFKA, MISMATCH, WORDS
from tests.clients.stories import Stage
from tests.harness import batches, golang, java
from tests.harness.dialogue import Dialogue
from tests.harness.require import tool
from tests.harness.run import run
from tests.harness.served_cluster import unique

PAGE: Final = ROOT / "docs" / "conditional-publish.md"


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fencepost]:
    with fencepost(tmp_path_factory.mktemp("conditional")) as made:
        yield made


@pytest.fixture(scope="module")
def worker(
    ground: Fencepost, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], Dialogue]]:
    """A running program of each client, started when it is first asked for."""
    folder = tmp_path_factory.mktemp("workers")
    started: dict[str, Dialogue] = {}
    with ExitStack() as stack:

        def get(client: str) -> Dialogue:
            if client not in started:
                command = _command(client, ground.cluster.bootstrap)
                started[client] = stack.enter_context(Dialogue(command, folder / client))
                started[client].hear_until("ready")
            return started[client]

        yield get


def _command(client: str, bootstrap: str) -> Sequence[str]:
    if client == "java":
        return java.story_command("ConditionalStory", bootstrap)
    if client == "go":
        return [str(golang.build_program("conditional")), bootstrap]
    return [sys.executable, str(Path(conditional.__file__)), client, bootstrap]


@dataclass(frozen=True, slots=True, kw_only=True)
class Producer:
    """A producer with a client id and a topic of its own."""

    ground: Fencepost
    worker: Dialogue
    client: str
    code: int
    topic: str
    client_id: str
    options: str

    def send(self, records: str) -> list[str]:
        """What the application is told of each record."""
        return self.worker.ask(f"{self.client_id} {self.topic} {self.options} {records}").split(
            " | "
        )

    def words(self, name: str, why: str = "") -> str:
        """What this client says of a refusal."""
        return WORDS[self.client, self.code].of(name, why)

    @property
    def requests(self) -> int:
        """That it has sent, with records."""
        return len(self.ground.verbs.trace(api="Produce", client_id=self.client_id, limit=1000))

    def stored(self, partition: int = 0) -> str:
        """The values of a partition, with spaces."""
        return stored(self.ground.cluster, self.topic, partition)

    def numbered(self) -> list[tuple[int, int, int]]:
        """Base offset, producer epoch and base sequence of each batch of partition 0."""
        found, _ = batches.parse(self.ground.cluster.stored(self.topic))
        return [(each.base_offset, each.producer_epoch, each.base_sequence) for each in found]


Make = Callable[..., Producer]


@pytest.fixture
def make(ground: Fencepost, worker: Callable[[str], Dialogue]) -> Make:
    def make(client: str, *, code: int = MISMATCH, options: str = "", **configs: str) -> Producer:
        # Both partitions at one broker: then what is sent at once may be one request.
        topic = unique("conditional")
        given = {
            "check.expected.offsets": "true",
            "check.expected.offsets.source": "header",
            "check.expected.offsets.error.code": str(code),
            **configs,
        }
        ground.verbs.create_topic(topic, assignments=[[1, 2, 3], [1, 2, 3]], configs=given)
        return Producer(
            ground=ground,
            worker=worker(client),
            client=client,
            code=code,
            topic=topic,
            client_id=unique(client),
            options=options,
        )

    return make


def why(expected: int, upcoming: int) -> str:
    return f"Expected offset {expected}, upcoming offset {upcoming}"


# -- what is appended, and what is not ----------------------------------------------------------


@pytest.mark.timeout(600)  # the first builds a Go program and fetches jars
@pytest.mark.parametrize("encoding", ["text", "bytes"])
@pytest.mark.parametrize("client", CLIENTS)
def test_what_matches_is_appended_and_so_is_what_expects_nothing(
    make: Make, client: str, encoding: str
) -> None:
    producer = make(client, options=f"encoding={encoding}")
    assert producer.send("a@0") == ["0"]
    assert producer.send("b@1 c@2 d@3") == ["1", "2", "3"], "a batch, one behind the other"
    assert producer.send("e") == ["4"]
    assert producer.send("f g@6 h@-1 i@8") == ["5", "6", "7", "8"], "some say it, some do not"
    assert producer.requests == 4
    assert producer.stored() == "a b c d e f g h i"


@pytest.mark.timeout(600)
@pytest.mark.parametrize("code", [MISMATCH, INVALID_RECORD])
@pytest.mark.parametrize("client", CLIENTS)
def test_a_refusal_is_told_once_and_changes_nothing(make: Make, client: str, code: int) -> None:
    producer = make(client, code=code)
    assert producer.send("a b c") == ["0", "1", "2"]
    assert producer.send("d@0") == [producer.words("alone", why(0, 3))]
    assert producer.send("d@9") == [producer.words("alone", why(9, 3))]
    whys = [why(2, 3), why(3, 4), why(4, 5)]
    assert producer.send("e@2 f@3 g@4") == [producer.words("each", each) for each in whys]
    beside = producer.words("beside")
    assert producer.send("h@3 i@3 j") == [beside, producer.words("alone", why(3, 4)), beside]
    assert producer.requests == 5, "nothing was sent again"
    assert producer.stored() == "a b c"
    assert producer.send("k@3 l") == ["3", "4"]
    assert producer.stored() == "a b c k l"


@pytest.mark.parametrize("code", [MISMATCH, INVALID_RECORD])
@pytest.mark.parametrize("client", ["java", "kafka-python", "aiokafka"])
def test_the_other_partitions_of_its_request_are_refused_with_it(
    make: Make, client: str, code: int
) -> None:
    """(What franz-go puts into one request is up to its timing.)"""
    producer = make(client, code=code)
    assert producer.send("0/a 1/b") == ["0", "0"]
    assert producer.requests == 1
    told = producer.send("0/c@0 1/d@1")
    dragged = (
        "Nothing was appended, because the expected offset of a record in the same request does "
        f"not match: {producer.topic}-0"
    )
    assert told == [producer.words("alone", why(0, 1)), producer.words("dragged", dragged)]
    assert producer.requests == 2
    assert (producer.stored(0), producer.stored(1)) == ("a", "b")


def test_aiokafka_is_given_a_code_that_it_knows(make: Make) -> None:
    producer = make("aiokafka", code=44)
    said = "[Error 44] PolicyViolationError"
    assert producer.send("a@1") == [f"PolicyViolationError 44: {said}"]
    assert said in PAGE.read_text(encoding="utf-8")


def test_librdkafka_has_a_request_for_each_partition(make: Make) -> None:
    producer = make("confluent")
    assert producer.send("0/a 1/b") == ["0", "0"]
    assert producer.requests == 2
    assert producer.send("0/c@0 1/d@1") == [producer.words("alone"), "1"]
    assert (producer.stored(0), producer.stored(1)) == ("a", "b d")


@pytest.mark.parametrize("client", CLIENTS)
def test_a_producer_that_says_nothing_is_refused_where_base_offsets_count(
    make: Make, client: str
) -> None:
    """Every producer sends base offset 0: right for the first batch of a log, and then never."""
    producer = make(client, **{"check.expected.offsets.source": "batch"})
    assert producer.send("a b") == ["0", "1"]
    assert producer.send("c") == [producer.words("alone", why(0, 2))]
    assert producer.requests == 2
    assert producer.stored() == "a b"


# -- idempotent producers -----------------------------------------------------------------------


@pytest.mark.timeout(600)
@pytest.mark.parametrize("code", [MISMATCH, INVALID_RECORD])
@pytest.mark.parametrize("client", ["java", "confluent", "go"])
def test_an_idempotent_producer_goes_on_in_an_epoch_of_its_own(
    make: Make, client: str, code: int
) -> None:
    producer = make(client, code=code, options="idempotent=true")
    assert producer.send("a@0 b@1") == ["0", "1"]
    assert producer.send("c@0") == [producer.words("alone", why(0, 2))]
    assert producer.send("d@2") == ["2"]
    assert producer.send("e") == ["3"]
    assert producer.requests == 4
    assert producer.stored() == "a b d e"
    assert producer.numbered() == [(0, 0, 0), (2, 1, 0), (3, 1, 1)]


def test_kafka_python_gives_an_idempotent_producer_up(make: Make) -> None:
    producer = make("kafka-python", options="idempotent=true")
    assert producer.send("a@0") == ["0"]
    assert producer.send("b@0") == [producer.words("alone", why(0, 1))]
    of_b = f"Nothing was appended. Record 0 for {producer.topic}-0: {why(0, 1)}"
    for_good = [producer.words("alone", of_b)]
    assert producer.send("c@1") == for_good, "what came of b is all that it says from now on"
    assert producer.send("1/d") == for_good
    assert producer.requests == 2, "and it sends nothing any more"
    assert producer.stored() == "a"


def test_aiokafka_counts_what_was_refused(make: Make) -> None:
    producer = make("aiokafka", options="idempotent=true")
    out_of_order = "OutOfOrderSequenceNumber 45: [Error 45] OutOfOrderSequenceNumber"
    assert producer.send("a@0") == ["0"]
    assert producer.send("b@0") == [producer.words("alone")]
    assert producer.send("c@1") == [out_of_order]
    assert producer.send("d") == [out_of_order]
    assert producer.send("1/e@0") == ["0"], "it counts by partition"
    assert (producer.stored(0), producer.stored(1)) == ("a", "e")


@pytest.mark.timeout(600)
@pytest.mark.parametrize("client", CLIENTS)
def test_an_idempotent_producer_learns_what_became_of_a_record_whose_answer_was_lost(
    make: Make, client: str
) -> None:
    producer = make(client, options="idempotent=true")
    assert producer.send("a@0") == ["0"]
    lose_answer(producer)
    assert producer.send("b@1") == ["1"]
    assert producer.requests == 3, "b was sent twice"
    assert producer.stored() == "a b"


@pytest.mark.timeout(600)
@pytest.mark.parametrize("client", CLIENTS)
def test_another_producer_takes_its_own_record_for_a_stranger_s(make: Make, client: str) -> None:
    producer = make(client)
    assert producer.send("a@0") == ["0"]
    lose_answer(producer)
    assert producer.send("b@1") == [producer.words("alone", why(1, 2))]
    assert producer.requests == 3
    assert producer.stored() == "a b", "it is there all the same"


def lose_answer(producer: Producer) -> None:
    """The next request is carried out, and its connection closed in place of an answer."""
    producer.ground.verbs.add_fault(
        "Produce", client_id=producer.client_id, action={"disconnect": "after"}
    )


# -- several requests on their way --------------------------------------------------------------


@pytest.mark.timeout(600)
@pytest.mark.parametrize("idempotent", ["true", "false"])
@pytest.mark.parametrize("client", ["java", "confluent", "go"])
def test_of_several_requests_on_their_way_each_is_told_the_truth(
    make: Make, client: str, idempotent: str
) -> None:
    """Which of them are refused is up to timing, but for the first."""
    producer = make(client, options=f"idempotent={idempotent} batch=one")
    assert producer.send("a@0") == ["0"]
    values = ["b@0", "c@1", "d@2", "e", "f@3", "g"]
    told = producer.send(" ".join(values))
    assert not told[0].isdigit()
    appended = {int(at): value for value, at in zip(values, told, strict=True) if at.isdigit()}
    log = ["a", *(appended[at][0] for at in sorted(appended))]
    assert sorted(appended) == list(range(1, len(log)))
    assert producer.stored() == " ".join(log)
    for at, value in appended.items():
        assert value.partition("@")[2] in ("", str(at))
    assert producer.send(f"z@{len(log)}") == [str(len(log))]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("client", ["confluent", "java"])
def test_what_follows_a_refused_request_may_match_by_accident(make: Make, client: str) -> None:
    """Another writer had offset 0. Of two more, a request each, the second one is there."""
    producer = make(client, options="batch=one")
    assert producer.send("other") == ["0"]
    assert producer.send("x@0 y@1") == [producer.words("alone", why(0, 1)), "1"]
    assert producer.stored() == "other y"


def test_franz_go_gives_up_what_waits_behind_a_refused_record(make: Make) -> None:
    producer = make("go", options="batch=one")
    assert producer.send("other") == ["0"]
    assert producer.send("x@0 y@1") == [producer.words("alone")] * 2
    assert producer.send("z@1") == ["1"]
    assert producer.stored() == "other z"


# -- kcat ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "told"),
    [(MISMATCH, "Err-2701?"), (INVALID_RECORD, "Broker failed to validate record")],
)
def test_kcat(make: Make, code: int, told: str) -> None:
    producer = make("confluent", code=code)  # for the topic
    command = [tool("kcat"), "-b", producer.ground.cluster.bootstrap, "-P", "-t", producer.topic]
    command += ["-p", "0"]
    run([*command, "-H", "expected-offset=0"], stdin="a\n")
    refused = run([*command, "-H", "expected-offset=0"], stdin="b\n", code=1)
    assert f"% Delivery failed for message: {LIBRDKAFKA[code].partition(': ')[2]}" in refused.err
    run(command, stdin="c\n")
    run([*command, "-H", "expected-offset=2"], stdin="d\n")
    assert producer.stored() == "a c d"


def test_a_writer_that_does_not_lead_any_more_is_refused(fresh: Stage) -> None:
    """A story of docs/stories.md."""
    fresh.play("deposed")
    fresh.play("deposed-refused")
    fresh.play("deposed-careless")


# -- the page -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("client", "code"), WORDS)
def test_the_page_says_what_they_say(client: str, code: int) -> None:
    page = " ".join(PAGE.read_text(encoding="utf-8").split())
    words = WORDS[client, code]
    for each in (words.alone, words.each, words.beside):
        said = each.partition(": ")[2].replace("{why}", "").strip() or each.partition(":")[0]
        assert said in page, f"{client} {code}: {said}"
