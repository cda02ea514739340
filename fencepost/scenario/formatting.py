"""How a scenario went: lines for a reader, JSON, and JUnit's XML for continuous integration.

Steps, answers and exchanges are a line each. In JUnit's XML a scenario is a test case.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from fencepost.protocol.errors import ErrorCode, error_name
from fencepost.scenario.compare import MISSING, Mismatch
from fencepost.scenario.document import Data, collapse_ranges
from fencepost.scenario.model import (
    ActionCall,
    Await,
    Parallel,
    ProcessCall,
    ScenarioOutcome,
    Step,
    StepOutcome,
    VerbCall,
)
from fencepost.verbs.answers.cluster import ExchangeState

MAX_TEXT: Final = 1000
"""Characters of a value that are shown."""
MAX_ELEMENTS: Final = 20
"""Of a list, likewise."""


def describe_step(step: Step) -> str:
    """What a step does."""
    match step.do:
        case VerbCall(verb=verb, arguments=arguments):
            return _call_text(verb.name, arguments, step)
        case ActionCall(action=action, arguments=arguments):
            return _call_text(action.name, arguments, step)
        case ProcessCall(step=done, arguments=arguments):
            return _call_text(done.name, arguments, step)
        case Await(name=name):
            return f"await {name}"
        case Parallel(steps=steps):
            return f"together: {'; '.join(map(describe_step, steps))}"
        case None:
            return "expect" if step.expect or step.until else "say"


def _call_text(name: str, given: Mapping[str, Data], step: Step) -> str:
    words = [name.replace("_", " ")]
    if isinstance(given.get("topic"), str):
        words.append(f"{given['topic']}-{given.get('partition', 0)}")
    skipped = ("topic", "partition")
    words += (f"{key}={_value(value)}" for key, value in given.items() if key not in skipped)
    if step.background is not None:
        words.append(f"in the background as {step.background}")
    if step.repeat > 1:
        words.append(f"{step.repeat} times")
    if step.until is not None:
        words.append("until it is so")
    return " ".join(words)


def success_note(step: Step, answer: Data) -> str | None:
    """What a reader wants to see of an answer that is as expected; mostly nothing."""
    if not isinstance(step.do, ActionCall) or step.do.action.note is None:
        return None
    if not isinstance(answer, dict):  # in the background
        return None
    return step.do.action.note(step.do.arguments, answer)


def _value(value: Data) -> str:
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return f"[{', '.join(map(str, collapse_ranges(value)))}]"
    return value if isinstance(value, str) else compact_json(value)


def describe_answer(answer: Data) -> Iterator[str]:
    """An answer, a field a line; of a list of more than texts and numbers an element a line."""
    if not isinstance(answer, dict):
        yield compact_json(answer)
        return
    for key, value in answer.items():
        if isinstance(value, list) and any(isinstance(each, dict) for each in value):
            yield f"{key}:"
            yield from (f"- {compact_json(each)}" for each in value[:MAX_ELEMENTS])
            if len(value) > MAX_ELEMENTS:
                yield f"- and {len(value) - MAX_ELEMENTS} more"
        elif isinstance(value, str) and "\n" in value:
            yield f"{key}:"
            yield from (f"| {line[:MAX_TEXT]}" for line in value.splitlines()[-MAX_ELEMENTS:])
        else:
            yield f"{key}: {compact_json(value)}"


def compact_json(value: object) -> str:
    """Data in one line; runs of texts as ranges."""
    text = json.dumps(_with_collapsed_ranges(value), default=str, ensure_ascii=False)
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}..."


def _with_collapsed_ranges(value: object) -> object:
    if isinstance(value, Mapping):
        return {key: _with_collapsed_ranges(each) for key, each in value.items()}
    if isinstance(value, list):
        return collapse_ranges([_with_collapsed_ranges(each) for each in value])
    return value


def describe_exchange(exchange: ExchangeState) -> str:
    """A request and what it was answered."""
    who = exchange.client_id or "unnamed"
    what = f"{exchange.api} v{exchange.version}"
    return f"{exchange.number} {who} to broker {exchange.broker}: {what} {_error_names(exchange)}"


def _error_names(exchange: ExchangeState) -> str:
    if exchange.response is None:
        return "has no answer"
    errors = sorted({error_name(code) for code in _codes(exchange.response)})
    return ", ".join(errors) or ErrorCode.NONE.name


def _codes(value: object) -> Iterator[int]:
    if isinstance(value, Mapping):
        for key, each in value.items():
            if key == "error_code" and isinstance(each, int) and each != ErrorCode.NONE:
                yield each
            else:
                yield from _codes(each)
    elif isinstance(value, list):
        for each in value:
            yield from _codes(each)


def describe_failure(outcome: ScenarioOutcome) -> list[str]:
    """What was not as expected, what was, the journal around it and the seed; nothing where it
    passed.
    """
    if outcome.passed:
        return []
    lines = [] if outcome.problem is None else [outcome.problem]
    for number, step in enumerate(outcome.steps, start=1):
        if not step.passed:
            lines += _failed_step(outcome, step, f"step {number} of {len(outcome.scenario.steps)}")
    if outcome.journal:
        lines.append("The journal, up to here:")
        lines += (f"  {describe_exchange(each)}" for each in outcome.journal)
    for name, process in outcome.processes.items():
        lines.append(f"The process {name}:")
        lines += (f"  {each}" for each in describe_answer(process.model_dump(mode="json")))
    if outcome.seed is not None:
        lines.append(f"The seed of its random choices: {outcome.seed} (--seed {outcome.seed})")
    return lines


def _failed_step(outcome: ScenarioOutcome, failed: StepOutcome, name: str) -> Iterator[str]:
    document, step = outcome.scenario.document, failed.step
    place = f"{document.file}:{step.place.line}:{step.place.column}"
    yield f"{place}: {name}: {describe_step(step)}"
    if failed.problem is not None:
        yield f"  {failed.problem}"
    for mismatch in failed.mismatches:
        line = f" (line {document.place(mismatch.path).line})" if mismatch.path else ""
        field = f"{mismatch.field}: " if mismatch.field else ""
        yield f"  {field}expected {mismatch.expected}, came {describe_actual(mismatch)}{line}"
    if failed.answer is not None:
        yield "  The answer:"
        yield from (f"    {each}" for each in describe_answer(failed.answer))
    for inner in failed.inner:
        if not inner.passed:
            yield from _failed_step(outcome, inner, "in it")


def describe_actual(mismatch: Mismatch) -> str:
    """What came instead."""
    if mismatch.actual is MISSING:
        return "nothing of that name"
    return compact_json(mismatch.actual)


def outcome_to_dict(outcome: ScenarioOutcome) -> dict[str, object]:
    """All of it as JSON has it."""
    return {
        "name": outcome.scenario.name,
        "summary": outcome.scenario.summary,
        "file": outcome.scenario.document.file,
        "seed": outcome.seed,
        "passed": outcome.passed,
        "elapsed_ms": outcome.elapsed_ms,
        "problem": outcome.problem,
        "steps": [_step_data(each) for each in outcome.steps],
        "journal": [each.model_dump(mode="json") for each in outcome.journal],
        "processes": {
            name: each.model_dump(mode="json") for name, each in outcome.processes.items()
        },
    }


def _step_data(outcome: StepOutcome) -> dict[str, object]:
    return {
        "does": describe_step(outcome.step),
        "says": outcome.step.say,
        "line": outcome.step.place.line,
        "column": outcome.step.place.column,
        "passed": outcome.passed,
        "elapsed_ms": outcome.elapsed_ms,
        "answer": outcome.answer,
        "problem": outcome.problem,
        "mismatches": [
            {
                "field": each.field,
                "expected": each.expected,
                "came": None if each.actual is MISSING else each.actual,
            }
            for each in outcome.mismatches
        ],
        "steps": [_step_data(each) for each in outcome.inner],
    }


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
            "name": _xml_text(scenario.name),
            "file": _xml_text(scenario.document.file),
            "time": _seconds(outcome.elapsed_ms),
        },
    )
    if outcome.seed is not None:
        properties = SubElement(case, "properties")
        SubElement(properties, "property", {"name": "seed", "value": str(outcome.seed)})
    lines = describe_failure(outcome)
    if lines:
        found = SubElement(case, "failure", {"message": _xml_text(lines[0]), "type": "expectation"})
        found.text = _xml_text("\n".join(lines))
    steps = (
        f"{'passed' if each.passed else 'FAILED'} {describe_step(each.step)} ({each.elapsed_ms} ms)"
        for each in outcome.steps
    )
    SubElement(case, "system-out").text = _xml_text("\n".join([scenario.summary, *steps]))


def _seconds(ms: int) -> str:
    return f"{ms / 1000:.3f}"


def _xml_text(text: str) -> str:
    """Without the characters that XML cannot hold."""
    return _NOT_IN_XML.sub("\N{REPLACEMENT CHARACTER}", text)
