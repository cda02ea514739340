"""JSON Schemas of expectations: of a type of answer, the fields and operators that it may be
compared with.

The keywords of JSON Schema apply to values of one type each, so that one schema says what a
mapping, a list and a plain value may be. A type of which nothing is known allows everything.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from fencepost.protocol.errors import ErrorCode
from fencepost.scenario.compare import OPERATORS
from fencepost.scenario.expectations import element_of, models_of
from fencepost.verbs.answers.cluster import ExchangeState
from fencepost.verbs.answers.topics import PartitionState
from fencepost.verbs.model import Model

Schema = dict[str, Any]
ANYTHING: Final[Mapping[str, Any]] = {}
_ERROR: Final = "expected.error"
_ERROR_NAMES: Final = {"enum": list(ErrorCode.__members__)}
_INDEX: Final = "^[0-9]+$"


class ExpectationSchemas:
    """The schemas of expectations, each model of an answer once.

    :param trace_filters: The fields of an exchange that ``trace`` selects by.
    """

    def __init__(self, trace_filters: Mapping[str, Schema]) -> None:
        self._trace_filters = trace_filters
        self.definitions: dict[str, Schema] = {_ERROR: {"anyOf": [_ERROR_NAMES, ANYTHING]}}
        """Of the answers' models, by the names that references have; it grows."""

    def of_step(self, kind: object) -> Schema:
        """What ``expect`` of a step may be.

        :param kind: The type of the step's answer; None where it is not known.
        """
        found = self._of_kind(kind)
        found["minProperties"] = 1
        own = found.get("properties", {})
        found["properties"] = {**own, **self._states(own), "pending": {"type": "string"}}
        found["type"] = "object"
        return found

    def _states(self, own: Mapping[str, Schema]) -> dict[str, Schema]:
        partition = self._define("expected.partition", self._partition)
        trace = self._define("expected.trace", self._trace)
        refused = {"type": "string", "description": "The error code with which a verb is refused."}
        return {
            "partition": {"anyOf": [partition, _list_of(partition), _PLAIN]},
            "trace": {"anyOf": [trace, _list_of(trace)]},
            "refused": own.get("refused", refused),
        }

    def _partition(self) -> Schema:
        fields = self._fields((PartitionState,))
        names = {"topic": {"type": "string"}, "partition": {"type": "integer", "minimum": 0}}
        return {
            "type": "object",
            "properties": {**fields, **names},
            "required": ["topic"],
            "additionalProperties": False,
        }

    def _trace(self) -> Schema:
        return {
            "type": "object",
            "properties": {
                **self._trace_filters,
                "since": {"type": ["string", "integer"], "description": "A step, by its `as`."},
                "where": self._of_kind(ExchangeState),
                "size": _comparison(ANYTHING, ANYTHING),
            },
            "additionalProperties": False,
        }

    # -- types ----------------------------------------------------------------------------------

    def _of_kind(self, kind: object) -> Schema:
        element, models = element_of(kind), models_of(kind)
        if element is not Any:
            return self._of_list(element)
        if not models:
            return dict(ANYTHING)
        return {
            "properties": {**_operators(ANYTHING, ANYTHING), **self._fields(models)},
            "additionalProperties": False,
        }

    def _of_list(self, element: object) -> Schema:
        one = self._reference(element)
        return {
            "properties": _operators(ANYTHING, one),
            "patternProperties": {_INDEX: one},
            "additionalProperties": False,
            "items": one,
        }

    def _fields(self, models: Sequence[type[Model]]) -> dict[str, Schema]:
        return {
            name: self._field(name, field.annotation)
            for model in models
            for name, field in model.model_fields.items()
        }

    def _field(self, name: str, kind: object) -> Schema:
        if name == "error" and kind == str | None:
            return {"$ref": f"#/$defs/{_ERROR}"}
        return self._reference(kind)

    def _reference(self, kind: object) -> Schema:
        """The schema of a type, by a reference where it is a single model."""
        models = models_of(kind)
        if len(models) != 1:
            return self._of_kind(kind)
        name = f"expected.{models[0].__module__.rpartition('.')[2]}.{models[0].__name__}"
        return self._define(name, lambda: self._of_kind(models[0]))

    def _define(self, name: str, make: Callable[[], Schema]) -> Schema:
        """A reference to a schema, which is made once."""
        if name not in self.definitions:
            self.definitions[name] = {}  # of a model that has values of its own type
            self.definitions[name] = make()
        return {"$ref": f"#/$defs/{name}"}


_PLAIN: Final[Mapping[str, Any]] = {"type": ["string", "number", "boolean", "null"]}


def _list_of(item: Schema) -> Schema:
    return {"type": "array", "items": item}


def _comparison(value: Mapping[str, Any], element: Mapping[str, Any]) -> Schema:
    return {"properties": _operators(value, element), "additionalProperties": False}


def _operators(value: Mapping[str, Any], element: Mapping[str, Any]) -> dict[str, Schema]:
    """Every operator, with what it takes."""
    special = {
        "not": value,
        "contains": element,
        "each": element,
        "matches": {"type": "string", "format": "regex"},
    }
    return {name: dict(special.get(name, ANYTHING)) for name in OPERATORS}
