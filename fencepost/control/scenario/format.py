"""A file read as a scenario: everything in it is checked before anything is done."""

from collections.abc import Iterator
from pathlib import Path as FilePath
from typing import Final

from fencepost.control.scenario.checking import check_keys, checked, mapping
from fencepost.control.scenario.document import Data, Document
from fencepost.control.scenario.model import Scenario
from fencepost.control.scenario.steps import StepReader
from fencepost.verbs.bodies import NewTopicBody
from fencepost.verbs.serving import ClusterBody

_KEYS: Final = ("summary", "teaches", "cluster", "topics", "steps")


def read_file(path: FilePath) -> Scenario:
    """The scenario in a file.

    :raises Mistake: When something in it is wrong.
    :raises OSError: When it cannot be read.
    :raises UnicodeDecodeError: When it is no text.
    """
    return read_text(path.read_text(encoding="utf-8"), file=str(path), name=path.stem)


def read_text(text: str, *, file: str, name: str) -> Scenario:
    """The scenario that a text is.

    :param file: For messages.
    :raises Mistake: When something in it is wrong.
    """
    document = Document(file, text)
    given = mapping(document, document.data, (), "a scenario")
    check_keys(document, given, (), _KEYS)
    for needed in ("summary", "steps"):
        if needed not in given:
            raise document.wrong((), f"{needed} is left out")
    body, _ = checked(
        document,
        ClusterBody,
        mapping(document, given.get("cluster", {}), ("cluster",), "cluster"),
        ("cluster",),
    )
    assert body is not None, "a reference before the first step"
    return Scenario(
        name=name,
        summary=_line(document, given),
        teaches=_paragraphs(document, given),
        cluster=body,
        topics=tuple(_topics(document, given.get("topics", []))),
        steps=StepReader(document).read_all(given["steps"], ("steps",)),
        document=document,
    )


def _line(document: Document, given: dict[str, Data]) -> str:
    summary = given["summary"]
    if not isinstance(summary, str) or not summary.strip() or "\n" in summary.strip():
        raise document.wrong(("summary",), "summary is to be one line of text")
    return summary.strip()


def _paragraphs(document: Document, given: dict[str, Data]) -> str:
    teaches = given.get("teaches", "")
    if not isinstance(teaches, str):
        raise document.wrong(("teaches",), "teaches is to be text")
    return teaches.strip()


def _topics(document: Document, given: Data) -> Iterator[NewTopicBody]:
    if not isinstance(given, list):
        raise document.wrong(("topics",), "topics is to be a list")
    for at, each in enumerate(given):
        path = ("topics", at)
        data: dict[str, Data] = {"name": each} if isinstance(each, str) else {}
        body, _ = checked(
            document, NewTopicBody, data or mapping(document, each, path, "a topic"), path
        )
        assert body is not None, "a reference before the first step"
        yield body
