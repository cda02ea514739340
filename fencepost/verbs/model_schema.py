"""JSON Schemas of models, for OpenAPI and for the schema of scenario files.

Keywords are in alphabetical order. Each model, and each enum, is described once, among the
definitions, and all others refer to it there: by its name, or where two have the same by its module
and its name.
"""

import inspect
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, TypeAlias, Union, get_args, get_origin

from msgspec import Meta, to_builtins

from fencepost.verbs.bodies import Body
from fencepost.verbs.descriptions import field_description
from fencepost.verbs.model import Before, FieldInfo, Model

Schema: TypeAlias = dict[str, Any]
_Defined: TypeAlias = type[Model] | type[Enum]
REFERENCE: Final = "#/$defs/{model}"
_PLAIN: Final[Mapping[object, Schema]] = {
    object: {},
    str: {"type": "string"},
    int: {"type": "integer"},
    bool: {"type": "boolean"},
    float: {"type": "number"},
    NoneType: {"type": "null"},
}
_LIMITS: Final = {
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "min_length": "minItems",
    "max_length": "maxItems",
}


class Schemas:
    """The schemas of some models, and of all that are in them.

    :param models: What references are made to.
    :param reference: A reference, with ``{model}`` for the name.
    """

    def __init__(self, models: Iterable[type[Model]], reference: str = REFERENCE) -> None:
        self._reference = reference
        found: dict[_Defined, None] = {}
        for model in models:
            _find(model, found)
        names = [each.__name__ for each in found]
        self._names = {
            each: each.__name__ if names.count(each.__name__) == 1 else _long_name(each)
            for each in found
        }
        self.definitions: Mapping[str, Schema] = {
            self._names[each]: self._definition(each)
            for each in sorted(found, key=self._names.__getitem__)
        }
        """By the names that references have, in alphabetical order."""

    def reference(self, model: _Defined) -> Schema:
        """A reference to a model."""
        return {"$ref": self._reference.format(model=self._names[model])}

    def _definition(self, defined: _Defined) -> Schema:
        if issubclass(defined, Model):
            return self._model(defined)
        schema = _enumerated([each.value for each in defined])
        return _sorted({**_described(defined), **schema, "title": defined.__name__})

    def _model(self, model: type[Model]) -> Schema:
        infos = model.model_fields.values()
        required = [each.json_name for each in infos if each.is_required()]
        schema: Schema = {
            **_described(model),
            "title": model.__name__,
            "type": "object",
            "properties": {each.json_name: self.field(each) for each in infos},
        }
        if issubclass(model, Body):
            schema["additionalProperties"] = False
        if model.examples:
            schema["examples"] = [_sorted_example(each) for each in model.examples]
        if required:
            schema["required"] = required
        return _sorted(schema)

    def field(self, info: FieldInfo) -> Schema:
        """The schema of a field, with its title, default and description."""
        schema = self.kind(info.annotation)
        if not _has_title_of_its_own(info.annotation):
            schema["title"] = info.json_name.replace("_", " ").title()
        if info.default_factory is None and not info.is_required():
            default = to_builtins(info.default)
            schema["default"] = list(default) if isinstance(default, tuple) else default
        description = field_description(info)
        if description is not None:
            schema["description"] = description
        return _sorted(schema)

    def kind(self, kind: Any) -> Schema:  # noqa: ANN401  # any annotation
        """The schema of a type."""
        origin, arguments = get_origin(kind), get_args(kind)
        if origin is Annotated:
            return self._annotated(arguments[0], arguments[1:])
        if origin in (Union, UnionType):
            return {"anyOf": [self.kind(each) for each in arguments]}
        if origin is Literal:
            return _enumerated(arguments)
        if origin is tuple:
            return self._array(arguments)
        if origin is dict:
            values = self.kind(arguments[1])
            return {"additionalProperties": values or True, "type": "object"}
        if kind in _PLAIN:
            return dict(_PLAIN[kind])
        return self.reference(kind)

    def _annotated(self, kind: Any, annotations: Sequence[object]) -> Schema:  # noqa: ANN401  # see above
        for each in annotations:
            if isinstance(each, Before) and each.given is not None:
                return self.kind(each.given)
        schema = self.kind(kind)
        for each in annotations:
            if isinstance(each, Meta):
                limits = {
                    keyword: getattr(each, name)
                    for name, keyword in _LIMITS.items()
                    if getattr(each, name) is not None
                }
                schema |= limits | (each.extra_json_schema or {})
        return _sorted(schema)

    def _array(self, elements: Sequence[Any]) -> Schema:
        if elements[-1] is Ellipsis:
            return {"items": self.kind(elements[0]), "type": "array"}
        return {
            "maxItems": len(elements),
            "minItems": len(elements),
            "prefixItems": [self.kind(each) for each in elements],
            "type": "array",
        }


def model_schema(model: type[Model], *, reference: str = REFERENCE) -> Schema:
    """The schema of one model, with definitions of what is in it."""
    schemas = Schemas([model], reference)
    own = schemas.reference(model)["$ref"].rpartition("/")[2]
    others = {name: each for name, each in schemas.definitions.items() if name != own}
    return {**({"$defs": others} if others else {}), **schemas.definitions[own]}


def _find(kind: Any, found: dict[_Defined, None]) -> None:  # noqa: ANN401  # any annotation
    """Add the models and enums in a type."""
    if kind in found:
        return
    arguments = get_args(kind)
    if get_origin(kind) is Literal:
        return
    if get_origin(kind) is Annotated:
        arguments = next(
            (
                (each.given,)
                for each in arguments[1:]
                if isinstance(each, Before) and each.given is not None
            ),
            arguments[:1],
        )
    for each in arguments:
        _find(each, found)
    if isinstance(kind, type) and issubclass(kind, Model | Enum) and not arguments:
        found[kind] = None
        if issubclass(kind, Model):
            for info in kind.model_fields.values():
                _find(info.annotation, found)


def _described(defined: _Defined) -> Schema:
    text = inspect.getdoc(defined)
    return {} if text is None else {"description": text}


def _long_name(defined: _Defined) -> str:
    return f"{defined.__module__}__{defined.__qualname__}".replace(".", "__")


def _has_title_of_its_own(kind: Any) -> bool:  # noqa: ANN401  # any annotation
    """Whether it refers to a model or an enum, which may be null."""
    if get_origin(kind) is Annotated:
        return _has_title_of_its_own(get_args(kind)[0])
    if get_origin(kind) in (Union, UnionType):
        others = [each for each in get_args(kind) if each is not NoneType]
        return len(others) == 1 and _has_title_of_its_own(others[0])
    return isinstance(kind, type) and not get_args(kind) and issubclass(kind, Model | Enum)


def _enumerated(values: Sequence[object]) -> Schema:
    kinds = {type(each) for each in values}
    schema: Schema = {"const": values[0]} if len(values) == 1 else {"enum": list(values)}
    if len(kinds) == 1:
        schema |= _PLAIN[kinds.pop()]
    return schema


def _sorted(schema: Mapping[str, Any]) -> Schema:
    return {name: schema[name] for name in sorted(schema)}


def _sorted_example(value: Any) -> Any:  # noqa: ANN401  # any JSON
    if isinstance(value, Mapping):
        return {name: _sorted_example(value[name]) for name in sorted(value)}
    return [_sorted_example(each) for each in value] if isinstance(value, list) else value
