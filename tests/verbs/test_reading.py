"""A body is read to the letter, and every problem has its place."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, ClassVar, Final, Literal

import pytest
from msgspec import Meta, field

from fencepost.verbs.bodies import Body, Listed
from fencepost.verbs.model import After, Before, Says
from fencepost.verbs.problems import InvalidModel
from fencepost.verbs.reading import read_value


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


def _even(given: int) -> int:
    if given % 2:
        raise ValueError("input should be even")
    return given


class Inner(Body):
    name: str
    sizes: Listed[int] = ()


class Outer(Body):
    number: Annotated[int, Meta(ge=0, le=9)] = 0
    share: Annotated[float, Meta(gt=0)] = 1.0
    switch: bool = False
    colour: Colour = Colour.RED
    word: Literal["a", "b", 1] = "a"
    pair: tuple[str, int | None] | None = None
    named: dict[str, int] = field(default_factory=dict)
    numbered: dict[int, str] = field(default_factory=dict)
    few: Annotated[Listed[int], Meta(min_length=1, max_length=2)] = (1,)
    inner: Inner | None = None
    either: str | Inner | Listed[int] = ""
    scalar: str | int = ""
    said: Annotated[int | Listed[int], Says("input should be a size")] = 0
    even: Annotated[int, After(_even)] = 0
    texts: Annotated[Listed[str], Before(lambda given: [given])] = ()
    source: int | None = field(default=None, name="from")
    anything: object = None

    @classmethod
    def check_field(cls, name: str, value: object) -> None:
        if name == "named" and value == {"none": 0}:
            raise ValueError("input should be something")

    def check(self) -> None:
        if self.number == 9 and self.switch:
            raise ValueError("9 has no switch")


class Query(Body):
    is_query: ClassVar[bool] = True

    number: int = 0
    switch: bool = False


@pytest.mark.parametrize(
    ("name", "given", "read"),
    [
        ("number", 9, 9),
        ("share", 2, 2.0),
        ("share", "0.5", 0.5),
        ("switch", True, True),
        ("colour", "blue", Colour.BLUE),
        ("colour", Colour.BLUE, Colour.BLUE),
        ("word", 1, 1),
        ("pair", ["a", None], ("a", None)),
        ("pair", None, None),
        ("named", {"a": 1}, {"a": 1}),
        ("numbered", {"7": "a"}, {7: "a"}),
        ("few", [1, 2], (1, 2)),
        ("inner", {"name": "a", "sizes": [1]}, Inner(name="a", sizes=(1,))),
        ("either", [1], (1,)),
        ("either", {"name": "a"}, Inner(name="a")),
        ("scalar", 5, 5),
        ("said", [1], (1,)),
        ("texts", "a", ("a",)),
        ("anything", {"a": [None]}, {"a": [None]}),
    ],
)
def test_what_is_right_is_read(name: str, given: object, read: object) -> None:
    found = getattr(Outer.model_validate({name: given}), name)
    assert found == read
    assert type(found) is type(read)


NO_STRING: Final = "input should be a valid string"
NO_INTEGER: Final = "input should be a valid integer, unable to parse string as an integer"
NEGATIVE: Final = "input should be greater than or equal to 0"
FIELDS: Final = (
    "number share switch colour word pair named numbered few inner either scalar said even texts"
    " from anything"
).split()
WRONG: Final[list[tuple[dict[str, Any], str]]] = [
    ({"number": "1"}, "number: input should be a valid integer"),
    ({"number": True}, "number: input should be a valid integer"),
    ({"number": 1.0}, "number: input should be a valid integer"),
    ({"number": -1}, "number: input should be greater than or equal to 0"),
    ({"number": 10}, "number: input should be less than or equal to 9"),
    ({"share": 0}, "share: input should be greater than 0"),
    ({"share": "x"}, "share: input should be a valid number, unable to parse string as a number"),
    ({"share": 10**400}, "share: input should be a valid number"),
    ({"switch": 1}, "switch: input should be a valid boolean"),
    ({"colour": "green"}, "colour: input should be 'red' or 'blue'"),
    ({"word": True}, "word: input should be 'a', 'b' or 1"),
    ({"pair": ["a"]}, "pair[1]: field required"),
    ({"pair": ["a", 1, 2]}, "pair: array should have at most 2 items after validation, not 3"),
    ({"pair": "ab"}, "pair: input should be a valid array"),
    ({"named": {"a": "1"}}, "named.a: input should be a valid integer"),
    ({"named": {"none": 0}}, "named: input should be something"),
    ({"numbered": {"x": "a"}}, f"numbered.x.[key]: {NO_INTEGER}"),
    ({"few": []}, "few: array should have at least 1 item after validation, not 0"),
    ({"few": [1, 2, 3]}, "few: array should have at most 2 items after validation, not 3"),
    ({"few": {"a": 1}}, "few: input should be a valid array"),
    ({"inner": {}}, "inner.name: field required"),
    ({"inner": {"name": "a", "sizes": ["2"]}}, "inner.sizes[0]: input should be a valid integer"),
    ({"inner": {"name": "a", "size": 1}}, "inner: there is no field 'size'; there are name, sizes"),
    ({"inner": 1}, "inner: input should be a valid object or instance of Inner"),
    ({"either": {"name": 1}}, "either.name: input should be a valid string"),
    ({"either": ["a"]}, "either[0]: input should be a valid integer"),
    ({"either": 1}, "either: input should be a valid string"),
    ({"scalar": []}, f"scalar.str: {NO_STRING}; scalar.int: input should be a valid integer"),
    ({"said": ["a"]}, "said: input should be a size"),
    ({"even": 3}, "even: input should be even"),
    ({"even": "3"}, "even: input should be a valid integer"),
    ({"texts": 1}, "texts[0]: input should be a valid string"),
    ({"from": "a"}, "from: input should be a valid integer"),
    ({"source": 1}, f"there is no field 'source'; there are {', '.join(FIELDS)}"),
    ({"number": 9, "switch": True}, "9 has no switch"),
    ({"number": -1, "texts": 1}, f"number: {NEGATIVE}; texts[0]: {NO_STRING}"),
]  # fmt: skip


@pytest.mark.parametrize(("given", "said"), WRONG, ids=[str(given) for given, _ in WRONG])
def test_what_is_wrong_is_named(given: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidModel) as raised:
        Outer.model_validate(given)
    assert str(raised.value) == said


@pytest.mark.parametrize(
    ("text", "number"), [("7", 7), (" +7 ", 7), ("-7", -7), ("7.0", 7), ("1_000", 1000)]
)
def test_a_query_has_numbers_as_text(text: str, number: int) -> None:
    assert Query.model_validate({"number": text}).number == number
    assert read_value(int, text, ("n",)) == number


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("number", "x", NO_INTEGER),
        ("number", "1.5", NO_INTEGER),
        ("number", "1" * 4301, "unable to parse input string as an integer, exceeded maximum size"),
        ("switch", "2", "input should be a valid boolean, unable to interpret input"),
    ],
)
def test_of_a_query_no_other_text(name: str, text: str, said: str) -> None:
    with pytest.raises(InvalidModel) as raised:
        Query.model_validate({name: text})
    assert str(raised.value) == f"{name}: {said}"


@pytest.mark.parametrize("text", ["true", "1", "ON", "yes"])
def test_a_query_has_switches_as_text(text: str) -> None:
    assert Query.model_validate({"switch": text}).switch is True


def test_a_text_of_json_is_read_as_well() -> None:
    assert Outer.model_validate_json('{"number": 3}').number == 3
    with pytest.raises(InvalidModel, match="no JSON"):
        Outer.model_validate_json("{")


def test_it_is_known_what_was_given() -> None:
    read = Outer.model_validate({"number": 0, "from": 1})
    assert read.model_fields_set == {"number", "source"}
    assert read.model_dump(mode="json", exclude_unset=True) == {"number": 0, "from": 1}
    assert read.to_json() == {"from": 1}
    assert read.model_copy(update={"word": "b"}).model_fields_set == {"number", "source", "word"}
    assert Outer(number=0, word="b").model_fields_set == {"word"}
