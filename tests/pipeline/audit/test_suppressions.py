"""The file of suppressions: which findings a line is of, and the error of one that is wrong."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from docs.generate import ROOT
from fencepost.cli.audit import _read_suppressions, _summary, exit_code
from fencepost.cli.output import plain_lines
from fencepost.pipeline.audit.job import ALL_RULES, AuditOptions
from fencepost.pipeline.audit.rule import PartitionMetadata, Violation
from fencepost.pipeline.audit.spark_task import check_partitions
from fencepost.pipeline.audit.suppressions import (
    InvalidSuppressions,
    Suppression,
    parse_suppressions,
    reason_of,
)
from fencepost.pipeline.requirements import CannotRunError
from tests.pipeline.audit.summaries import NOW_MS, batches, findings

PAGE = (ROOT / "docs" / "audit.md").read_text()
FINDING = Violation(
    rule="true-indexes",
    topic="orders-eu",
    partition=3,
    message="an entry is not so",
    broker=2,
    place="log",
    segment=4500,
)


def parsed(text: str) -> tuple[Suppression, ...]:
    return parse_suppressions(text, "known.txt", tuple(ALL_RULES), NOW_MS)


def test_the_example_of_the_page_is_understood() -> None:
    (example,) = re.findall(r"```\n(# Broker 2.*?)```", PAGE, re.DOTALL)
    rule, _ = parse_suppressions(example, "known.txt", tuple(ALL_RULES), NOW_MS)
    assert rule == Suppression(rule="true-indexes", topic="orders-*", broker=2, reason="OPS-1234")
    assert reason_of(FINDING, [rule]) == "OPS-1234"


@pytest.mark.parametrize(
    ("conditions", "suppressed"),
    [
        ("", True),
        ("topic=orders-eu partition=3 broker=2 place=log segment=4500", True),
        ("topic=orders-?u", True),
        ("topic=orders", False),
        ("partition=2", False),
        ("broker=1", False),
        ("place=tier", False),
        ("segment=0", False),
        ("until=2023-11-14", True),
        ("until=2023-11-13", False),
    ],
)
def test_a_line_is_of_the_findings_that_fit_all_it_says(conditions: str, suppressed: bool) -> None:
    known = parsed(f"true-indexes {conditions} -- so it is")
    assert reason_of(FINDING, known) == ("so it is" if suppressed else None)


def test_another_rule_and_what_is_explained_is_not_suppressed() -> None:
    known = parsed("\n# a comment\ntorn-tail -- one\ntrue-indexes -- two")
    assert reason_of(FINDING, known) == "two"
    assert reason_of(FINDING, known[:1]) is None
    assert reason_of(replace(FINDING, explanation="a crash"), known) is None


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("true-indexes topic=orders", "it has no reason: put one behind --, as in true-indexes"),
        ("true-indexes --", "it has no reason"),
        ("true-indexs -- x", "there is no rule true-indexs; did you mean true-indexes?"),
        ("-- x", "it has no rule: a line begins with one, as in true-indexes"),
        ("torn-tail topik=a -- x", "'topik=a' is no condition, only topic, partition, broker, "),
        ("torn-tail orders-3 -- x", "'orders-3' is no condition"),
        ("torn-tail partition=one -- x", "'partition=one' can't be: write partition=3"),
        ("torn-tail broker -- x", "'broker' has no value: write broker=2"),
        ("torn-tail place=disk -- x", "'place=disk' can't be: write place=log or place=tier"),
        ("torn-tail until=soon -- x", "'until=soon' can't be: write until=2027-01-31"),
        ("torn-tail broker=1 broker=2 -- x", "'broker=2' gives broker a second time: write a line"),
    ],
)
def test_an_error_names_the_line_and_what_would_be_right(line: str, said: str) -> None:
    with pytest.raises(InvalidSuppressions) as error:
        parsed(f"# known\n\n{line}\n")
    assert str(error.value).startswith(f"known.txt, line 3: {said}")
    assert "\n" not in str(error.value)


def test_a_file_that_cannot_be_used_is_told_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "known.txt"
    options = AuditOptions(directory="/logs", now_ms=NOW_MS)
    path.write_text("torn-tail -- x\n")
    assert _read_suppressions(path, options) == (Suppression(rule="torn-tail", reason="x"),)
    for content, said in (
        (b"\xff", f"{path} is no text in UTF-8"),
        (b"torn-tail", f"{path}, line 1: it has no reason"),
    ):
        path.write_bytes(content)
        with pytest.raises(CannotRunError, match=f"^{re.escape(said)}"):
            _read_suppressions(path, options)


def test_what_is_suppressed_is_recorded_and_is_no_violation() -> None:
    rows = batches(
        {"base_offset": 0, "problem": "crc", "message": "no"},
        {"base_offset": 10, "problem": "offset-index", "message": "wrong"},
    )
    known = {("orders", 0): PartitionMetadata()}
    rules = ("crc-and-structure",)
    for text, violations, suppressed in (
        ("torn-tail -- x", 1, 0),
        ("crc-and-structure topic=orders -- OPS-1", 0, 1),
    ):
        (found,) = check_partitions(
            rows, None, known, now_ms=NOW_MS, rules=rules, suppressions=parsed(text)
        )
        (count,) = found.summary.rule_counts
        assert (count.found, count.violations, count.suppressed) == (1, violations, suppressed)
        (incident,) = found.summary.incidents
        assert incident.is_open == bool(violations)
        assert incident.suppression == (None if violations else "OPS-1")
        result = findings([found.summary], found.violations)
        assert result.findings["suppression"].to_pylist() == [incident.suppression]
        assert (result.violation_count, result.suppressed_count) == (violations, suppressed)
        assert exit_code(result) == (1 if violations else 0)
        told = [
            text
            for block in _summary(result, None, None, with_lineage=False)
            for text in plain_lines(block)
        ]
        lost = "10 records lost: orders-0 offsets 0 to 9"
        assert told[-1] == (
            f"1 violation; {lost}"
            if violations
            else f"nothing found; 1 finding suppressed; {lost} (suppressed)"
        )
        word = "violation  " if violations else "suppressed  "
        (line,) = (text for text in told if text.startswith(word))
        assert line.endswith("" if violations else " (OPS-1)")
