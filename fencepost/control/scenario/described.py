"""Steps, answers and exchanges in a line each, for a reader."""

import json
from collections.abc import Iterator, Mapping
from typing import Final

from fencepost.control.scenario.document import Data
from fencepost.control.scenario.model import Await, DoAction, DoVerb, Step, Together
from fencepost.control.scenario.ranges import gathered
from fencepost.protocol.errors import ErrorCode, error_name
from fencepost.verbs.answers.seen import ExchangeState

MAX_TEXT: Final = 1000
"""Characters of a value that are shown."""
MAX_ELEMENTS: Final = 20
"""Of a list, likewise."""


def describe_step(step: Step) -> str:
    """What a step does."""
    match step.do:
        case DoVerb(verb=verb, given=given):
            return _deed(verb.name, given, step)
        case DoAction(action=action, given=given):
            return _deed(action.name, given, step)
        case Await(name=name):
            return f"await {name}"
        case Together(steps=steps):
            return f"together: {'; '.join(map(describe_step, steps))}"
        case None:
            return "expect" if step.expect or step.until else "say"


def _deed(name: str, given: Mapping[str, Data], step: Step) -> str:
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


def remark(step: Step, answer: Data) -> str | None:
    """What a reader wants to see of an answer that is as expected; mostly nothing."""
    if not isinstance(step.do, DoAction) or step.do.action.name != "replicated":
        return None
    assert isinstance(answer, dict)
    return (
        f"broker {step.do.given['replica']} was sent offsets {answer['first_offset']} to "
        f"{answer['last_offset']}, {answer['bytes']} of {answer['of_bytes']} bytes: "
        f"{answer['percent']} %"
    )


def _value(value: Data) -> str:
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return f"[{', '.join(map(str, gathered(value)))}]"
    return value if isinstance(value, str) else compact(value)


def describe_answer(answer: Data) -> Iterator[str]:
    """An answer, a field a line; of a list of more than texts and numbers an element a line."""
    if not isinstance(answer, dict):
        yield compact(answer)
        return
    for key, value in answer.items():
        if isinstance(value, list) and any(isinstance(each, dict) for each in value):
            yield f"{key}:"
            yield from (f"- {compact(each)}" for each in value[:MAX_ELEMENTS])
            if len(value) > MAX_ELEMENTS:
                yield f"- and {len(value) - MAX_ELEMENTS} more"
        else:
            yield f"{key}: {compact(value)}"


def compact(value: object) -> str:
    """Data in one line; runs of texts as ranges."""
    text = json.dumps(_gathered(value), default=str, ensure_ascii=False)
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}..."


def _gathered(value: object) -> object:
    if isinstance(value, Mapping):
        return {key: _gathered(each) for key, each in value.items()}
    if isinstance(value, list):
        return gathered([_gathered(each) for each in value])
    return value


def describe_exchange(exchange: ExchangeState) -> str:
    """A request and what it was answered."""
    who = exchange.client_id or "nobody"
    what = f"{exchange.api} v{exchange.version}"
    return f"{exchange.number} {who} to broker {exchange.broker}: {what} {_answered(exchange)}"


def _answered(exchange: ExchangeState) -> str:
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
