"""Models are plain data, read from JSON and written as JSON."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

import pytest
from msgspec import field

from fencepost.verbs.answers import Answer
from fencepost.verbs.model import decode
from fencepost.verbs.model_schema import model_schema
from fencepost.verbs.problems import InvalidModel


class Size(StrEnum):
    """How large it is."""

    SMALL = "small"


class Leaf(Answer):
    """A leaf."""

    place: tuple[int, ...] = ()
    size: Size = Size.SMALL


class Tree(Answer):
    """A tree."""

    leaves: tuple[Leaf, ...]
    named: dict[str, Leaf] = field(default_factory=dict)
    grown_in: int | None = field(default=None, name="from")
    kind: Literal["oak", "elm"] = "oak"


TREE = Tree(leaves=(Leaf(place=(1, 2)),), named={"a": Leaf()})
JSON = (
    '{"leaves":[{"place":[1,2],"size":"small"}],"named":{"a":{"place":[],"size":"small"}},'
    '"from":null,"kind":"oak"}'
)


def test_json_and_back() -> None:
    assert TREE.model_dump_json() == JSON
    assert Tree.model_validate_json(JSON) == TREE
    assert decode(list[Tree], f"[{JSON},{JSON}]") == [TREE, TREE]


def test_as_plain_data() -> None:
    plain = TREE.model_dump(exclude_defaults=True)
    assert plain == {"leaves": ({"place": (1, 2)},), "named": {"a": {}}}
    as_json = TREE.model_dump(mode="json", exclude_none=True, exclude={"named"})
    assert as_json == {"leaves": [{"place": [1, 2], "size": "small"}], "kind": "oak"}
    assert type(as_json["leaves"][0]["size"]) is str
    assert dict(TREE)["leaves"] is TREE.leaves


def test_it_is_frozen_and_may_be_copied() -> None:
    with pytest.raises(AttributeError):
        TREE.kind = "elm"  # type: ignore[misc]  # that is the point
    assert TREE.model_copy(update={"kind": "elm"}) == Tree(
        leaves=TREE.leaves, named=TREE.named, kind="elm"
    )


def test_later_versions_may_add_fields() -> None:
    assert Leaf.model_validate({"size": "small", "colour": "red"}) == Leaf()


@pytest.mark.parametrize("content", ["{", '{"leaves":1}', "{}", '{"leaves":[{"place":["1"]}]}'])
def test_what_is_something_else_is_refused(content: str) -> None:
    with pytest.raises(InvalidModel):
        Tree.model_validate_json(content)


def test_the_schema_of_a_model() -> None:
    assert model_schema(Tree) == {
        "$defs": {
            "Leaf": {
                "description": "A leaf.",
                "properties": {
                    "place": {
                        "default": [],
                        "items": {"type": "integer"},
                        "title": "Place",
                        "type": "array",
                    },
                    "size": {"$ref": "#/$defs/Size", "default": "small"},
                },
                "title": "Leaf",
                "type": "object",
            },
            "Size": {
                "const": "small",
                "description": "How large it is.",
                "title": "Size",
                "type": "string",
            },
        },
        "description": "A tree.",
        "properties": {
            "leaves": {"items": {"$ref": "#/$defs/Leaf"}, "title": "Leaves", "type": "array"},
            "named": {
                "additionalProperties": {"$ref": "#/$defs/Leaf"},
                "title": "Named",
                "type": "object",
            },
            "from": {
                "anyOf": [{"type": "integer"}, {"type": "null"}],
                "default": None,
                "title": "From",
            },
            "kind": {"default": "oak", "enum": ["oak", "elm"], "title": "Kind", "type": "string"},
        },
        "required": ["leaves"],
        "title": "Tree",
        "type": "object",
    }
