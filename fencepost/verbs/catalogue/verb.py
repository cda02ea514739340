"""What the catalogue says of a verb.

A verb's parameters are those in its path and the fields of its request model. HTTP puts the former
in the path and the latter in the body (of a POST) or the query (of a GET). The command line takes
those in the path, and ``positional`` ones, as arguments in that order, and the others as options.
A scenario and Python name them all. Models are named, and imported when they are asked for: few
verbs are carried out in one process.
"""

import re
from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, field

if TYPE_CHECKING:
    from fencepost.verbs.answers import Answer
    from fencepost.verbs.bodies import Body

PARTITION: Final = "/v1/topics/{topic}/partitions/{partition}"
"""The path of a partition."""
PATH_TYPES: Final = MappingProxyType(
    {
        "topic": str,
        "partition": int,
        "broker": int,
        "group": str,
        "member": str,
        "id": int,
        "transactional_id": str,
    }
)
"""The type of each parameter in a path, by its name."""


class Method(StrEnum):
    """An HTTP method."""

    GET = "GET"
    POST = "POST"
    DELETE = "DELETE"


class Shape(StrEnum):
    """Whether an answer is one model, a list or a stream."""

    ONE = "one"
    LIST = "list"
    STREAM = "stream"
    """Server-sent events; the data of each is one model."""


class Verb(Struct, frozen=True, kw_only=True):
    """An operation on a cluster, or a query of its state."""

    name: str
    """In Python, in scenarios, and OpenAPI's operation id."""
    method: Method
    path: str
    """With the names of parameters in braces."""
    request: str | None = None
    """The model of its other parameters, such as ``bodies.ElectBody``: a POST's body, which may be
    left out if all of its fields may; a GET's query."""
    answer: str
    """The model of its answer, such as ``answers.topics.PartitionState``."""
    shape: Shape = Shape.ONE
    command: str
    """The words of its command."""
    positional: tuple[str, ...] = ()
    """Fields that are arguments there, behind those of the path."""
    name_first: bool = False
    """Whether its first argument may stand before the last word of its command."""
    subcommand_field: str = ""
    """A field whose few possible values are each the last word of a command of its own."""
    subcommands: Mapping[str, str] = field(default_factory=dict)
    """These values, and what each does: one sentence."""
    summary: str
    """One sentence, for every help."""

    @property
    def request_model(self) -> "type[Body] | None":
        """The model of ``request``."""
        if self.request is None:
            return None
        model: type[Body] = _model(self.request)
        return model

    @property
    def response_model(self) -> "type[Answer]":
        """The model of ``answer``."""
        model: type[Answer] = _model(self.answer)
        return model

    @property
    def path_parameters(self) -> tuple[str, ...]:
        """Names of the parameters in the path, in order."""
        return tuple(re.findall(r"{(\w+)}", self.path))

    @property
    def commands(self) -> tuple[str, ...]:
        """All of its commands."""
        return tuple(f"{self.command} {word}" for word in self.subcommands) or (self.command,)


@cache
def _model(name: str) -> Any:  # noqa: ANN401  # the caller has its type
    """A model by its module below `fencepost.verbs` and its name there."""
    module, _, model = name.rpartition(".")
    return getattr(import_module(f"fencepost.verbs.{module}"), model)
