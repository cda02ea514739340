"""How a scenario went, for a reader and as JSON."""

from collections.abc import Iterator

from fencepost.control.scenario.compare import MISSING, Mismatch
from fencepost.control.scenario.described import (
    compact,
    describe_answer,
    describe_exchange,
    describe_step,
)
from fencepost.control.scenario.outcome import ScenarioOutcome, StepOutcome


def failure(outcome: ScenarioOutcome) -> list[str]:
    """What was not as expected, what was, and the journal around it; nothing where it passed."""
    if outcome.passed:
        return []
    lines = [] if outcome.problem is None else [outcome.problem]
    for number, step in enumerate(outcome.steps, start=1):
        if not step.passed:
            lines += _failed_step(outcome, step, f"step {number} of {len(outcome.scenario.steps)}")
    if outcome.journal:
        lines.append("The journal, up to here:")
        lines += (f"  {describe_exchange(each)}" for each in outcome.journal)
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
        yield f"  {field}expected {mismatch.expected}, came {came(mismatch)}{line}"
    if failed.answer is not None:
        yield "  The answer:"
        yield from (f"    {each}" for each in describe_answer(failed.answer))
    for inner in failed.inner:
        if not inner.passed:
            yield from _failed_step(outcome, inner, "in it")


def came(mismatch: Mismatch) -> str:
    """What came instead."""
    if mismatch.came is MISSING:
        return "nothing of that name"
    return compact(mismatch.came)


def as_data(outcome: ScenarioOutcome) -> dict[str, object]:
    """All of it as JSON has it."""
    return {
        "name": outcome.scenario.name,
        "summary": outcome.scenario.summary,
        "file": outcome.scenario.document.file,
        "passed": outcome.passed,
        "elapsed_ms": outcome.elapsed_ms,
        "problem": outcome.problem,
        "steps": [_step_data(each) for each in outcome.steps],
        "journal": [each.model_dump(mode="json") for each in outcome.journal],
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
                "came": None if each.came is MISSING else each.came,
            }
            for each in outcome.mismatches
        ],
        "steps": [_step_data(each) for each in outcome.inner],
    }
