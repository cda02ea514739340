"""The JSON Schema of scenario files: it allows what the loader allows, and knows every name."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING

import jsonschema_rs
import pytest

from fencepost.scenario.document import Document
from fencepost.scenario.json_schema import DIALECT, scenario_schema
from fencepost.scenario.loader import OPERATIONS, read_text, shipped
from tests.scenario.scenarios import documented

if TYPE_CHECKING:
    from fencepost.scenario.document import Data

SPELLINGS = """\
    summary: Each way to say it.
    cluster: {brokers: 3, configs: [min.insync.replicas=2], broker_configs: {1: {a.b: 2}}}
    topics: [orders, "many:4", {name: more, configs: {retention.ms: 5}}, {name: 7}]
    steps:
      - reset
      - healthz: null
      - {say: Events., events: {}, as: all, expect: {0: {kind: reset}, size: {above: 1}}}
      - produce: {topic: orders, records: [{key: k, value: 1, headers: {h: null}}, a0..a9]}
        background: order
      - hold: {topic: orders, broker: $all.0.broker, at: $all.0.number}
      - add_fault: {api: [Produce, Fetch], action: {delay: 5}, count: null}
        as: slow
      - wait_for_fault: {id: $slow.id}
      - list_offsets: {topic: orders, at: latest}
        expect: {offset: {at_least: 0, not: 7}, error: {one_of: [NONE, "$$"]}}
      - await: order
        expect: {error: NONE, partitions: [{partition: 0, base_offset: 0}]}
      - together: [{elect: {topic: orders, leader: 2}, expect: {refused: NOT_CONTROLLER}}]
      - run: make shop
      - run: {command: [make, serve], env: {PORT: 8080}, ready: {port: 8080}}
        background: shop
      - process: shop
        until: {output: {matches: paid}}
      - {kill: {process: shop, signal: TERM}, expect: {exit_code: {one_of: [0, -15]}}}
      - await: shop
      - expect:
          pending: order
          partition: [{topic: orders, replicas: {contains: {broker: 3}, size: 3}}]
          trace: {api: Fetch, since: all, where: {version: 12, request: {x: 1}}, size: {at_most: 3}}
    """


@cache
def schema() -> jsonschema_rs.Validator:
    jsonschema_rs.meta.validate(scenario_schema())
    return jsonschema_rs.validator_for(scenario_schema())


def errors(text: str) -> list[str]:
    data: Data = Document("f", dedent(text)).data
    return [str(each) for each in schema().iter_errors(data)]


def step_errors(step: str) -> list[str]:
    return errors(f"summary: x\nsteps:\n  - {step}\n")


@pytest.mark.parametrize("path", shipped().values(), ids=list(shipped()))
def test_the_shipped_ones_are_allowed(path: Path) -> None:
    assert errors(path.read_text()) == []


def test_the_one_of_the_docs_and_every_spelling_are_allowed() -> None:
    assert errors(documented("<!-- run: scenario -->")) == []
    processes = f"summary: x\n{documented('## Processes of your own')}"
    assert read_text(processes, file="f", name="processes").steps
    assert errors(processes) == []
    assert read_text(dedent(SPELLINGS), file="f", name="spelled").steps
    assert errors(SPELLINGS) == []


def test_every_step_is_known_and_described() -> None:
    found = scenario_schema()
    assert found["$schema"] == DIALECT
    steps = found["$defs"]["step"]["properties"]
    assert set(OPERATIONS) <= set(steps)
    assert [name for name in OPERATIONS if not steps[name].get("description")] == []


@pytest.mark.parametrize(
    "step",
    [
        "restart",
        "helt: {topic: orders, broker: 2}",
        "hold: {topic: orders}",
        "hold: {topic: orders, broker: two}",
        "hold: {topic: orders, broker: 2, att: 3}",
        "fetch: {topic: orders, isolation: dirty}",
        "produce: {topic: orders, records: []}",
        "add_fault: {api: Fetch, action: {dela: 3}}",
        "{healthz: {}, expect: {stat: ok}}",
        "{healthz: {}, until: {stat: ok}}",
        "{partition: {topic: orders}, expect: {replicas: {contains: {brocker: 3}}}}",
        "{topics: {}, expect: {0: {nam: x}}}",
        "{expect: {partition: {topic: orders, leder: 2}}}",
        "{healthz: {}, expect: {partition: {leader: 2}}}",
        "{healthz: {}, expect: {trace: {apis: Fetch}}}",
        "{healthz: {}, expect: {trace: {where: {versio: 3}}}}",
        "{healthz: {}, expect: {}}",
        "{say: x, repeat: 0}",
        "{say: x, within_ms: soon}",
        "{say: x, as: a b}",
        "together: [{helt: {}}]",
        "run: {comand: x}",
        "kill: {process: x, signal: PIPE}",
    ],
)
def test_what_the_loader_refuses_is_refused(step: str) -> None:
    assert step_errors(step)


def test_a_file_without_steps_is_refused() -> None:
    assert errors("summary: x")
    assert errors("summary: x\nsteps: []")
    assert errors("summary: x\nsteps: [reset]\ncluster: {broker: 3}")
