"""Each statement of the proposals is shown by tests that the run collects, or has a reason."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from typing import Final

import pytest

from docs.generate import ROOT
from docs.statements import WORK, StatementError, parse, proposals
from tests.harness.run import run

LEAST: Final = {"kip-207": 14, "kip-320": 42, "kip-320-draft": 16, "kip-27": 14, "kip-1023": 25}
"""How many statements a proposal has at least."""
EVERY: Final = [statement for proposal in proposals() for statement in proposal.statements]
TESTS: Final = {test for statement in EVERY for test in statement.tests}
HEAD: Final = 'name = "N"\nsubject = "S"\n'
ROW: Final = '[[statements]]\nid = "k-01"\nsection = "S"\nsays = "It does."\n'


def without_parameters(node_ids: Iterable[str]) -> set[str]:
    return {each.strip().partition("[")[0] for each in node_ids}


def collected(files: Iterable[str]) -> set[str]:
    """What a run of these files collects."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-n", "0", *files]
    # Options of this run, such as -v, would change what that one prints.
    env = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
    return without_parameters(run(command, cwd=ROOT, env=env, code=None, timeout_s=200).lines)


def missing(named: AbstractSet[str], here: AbstractSet[str]) -> list[str]:
    """The tests that a run of all does not collect.

    :param here: What this run has collected, maybe a part.
    """
    left = named - here
    files = sorted({test.partition("::")[0] for test in left})
    found = [each for each in files if (ROOT / each).is_file()]
    return sorted(left - collected(found)) if found else sorted(left)


def test_every_test_that_a_statement_names_is_collected(request: pytest.FixtureRequest) -> None:
    here = without_parameters(item.nodeid for item in request.session.items)
    assert missing(TESTS, here) == []


def test_a_test_that_is_not_there_is_missed() -> None:
    there = "tests/test_statements.py::test_a_test_that_is_not_there_is_missed"
    not_there = ["tests/nowhere.py::test_a", "tests/test_statements.py::test_nothing"]
    assert missing({there, *not_there}, set()) == not_there


def test_no_proposal_has_too_few() -> None:
    count = {each.key: len(each.statements) for each in proposals()}
    assert count.keys() == LEAST.keys()
    assert [key for key, least in LEAST.items() if count[key] < least] == []


def test_each_says_something_in_a_sentence_that_no_other_says() -> None:
    says = [(statement.id.rpartition("-")[0], statement.says) for statement in EVERY]
    assert len(set(says)) == len(says)
    assert [each for _, each in says if not each.endswith((".", ".)"))] == []


def test_all_work_that_is_named_brings_something() -> None:
    assert {each.comes_with for each in EVERY if each.comes_with} == WORK


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (ROW, "has to have one of"),
        (f'{ROW}tests = ["t"]\nnot_applicable = "no"', "has to have one of"),
        (f"{ROW}tests = []", "has to have one of"),
        (f'{ROW}comes_with = "the next one"', "not in WORK"),
        (ROW.replace("k-01", "k-02") + 'tests = ["t"]', "k-02 stands where k-01 is due"),
        (f'{ROW}tests = ["t"]\nnote = "x"', "note"),
        (ROW.replace("says", "said") + 'tests = ["t"]', "sa"),
        (f"{ROW}tests = ", "Invalid value"),
        ("", "statements"),
    ],
)
def test_what_is_no_statement_is_refused(text: str, said: str) -> None:
    with pytest.raises(StatementError, match=said):
        parse("k", HEAD + text)


def test_a_statement_that_is_whole_is_read() -> None:
    (statement,) = parse("k", f'{HEAD}{ROW}tests = ["t", "u"]').statements
    assert (statement.id, statement.says, statement.tests) == ("k-01", "It does.", ("t", "u"))
