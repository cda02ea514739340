"""The JSON Schema of scenario files, with which an editor completes and checks them.

It is made of the models that the loader validates with, so that it needs no care of its own. It
allows what the loader allows, and refuses an unknown name; what takes more than one place to see,
such as a reference to a step that comes later, only the loader finds.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from fencepost.scenario.actions.executor import ACTIONS
from fencepost.scenario.expectation_schema import ExpectationSchemas, Schema
from fencepost.scenario.expectations import list_of
from fencepost.scenario.loader import MAX_REPEAT, MAX_WITHIN_MS, PATH_DEFAULTS, STEP_VERBS
from fencepost.scenario.model import WITHIN_MS
from fencepost.scenario.processes import PROCESS_STEPS, ProcessAnswer
from fencepost.verbs.bodies import Body, NewTopicBody, TraceFilter
from fencepost.verbs.catalogue import PATH_TYPES, Shape, Verb
from fencepost.verbs.model import Model
from fencepost.verbs.model_schema import Schemas
from fencepost.verbs.serving import ClusterBody

DIALECT: Final = "http://json-schema.org/draft-07/schema#"
"""The one that editors know best."""
_REFERENCE: Final[Mapping[str, Any]] = {"type": "string", "pattern": r"^\$"}
_NAME: Final[Mapping[str, Any]] = {"type": "string", "pattern": r"^[A-Za-z_][\w-]*$"}
_JSON_TYPES: Final = {int: "integer", str: "string"}
_TEXT: Final = ["string", "number", "boolean"]
"""Where text is wanted, a number is taken as it is written."""
_NO_SCHEMA: Final = frozenset({"title"})


def scenario_schema() -> Schema:
    """The schema of a whole file."""
    bodies = _BodySchemas()
    expectations = ExpectationSchemas(bodies.fields(TraceFilter))
    step = _step(bodies, expectations)
    return {
        "$schema": DIALECT,
        "title": "A scenario of fencepost",
        "type": "object",
        "properties": {
            "summary": {"type": "string", "description": "One line."},
            "teaches": {"type": "string", "description": "Printed before it is played."},
            "cluster": bodies.reference(ClusterBody),
            "topics": {"type": "array", "items": bodies.reference(NewTopicBody)},
            "steps": _STEPS,
        },
        "required": ["summary", "steps"],
        "additionalProperties": False,
        "$defs": {"step": step, **bodies.definitions, **expectations.definitions},
    }


_STEPS: Final[Mapping[str, Any]] = {
    "type": "array",
    "minItems": 1,
    "items": {"$ref": "#/$defs/step"},
}


def _step(bodies: "_BodySchemas", expectations: ExpectationSchemas) -> Schema:
    """A step, whose expectation depends on what it does."""
    operations = dict(_operations(bodies))
    conditions = [
        {"if": {"required": [name]}, "then": {"properties": {"expect": each, "until": each}}}
        for name, kind in _answers()
        for each in [expectations.of_step(kind)]
    ]
    expected = expectations.of_step(None)
    bare = [name for name, verb in STEP_VERBS.items() if not verb.path_parameters]
    return {
        "type": ["object", "string"],
        "if": {"type": "string"},
        "then": {"enum": bare},
        "properties": {
            **operations,
            **_MODIFIERS,
            "expect": {**expected, "description": "What must hold after the step."},
            "until": {**expected, "description": "The step is repeated until this holds."},
        },
        "additionalProperties": False,
        "allOf": conditions,
    }


_MODIFIERS: Final[Mapping[str, Any]] = {
    "say": {"type": "string", "description": "Printed before the step."},
    "as": {**_NAME, "description": "A name, by which later steps refer to the answer."},
    "within_ms": {
        "type": "integer",
        "minimum": 1,
        "maximum": MAX_WITHIN_MS,
        "default": WITHIN_MS,
        "description": "How long the step waits, in real time.",
    },
    "background": {**_NAME, "description": "A name; the next step does not wait for the answer."},
    "repeat": {"type": "integer", "minimum": 1, "maximum": MAX_REPEAT, "default": 1},
}


def _operations(bodies: "_BodySchemas") -> Iterator[tuple[str, Schema]]:
    for name, verb in STEP_VERBS.items():
        yield name, _verb_arguments(verb, bodies)
    for name, action in ACTIONS.items():
        yield name, {"description": action.summary, **bodies.reference(action.request_model)}
    for name, step in PROCESS_STEPS.items():
        forms = [
            bodies.fields(step.request_model)[step.field],
            bodies.reference(step.request_model),
        ]
        yield name, {"description": step.summary, "anyOf": forms}
    yield "await", {**_NAME, "description": "Wait for what goes on in the background."}
    yield "together", {**_STEPS, "description": "Steps that run at once."}


def _verb_arguments(verb: Verb, bodies: "_BodySchemas") -> Schema:
    body = {} if verb.request_model is None else bodies.definition(verb.request_model)
    in_path = {
        name: accept_reference({"type": _JSON_TYPES[PATH_TYPES[name]]})
        for name in verb.path_parameters
    }
    required = [name for name in in_path if name not in PATH_DEFAULTS]
    return {
        "description": verb.summary,
        "type": "object" if required or body.get("required") else ["object", "null"],
        "properties": {**in_path, **body.get("properties", {})},
        "required": [*required, *body.get("required", [])],
        "additionalProperties": False,
    }


def _answers() -> Iterator[tuple[str, object]]:
    """The type of each operation's answer."""
    for name, verb in STEP_VERBS.items():
        is_one = verb.shape is Shape.ONE
        yield name, verb.response_model if is_one else list_of(verb.response_model)
    for name, action in ACTIONS.items():
        yield name, action.response_model
    for name in PROCESS_STEPS:
        yield name, ProcessAnswer


class _BodySchemas:
    """The schemas of all models of requests, as a file may have their values."""

    def __init__(self) -> None:
        models: list[type[Model]] = [ClusterBody, NewTopicBody, TraceFilter]
        models += (each.request_model for each in STEP_VERBS.values() if each.request_model)
        models += (each.request_model for each in ACTIONS.values())
        models += (each.request_model for each in PROCESS_STEPS.values())
        self._schemas = Schemas(models)
        spelled = {each.__name__ for each in _subclasses(Body) if _has_a_spelling(each)}
        self.definitions: dict[str, Schema] = {
            name: _definition(schema, is_spelled=name in spelled)
            for name, schema in self._schemas.definitions.items()
        }
        """By the names that references have."""

    def reference(self, model: type[Model]) -> Schema:
        """Where a value of a model stands."""
        return self._schemas.reference(model)

    def definition(self, model: type[Model]) -> Schema:
        """The schema of a model."""
        return self.definitions[self.reference(model)["$ref"].rpartition("/")[2]]

    def fields(self, model: type[Model]) -> dict[str, Schema]:
        """Those of a model's fields."""
        properties: dict[str, Schema] = self.definition(model)["properties"]
        return properties


def _subclasses(model: type[Body]) -> Iterator[type[Body]]:
    for each in model.__subclasses__():
        yield each
        yield from _subclasses(each)


def _has_a_spelling(model: type[Body]) -> bool:
    """Whether a text may stand for a model: what it validates first is more than its names."""
    return any("read_first" in vars(each) for each in model.__mro__[: model.__mro__.index(Body)])


def _definition(schema: Schema, *, is_spelled: bool) -> Schema:
    found = {name: value for name, value in schema.items() if name not in _NO_SCHEMA}
    if "properties" in found:
        properties = found["properties"].items()
        found["properties"] = {name: accept_reference(value) for name, value in properties}
    if is_spelled:
        found["type"] = [found["type"], "string"]
    return found


def accept_reference(schema: Schema) -> Schema:
    """A schema that also takes what stands for its value: ``$name.field``, or a number for text."""
    described: Schema = {
        name: schema[name] for name in ("description", "default") if name in schema
    }
    skipped = {*described, *_NO_SCHEMA}
    found = {name: _inside(name, value) for name, value in schema.items() if name not in skipped}
    if found.get("type") == "string" and "enum" not in found:
        return {**described, **found, "type": _TEXT}
    if not found:
        return described
    return {**described, "anyOf": [found, *_also(found), dict(_REFERENCE)]}


def _also(schema: Schema) -> list[Schema]:
    """Pairs may be a list of ``KEY=VALUE``."""
    texts = {"type": "array", "items": {"type": "string"}}
    pairs = schema.get("additionalProperties")
    return [texts] if isinstance(pairs, dict) and pairs.get("type") == _TEXT else []


def _inside(name: str, value: Any) -> Any:  # noqa: ANN401  # JSON Schema has any value here
    if name in ("anyOf", "oneOf", "allOf", "prefixItems"):
        return [accept_reference(each) for each in value]
    if name in ("items", "additionalProperties") and isinstance(value, dict):
        return accept_reference(value)
    return value
