"""JUnit's XML, as continuous integration reads it: a test case a scenario."""

import re
from collections.abc import Sequence
from typing import Final
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from fencepost.control.scenario.described import describe_step
from fencepost.control.scenario.outcome import ScenarioOutcome
from fencepost.control.scenario.report import failure

SUITE: Final = "fencepost.scenario"
_NOT_IN_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit_xml(outcomes: Sequence[ScenarioOutcome]) -> str:
    """The document."""
    failed = sum(not each.passed for each in outcomes)
    counts = {
        "tests": str(len(outcomes)),
        "failures": str(failed),
        "errors": "0",
        "skipped": "0",
        "time": _seconds(sum(each.elapsed_ms for each in outcomes)),
    }
    suites = Element("testsuites", counts)
    suite = SubElement(suites, "testsuite", {"name": SUITE, **counts})
    for outcome in outcomes:
        _add_case(suite, outcome)
    indent(suites)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{tostring(suites, encoding="unicode")}\n'


def _add_case(suite: Element, outcome: ScenarioOutcome) -> None:
    scenario = outcome.scenario
    case = SubElement(
        suite,
        "testcase",
        {
            "classname": SUITE,
            "name": _text(scenario.name),
            "file": _text(scenario.document.file),
            "time": _seconds(outcome.elapsed_ms),
        },
    )
    lines = failure(outcome)
    if lines:
        found = SubElement(case, "failure", {"message": _text(lines[0]), "type": "expectation"})
        found.text = _text("\n".join(lines))
    steps = (
        f"{'passed' if each.passed else 'FAILED'} {describe_step(each.step)} ({each.elapsed_ms} ms)"
        for each in outcome.steps
    )
    SubElement(case, "system-out").text = _text("\n".join([scenario.summary, *steps]))


def _seconds(ms: int) -> str:
    return f"{ms / 1000:.3f}"


def _text(text: str) -> str:
    """Without the characters that XML cannot hold."""
    return _NOT_IN_XML.sub("\N{REPLACEMENT CHARACTER}", text)
