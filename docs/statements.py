"""The proposals that fencepost implements, statement by statement: docs/proposals/*.toml.

Each file is one proposal. It has its ``name``, its ``subject`` in a few words, and ``statements``.
A statement has an ``id``, the ``section`` of the proposal, and what it ``says`` in our own words,
never the proposal's. What shows it is one of these:

    tests           tests that fail where it does not hold, as pytest's node ids without parameters
    not_applicable  why no test can show it
    comes_with      the work that brings it, by its name in `WORK`

docs/statements.md and a table of docs/conformance.md are made from these files, and
tests/test_statements.py holds them to the tests that the run collects.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

FOLDER: Final = Path(__file__).parent / "proposals"
WORK: Final = frozenset({"access"})
"""What is not there yet, and brings statements with it."""
_SHOWN_BY: Final = ("tests", "not_applicable", "comes_with")


class StatementError(ValueError):
    """A file in docs/proposals is not what `docs.statements` describes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One thing that a proposal says, and what shows it."""

    id: str
    section: str
    says: str
    tests: tuple[str, ...] = ()
    not_applicable: str = ""
    comes_with: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A KIP, or a draft of one."""

    key: str
    """The name of its file, with which the ids of its statements begin."""
    name: str
    subject: str
    statements: tuple[Statement, ...]


@cache
def proposals() -> tuple[Proposal, ...]:
    """All of them, by number; a draft comes after the proposal.

    :raises StatementError: When a file is not as described.
    """
    files = sorted(FOLDER.iterdir(), key=lambda path: (int(path.stem.split("-")[1]), path.stem))
    return tuple(parse(path.stem, path.read_text()) for path in files)


def parse(key: str, text: str) -> Proposal:
    """One file.

    :param key: The name of the file, without its suffix.
    :raises StatementError: When it is not TOML, when an id is not the next one, or when a row does
        not have exactly what a statement has.
    """
    try:
        read = tomllib.loads(text)
        rows = enumerate(read["statements"], 1)
        statements = tuple(_statement(f"{key}-{number:02}", row) for number, row in rows)
        return Proposal(key=key, name=read["name"], subject=read["subject"], statements=statements)
    except (tomllib.TOMLDecodeError, KeyError, TypeError) as error:
        raise StatementError(f"{key}.toml: {error!r}") from error


def _statement(due: str, row: Mapping[str, Any]) -> Statement:
    if row["id"] != due:
        raise StatementError(f"{row['id']} stands where {due} is due")
    if sum(bool(row.get(each)) for each in _SHOWN_BY) != 1:
        raise StatementError(f"{due} has to have one of {', '.join(_SHOWN_BY)}")
    if row.get("comes_with") not in {None, *WORK}:
        raise StatementError(f"{due} comes with {row['comes_with']!r}, which is not in WORK")
    return Statement(**{**row, "tests": tuple(row.get("tests", ()))})
