"""What a test asks of its cluster: ``fencepost_options``, and above it the test's own markers."""

from collections.abc import Mapping
from typing import Annotated, Final

import pytest
from pydantic import BeforeValidator, ValidationError

from fencepost.verbs.bodies import Listed, NewTopicBody
from fencepost.verbs.models import problems
from fencepost.verbs.serving import ClusterBody

MARKER: Final = "fencepost"


class InvalidOptions(Exception):
    """The options contradict each other. The text is one line, for the author of the test."""


def _read_topic(given: object) -> object:
    """``orders:3:2`` says the same as ``serve --topic`` does with it."""
    if not isinstance(given, str):
        return given
    name, *counts = given.split(":")
    if len(counts) > 2 or not all(text.isascii() and text.isdigit() for text in counts):
        raise ValueError(f"{given!r} is not NAME[:PARTITIONS[:RF]]")
    names = ("partitions", "replication_factor")
    return {"name": name, **dict(zip(names, map(int, counts), strict=False))}


class ClusterOptions(ClusterBody):
    """A cluster for a test."""

    __test__ = False  # pytest takes what is named so for tests

    topics: Listed[Annotated[NewTopicBody, BeforeValidator(_read_topic)]] = ()
    """They are there when the test begins: ``"orders:3:2"``, or what ``create_topic`` takes."""

    @property
    def server_key(self) -> tuple[str, ...]:
        """What tells processes apart: tests for which it is the same share one."""
        return tuple(self.arguments())


def read_options(options: Mapping[str, object], item: pytest.Item | None) -> ClusterOptions:
    """What a test asks for: each argument of its nearest marker that has it, else the option.

    :param options: Of the fixture ``fencepost_options``.
    :param item: The test; None for the cluster of a session.
    :raises WrongOptions: When something is unknown or wrong.
    """
    given = dict(options)
    source = "fencepost_options"
    for mark in reversed(list(item.iter_markers(MARKER)) if item else []):
        source = f"@pytest.mark.{MARKER}"
        if mark.args:
            raise InvalidOptions(f"{source} takes arguments by name only, such as brokers=3")
        given |= mark.kwargs
    try:
        return ClusterOptions.model_validate(given)
    except ValidationError as error:
        raise InvalidOptions(f"{source}: {problems(error)}") from None
