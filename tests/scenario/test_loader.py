"""Files that are right, and every kind of mistake, told with its place before anything is done."""

from __future__ import annotations

import os
import random
from collections.abc import Iterable, Iterator
from copy import deepcopy
from textwrap import dedent
from typing import Any, Final

import pytest
import yaml

from fencepost.scenario.document import ScenarioFileError
from fencepost.scenario.loader import read_text, shipped
from fencepost.scenario.model import ActionCall, Scenario, VerbCall


def read(text: str) -> Scenario:
    return read_text(dedent(text), file="f", name="mine")


def mistake(text: str) -> str:
    with pytest.raises(ScenarioFileError) as caught:
        read(text)
    return str(caught.value)


def step_mistake(step: str) -> str:
    """Of a file whose third line is this step."""
    return mistake(f"summary: x\nsteps:\n  - {step}\n")


def test_topics_and_configs_are_spelled_as_on_the_command_line() -> None:
    found = read(
        """\
        summary: What it shows.
        cluster: {configs: [min.insync.replicas=2]}
        topics: ["orders:3:2,retention.ms=1000"]
        steps: [{create_topic: {name: "many:4"}}]
        """
    )
    assert found.cluster.configs == {"min.insync.replicas": "2"}
    (orders,) = found.topics
    assert (orders.name, orders.partitions, orders.replication_factor) == ("orders", 3, 2)
    assert orders.configs == {"retention.ms": "1000"}


def test_configs_of_single_brokers_stand_under_their_ids() -> None:
    found = read(
        """\
        summary: What it shows.
        cluster: {brokers: 2, broker_configs: {2: {log.segment.bytes: 100}}}
        steps: [reset]
        """
    )
    assert found.cluster.broker_configs == {2: {"log.segment.bytes": "100"}}


def test_a_whole_file() -> None:
    found = read(
        """\
        summary: What it shows.
        teaches: |
          One thing.

          Another.
        cluster:
          configs: {min.insync.replicas: 2, list.offsets.gate: off}
          like_kafka: 2.0
          dialect: kip-320-draft
        topics: [orders, {name: many, partitions: 4, configs: {retention.ms: 5}}]
        steps:
          - reset
          - say: A name of numbers.
            produce: {topic: 7, records: [a, {value: 1}]}
          - hold: {topic: orders, broker: 2}
        """
    )
    assert (found.name, found.summary) == ("mine", "What it shows.")
    assert found.teaches == "One thing.\n\nAnother."
    assert found.cluster.configs == {"min.insync.replicas": "2", "list.offsets.gate": "off"}
    assert found.cluster.like_kafka == "2.0"
    assert found.cluster.dialect == "kip-320-draft"
    assert [each.name for each in found.topics] == ["orders", "many"]
    assert found.topics[1].configs == {"retention.ms": "5"}
    reset, produce, hold = (each.do for each in found.steps)
    assert isinstance(reset, VerbCall)
    assert isinstance(produce, ActionCall)
    assert produce.arguments["topic"] == "7"
    assert isinstance(hold, VerbCall)
    assert hold.arguments == {"topic": "orders", "partition": 0, "broker": 2}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[]", "f:1:1: a scenario is to be a mapping"),
        ("summary: x", "f:1:1: steps is left out"),
        ("steps: [reset]", "f:1:1: summary is left out"),
        ("summary: x\nstep: [reset]", "f:2:1: there is no 'step'; did you mean steps?"),
        ("summary: [x]\nsteps: [reset]", "f:1:10: summary is to be one line of text"),
        ("summary: x\nteaches: 3\nsteps: [reset]", "f:2:10: teaches is to be text"),
        ("summary: x\nsteps: []", "f:2:8: steps is to be a list of steps"),
        ("summary: x\ncluster: 3\nsteps: [reset]", "f:2:10: cluster is to be a mapping"),
        (
            "summary: x\ncluster: {broker: 3}\nsteps: [reset]",
            "f:2:11: there is no 'broker'; did you mean brokers?",
        ),
        (
            "summary: x\ncluster: {brokers: three}\nsteps: [reset]",
            "f:2:20: brokers: input should be a valid integer",
        ),
        (
            "summary: x\ncluster: {clock: sundial}\nsteps: [reset]",
            "f:2:18: clock: input should be 'real' or 'manual'",
        ),
        (
            "summary: x\ntopics: [{partitions: 3}]\nsteps: [reset]",
            "f:2:10: name is left out",
        ),
        ("summary: x\ntopics: {}\nsteps: [reset]", "f:2:9: topics is to be a list"),
        (
            "summary: x\ncluster: {brokers: $x}\nsteps: [reset]",
            "f:2:10: a reference stands here for the answer of a step, and no step comes before",
        ),
        (
            "summary: x\ntopics: [{name: t, partitions: $x}]\nsteps: [reset]",
            "f:2:10: a reference stands here for the answer of a step, and no step comes before",
        ),
    ],
)
def test_mistakes_around_the_steps(text: str, told: str) -> None:
    assert mistake(text).startswith(told)


@pytest.mark.parametrize(
    ("step", "told"),
    [
        ("[reset]", "f:3:5: a step is to be a mapping"),
        (
            "{cluster: {}, expect: {cluster_id: {matches: '('}}}",
            "f:3:50: no regular expression: missing ), unterminated subpattern",
        ),
        (
            "{produce: {topic: t, records: [a0..a999999]}}",
            "f:3:35: records: ranges stand for 100000 texts at most, up to a0..a999999",
        ),
        ("{}", "f:3:5: this step does nothing, expects nothing, says nothing"),
        ("{as: x}", "f:3:5: this step does nothing"),
        ("helt: {topic: orders}", "f:3:5: there is no step 'helt'; did you mean"),
        (
            "{reset: {}, healthz: {}}",
            "f:3:17: a step does one thing, and this one does reset already",
        ),
        ("hold: {topic: orders}", "f:3:5: broker is left out"),
        ("hold: {topic: orders, broker: two}", "f:3:35: broker is to be a number"),
        ("hold: {topic: [orders], broker: 2}", "f:3:19: topic is to be text"),
        ("hold: {topic: orders, broker: 2, att: 3}", "f:3:38: there is no 'att'; did you mean at?"),
        ("hold: {topic: orders, broker: 2, at: -3}", "f:3:42: at: input should be greater than"),
        ("add_fault: {api: Fetch, action: {dela: 3}}", "f:3:37: action: there is no field 'dela'"),
        ("produce: {topic: orders}", "f:3:14: records is left out (or batches,"),
        ("produce: {topic: orders, batches: []}", "f:3:39: batches: array should have at least 1"),
        (
            "produce: {topic: orders, batches: [{records: [a]}, {partition: 1}]}",
            "f:3:56: batches.1.records is left out",
        ),
        (
            "produce: {topic: orders, batches: [{records: [a], base: 3}]}",
            "f:3:40: batches[0]: there is no field 'base'; there are topic, partition, records,",
        ),
        (
            "produce: {topic: orders, records: [a], batches: [{records: [a]}]}",
            "f:3:14: batches are given, which have their own records",
        ),
        (
            "produce: {topic: orders, base_offset: 3, batches: [{records: [a]}]}",
            "f:3:14: batches are given, which have their own base_offset",
        ),
        (
            "produce: {topic: orders, every_ms: 3, batches: [{records: [a]}]}",
            "f:3:14: batches are sent at once, and every_ms is for records",
        ),
        ("produce: {topic: orders, records: []}", "f:3:39: records: array should have at least 1"),
        ("produce: {topic: orders, records: [1]}", "f:3:39: records: a record is text, or"),
        ("produce: {topic: orders, records: [a], acks: 2}", "f:3:50: acks: input should be 'all'"),
        (
            "fetch: {topic: orders, isolation: dirty}",
            "f:3:39: isolation: input should be 'read_uncommitted' or 'read_committed'",
        ),
        (
            "list_offsets: {topic: orders, at: last}",
            "f:3:39: at: input should be one of latest, earliest,",
        ),
        ("{say: 3}", "f:3:11: the value of say is to be text"),
        ("{say: x, repeat: 0}", "f:3:22: repeat is to be a number from 1 to 10000"),
        ("{say: x, repeat: 10001}", "f:3:22: repeat is to be a number from 1 to 10000"),
        ("{say: x, within_ms: 600001}", "f:3:25: within_ms is to be a number from 1 to 600000"),
        ("{say: x, within_ms: soon}", "f:3:25: within_ms is to be a number"),
        ("{say: x, as: a b}", "f:3:18: as is to be a name"),
        ("{reset: {}, background: x}", "f:3:17: only a client acts in the background"),
        (
            "{fetch: {topic: orders}, background: x, expect: {error: NONE}}",
            "f:3:45: in the background there is no answer for expect",
        ),
        ("await: x", "f:3:12: no action 'x' is in the background"),
        ("{healthz: {}, expect: {}}", "f:3:27: nothing is expected"),
        ("{healthz: {}, expect: ok}", "f:3:27: expect is to be a mapping"),
        ("{healthz: {}, expect: {stat: ok}}", "f:3:28: the answer has no field 'stat'"),
        ("{expect: {status: ok}}", "f:3:15: there is no answer that could have 'status'"),
        (
            "{partition: {topic: orders}, expect: {replicas: {contains: {brocker: 3}}}}",
            "f:3:65: the answer has no field 'brocker'; did you mean broker?",
        ),
        (
            "{partition: {topic: orders}, expect: {replicas: [{log_ende: 3}]}}",
            "f:3:55: the answer has no field 'log_ende'",
        ),
        (
            "{topics: {}, expect: {0: {nam: x}}}",
            "f:3:31: the answer has no field 'nam'; did you mean name?",
        ),
        (
            "{fetch: {topic: orders}, expect: {error: OFFSET_NOT_AVAILBLE}}",
            "f:3:46: Kafka has no error 'OFFSET_NOT_AVAILBLE'; did you mean OFFSET_NOT_AVAILABLE?",
        ),
        (
            "{fetch: {topic: orders}, expect: {refused: NONE}}",
            "f:3:39: only verbs are refused",
        ),
        ("{healthz: {}, expect: {refused: 3}}", "f:3:37: refused is to be the name of an error"),
        ("{expect: {pending: x}}", "f:3:24: no action 'x' is in the background"),
        ("{expect: {partition: {leader: 2}}}", "f:3:15: the topic of the partition is left out"),
        (
            "{expect: {partition: {topic: orders, leder: 2}}}",
            "f:3:42: a partition has no field 'leder'; did you mean leader?",
        ),
        ("{expect: {trace: {apis: Fetch}}}", "f:3:23: there is no 'apis'; did you mean api?"),
        (
            "{expect: {trace: {since: before}}}",
            "f:3:30: no step before is named 'before'; no step has a name yet",
        ),
        (
            "{expect: {trace: {where: {versio: 3}}}}",
            "f:3:31: an exchange has no field 'versio'; did you mean version?",
        ),
        ("hold: {topic: orders, broker: $x.id}", "f:3:35: no step before is named 'x' (as: x)"),
        ("{healthz: {}, expect: {status: $x.id}}", "f:3:36: no step before is named 'x'"),
    ],
)
def test_mistakes_in_a_step(step: str, told: str) -> None:
    assert step_mistake(step).startswith(told)


def test_a_name_that_nearly_is_one() -> None:
    found = mistake(
        """\
        summary: x
        steps:
          - {healthz: {}, as: first}
          - wait_for_fault: {id: $frist.id}
        """
    )
    assert found.startswith(
        "f:4:26: no step before is named 'frist' (as: frist); did you mean first?"
    )


def test_a_background_is_named_once() -> None:
    found = mistake(
        """\
        summary: x
        steps:
          - {fetch: {topic: t}, background: reader}
          - {fetch: {topic: t}, background: reader}
        """
    )
    assert found.startswith("f:4:37: 'reader' is in the background already")


def test_what_stands_for_an_answer_is_checked_when_it_is_there() -> None:
    read(
        """\
        summary: x
        steps:
          - {cluster: {}, as: c}
          - hold: {topic: orders, broker: $c.controller, at: $c.controller}
          - add_fault: {api: Fetch, broker: $c.controller, action: {delay: $c.controller}}
        """
    )


_STRANGE: Final[tuple[object, ...]] = (
    *(None, True, -1, 0, 2**31, 2**63, 10**30, 1.5, float("inf"), float("nan")),
    *("", "x" * 10_000, "$", "$$", "$x.y", "a0..a9", "a0..a99999999", "9" * 5000, "\0", "("),
    *([], {}, [[]], {"": 1}, [None], {"$x": 1}, {"matches": "["}, ["a0..a99999"] * 5),
)


def places(data: object) -> Iterator[tuple[Any, object]]:
    """Each container in data, with a key or an index of it."""
    items: Iterable[tuple[object, object]] = ()
    if isinstance(data, dict):
        items = list(data.items())
    elif isinstance(data, list):
        items = list(enumerate(data))
    for key, value in items:
        yield data, key
        yield from places(value)


@pytest.mark.parametrize("seed", range(int(os.environ.get("FENCEPOST_SCENARIO_FILES", "30"))))
def test_any_file_is_a_scenario_or_is_refused_in_one_line(seed: int) -> None:
    drawn = random.Random(seed)
    data = yaml.safe_load(drawn.choice(sorted(shipped().values())).read_text("utf-8"))
    data["steps"] = data["steps"][:4]
    for _ in range(drawn.randint(1, 3)):
        inside, key = drawn.choice(list(places(data)))
        inside[key] = deepcopy(drawn.choice(_STRANGE))
    text = yaml.safe_dump(data, allow_unicode=True, sort_keys=False)
    if drawn.random() < 0.5:
        text = text.replace("'", "")  # what was text may be a number, a range, or no YAML
    try:
        read(text)
    except ScenarioFileError as error:
        assert str(error).isprintable()
        assert len(str(error)) < 1100
