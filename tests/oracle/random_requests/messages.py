"""Random requests of every API and version that is served, made from the schemas.

A request is a tree of the protocol's own message classes. Where it names what each cluster names
otherwise (a topic's id, a member, a producer), the tree has a `Ref`, which becomes each side's own
value when the request is sent.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from msgspec import Struct, structs

from fencepost.protocol.apis import APIS, Api
from fencepost.protocol.codec.schema import (
    FieldSchema,
    StructSchema,
    entity_types,
    message_schema,
    nested_structs,
)
from tests.harness import batches
from tests.harness.batches import TransmitRecord
from tests.harness.wire import Value

MAX_INT: Final = {"int8": 127, "int16": 32767, "int32": 2**31 - 1, "int64": 2**63 - 1}
_TRANSACTIONAL: Final = 0x10
_LENGTHS: Final = (0, 1, 1, 1, 1, 2, 2, 3)
_LEFT_OUT: Final = 0.03
"""How often a field has its default."""
_OUT_OF_RANGE: Final = 0.01
"""How often a version is asked for that is not served."""


@dataclass(frozen=True, slots=True)
class Ref:
    """What each cluster names otherwise: a topic's id or a transactional id's producer by its name,
    or the n-th latest of a kind.
    """

    kind: str
    name: str | int


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchOf:
    """A batch of one record, of a producer that each cluster numbers itself."""

    producer: Ref
    epoch: int
    sequence: int
    record: TransmitRecord
    is_transactional: bool

    def to_bytes(self, producer_id: int) -> bytes:
        return batches.build(
            [self.record],
            attributes=_TRANSACTIONAL if self.is_transactional else 0,
            producer_id=producer_id,
            producer_epoch=self.epoch,
            base_sequence=self.sequence,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomRequest:
    """A request for both clusters."""

    index: int
    api: Api
    version: int
    written: int
    """The version that the body is written in: another one where the version is not served."""
    message: Value

    @property
    def is_served(self) -> bool:
        return self.version == self.written

    def of_side(self, resolve: Callable[[Ref], object]) -> Value:
        """The message that one cluster is sent."""
        return _resolved(self.message, resolve)


Values = Callable[[random.Random], object]
"""Makes a value of a field."""


class Generator:
    """Makes requests.

    :param values: Of fields, by any of the names of `names_of`.
    :param bounded: Names of fields that are never left out: their default may be out of bounds.
    :param structs: Of whole structs, where fields belong together: changes what was made.
    """

    def __init__(
        self,
        values: Mapping[str, Values],
        structs: Mapping[str, Callable[[random.Random, Api, int, Value], Value]],
        weights: Mapping[str, float],
        bounded: Collection[str],
    ) -> None:
        self._values = values
        self._structs = structs
        self._bounded = frozenset(bounded)
        self._weights = [weights.get(api.name, 1.0) for api in APIS]

    def request(self, rng: random.Random, index: int, api: Api | None = None) -> RandomRequest:
        """A request of any API that is served, or of this one."""
        (chosen,) = rng.choices(APIS, self._weights) if api is None else (api,)
        version = rng.randint(chosen.min_version, chosen.max_version)
        written = version
        if rng.random() < _OUT_OF_RANGE:
            version = rng.choice((chosen.min_version - 1, chosen.max_version + 1))
        schema = message_schema(chosen.name, "request", written)
        message = self._struct(rng, chosen, written, schema)
        return RandomRequest(
            index=index, api=chosen, version=version, written=written, message=message
        )

    def _struct(self, rng: random.Random, api: Api, version: int, schema: StructSchema) -> Value:
        types = entity_types(schema)
        made = {
            f.name: self._field(rng, api, version, schema.cls.__name__, f, types[f.name])
            for f in schema.fields
            if rng.random() > _LEFT_OUT
            or not self._bounded.isdisjoint(
                names_of(api, schema.cls.__name__, f.name, types[f.name])
            )
        }
        instance = schema.cls(**made)
        together = self._structs.get(f"{api.name}.{schema.cls.__name__}")
        return instance if together is None else together(rng, api, version, instance)

    def _field(
        self, rng: random.Random, api: Api, version: int, owner: str, f: FieldSchema, kind: str
    ) -> object:
        if f.array:
            if f.nullable and rng.random() < 0.1:
                return None
            count = rng.choice(_LENGTHS)
            return tuple(self._value(rng, api, version, owner, f, kind) for _ in range(count))
        return self._value(rng, api, version, owner, f, kind)

    def _value(
        self, rng: random.Random, api: Api, version: int, owner: str, f: FieldSchema, kind: str
    ) -> object:
        if f.struct is not None:
            if f.nullable and not f.array and rng.random() < 0.3:
                return None
            return self._struct(rng, api, version, f.struct)
        for key in names_of(api, owner, f.name, kind):
            make = self._values.get(key)
            if make is not None:
                value = make(rng)
                return "" if value is None and not f.nullable and f.kind == "string" else value
        return _any(rng, f)


def names_of(api: Api, owner: str, name: str, kind: str) -> tuple[str, ...]:
    """The names under which the values of a field may stand, the narrowest first."""
    return f"{api.name}.{owner}.{name}", f"{api.name}.{name}", f"{owner}.{name}", name, kind


def all_names() -> set[str]:
    """Every name under which values may stand."""
    found: set[str] = set()
    for api in APIS:
        for version in range(api.min_version, api.max_version + 1):
            for schema in nested_structs(message_schema(api.name, "request", version)):
                types = entity_types(schema)
                for f in schema.fields:
                    found.update(names_of(api, schema.cls.__name__, f.name, types[f.name]))
    return found


def _any(rng: random.Random, f: FieldSchema) -> object:
    """A value of a type, where nothing more is known of the field."""
    if f.kind == "bool":
        return rng.random() < 0.5
    if f.kind in MAX_INT:
        top = MAX_INT[f.kind]
        return rng.choice((0, 1, 2, 3, -1, -2, top, -top - 1))
    if f.kind == "uint16":
        return rng.choice((0, 1, 9093, 65_535))
    if f.kind == "float64":
        return rng.choice((0.0, 1.0, 0.5, -1.0, 1e300))
    if f.kind == "uuid":
        return rng.choice((None, UUID(int=7)))
    if f.nullable and rng.random() < 0.2:
        return None
    if f.kind == "string":
        return rng.choice(("", "a", "b", "x" * 300))
    return rng.choice((b"", b"a", b"\0\1\2\xff"))


def _resolved(value: Value, resolve: Callable[[Ref], object]) -> Value:
    if isinstance(value, Ref):
        return resolve(value)
    if isinstance(value, BatchOf):
        return value.to_bytes(resolve(value.producer))  # type: ignore[arg-type]  # a producer's Ref gives its id
    if isinstance(value, tuple):
        return tuple(_resolved(each, resolve) for each in value)
    if not isinstance(value, Struct):
        return value
    own = {name: _resolved(each, resolve) for name, each in structs.asdict(value).items()}
    return structs.replace(value, **own)
