from __future__ import annotations

import json
from xml.etree import ElementTree as ET

from fencepost.scenario.formatting import (
    describe_failure,
    describe_step,
    junit_xml,
    outcome_to_dict,
)
from fencepost.scenario.model import ScenarioOutcome
from tests.scenario.scenarios import played, scenario

GOOD = "- {say: All is well., healthz: {}, expect: {status: ok}}"
BAD = "- healthz\n- {fetch: {topic: orders}, expect: {values: [a], next_offset: 0}}\n- reset"


def test_steps_are_described_in_a_line() -> None:
    found = scenario(
        """\
        - produce: {topic: orders, partition: 2, records: [a0..a9, b], acks: 1}
          background: order
        - {await: order}
        - {step: {topic: orders, broker: 2}, repeat: 3}
        - {fetch: {topic: orders}, until: {values: [a]}}
        - together: [reset, {call: {api: Fetch, request: {max_bytes: 3}}}]
        - say: And so on.
        - expect: {partition: {topic: orders, leader: 1}}
        - isolate_broker: {broker: 1, from: controller}
        """
    )
    assert [describe_step(each) for each in found.steps] == [
        "produce orders-2 records=[a0..a9, b] acks=1 in the background as order",
        "await order",
        "step orders-0 broker=2 3 times",
        "fetch orders-0 until it is so",
        'together: reset; call api=Fetch request={"max_bytes": 3}',
        "say",
        "expect",
        "isolate broker broker=1 from=controller",
    ]


async def test_nothing_is_reported_of_what_passed(url: str) -> None:
    assert describe_failure(await played(url, GOOD)) == []


async def test_all_of_it_as_json(url: str) -> None:
    good, bad = await played(url, GOOD), await played(url, BAD)
    data = json.loads(json.dumps(outcome_to_dict(good)))
    assert (data["name"], data["seed"], data["passed"]) == ("test", 0, True)
    assert data["problem"] is None
    (step,) = data["steps"]
    assert (step["says"], step["line"], step["column"]) == ("All is well.", 7, 5)
    assert step["answer"] == {"status": "ok"}
    data = json.loads(json.dumps(outcome_to_dict(bad)))
    assert [each["passed"] for each in data["steps"]] == [True, False]
    assert data["steps"][1]["mismatches"] == [
        {"field": "values", "expected": '["a"]', "came": []},
    ]
    assert data["journal"][-1]["api"] == "Fetch"


async def test_junit_counts_and_tells(url: str) -> None:
    outcomes = [await played(url, GOOD), await played(url, BAD)]
    suites = ET.fromstring(junit_xml(outcomes))
    (suite,) = suites
    for each in (suites, suite):
        assert (each.get("tests"), each.get("failures"), each.get("errors")) == ("2", "1", "0")
    good, bad = suite
    assert (good.get("name"), good.get("file")) == ("test", "test.yaml")
    assert good.find("failure") is None
    assert "passed healthz" in (good.findtext("system-out") or "")
    found = bad.find("failure")
    assert found is not None
    assert (found.get("message") or "").startswith("test.yaml:8:5: step 2 of 3: fetch orders-0")
    assert 'values: expected ["a"], came []' in (found.text or "")
    assert "The journal, up to here:" in (found.text or "")
    assert (found.text or "").endswith("\nThe seed of its random choices: 0 (--seed 0)")
    for case in (good, bad):
        seed = case.find("properties/property[@name='seed']")
        assert seed is not None
        assert seed.get("value") == "0"


def test_junit_is_xml_whatever_a_scenario_says() -> None:
    odd = scenario("- healthz")
    outcome = ScenarioOutcome(
        scenario=odd,
        seed=None,
        steps=(),
        elapsed_ms=1500,
        problem="\x00 <broken> & \ud800",
        journal=(),
    )
    (suite,) = ET.fromstring(junit_xml([outcome]).encode())
    failure_ = suite[0].find("failure")
    assert failure_ is not None
    assert failure_.text == "\N{REPLACEMENT CHARACTER} <broken> & \N{REPLACEMENT CHARACTER}"
    assert suite.get("time") == "1.500"
