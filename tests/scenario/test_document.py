from __future__ import annotations

import pytest

from fencepost.scenario.document import Document, Place, ScenarioFileError


def test_yaml_is_read_as_its_core_schema_says() -> None:
    text = (
        "{a: yes, b: true, c: 'true', d: 12, e: -1, f: 0x1f, g: 1.5, h: 12:30, i: null, j: ~,"
        " k: off, l: 1e3, m: 0o17, n: 2026-01-01, o: 007}"
    )
    assert Document("f", text).data == {
        "a": "yes",
        "b": True,
        "c": "true",
        "d": 12,
        "e": -1,
        "f": 31,
        "g": 1.5,
        "h": "12:30",
        "i": None,
        "j": None,
        "k": "off",
        "l": 1000.0,
        "m": 15,
        "n": "2026-01-01",
        "o": 7,
    }


def test_every_value_and_key_knows_its_place() -> None:
    document = Document("f", "steps:\n  - hold: {topic: orders,\n      broker: 2}\n")
    path = ("steps", 0, "hold", "broker")
    assert document.place(path) == Place(3, 15)
    assert document.key_place(path) == Place(3, 7)
    assert document.place((*path, "deeper")) == Place(3, 15)


def test_numbers_remember_how_they_are_written() -> None:
    document = Document("f", "{version: 2.10, on: true, text: x}")
    assert document.text(("version",)) == "2.10"
    assert document.text(("on",)) == "true"
    assert document.text(("text",)) is None


def test_anchors_stand_for_what_they_name() -> None:
    assert Document("f", "{a: &x [1, 2], b: *x}").data == {"a": [1, 2], "b": [1, 2]}


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("", "f:1:1: the file is empty"),
        ("a: [1", "f:1:6: expected ',' or ']'"),
        ("a: 1\nb: 2\na: 3\n", "f:3:1: a is there twice"),
        ("? [a]\n: 1\n", "f:1:3: a key is to be text"),
        ("a: &x\n  b: *x\n", "f:1:4: an alias of what it is part of"),
        ("a: {b: 1, <<: {c: 2}}", "f:1:11: there are no merge keys"),
        ("a: !now 1", "f:1:4: there are no tags such as !now"),
        ("a: *b", "f:1:4: found undefined alias 'b'"),
        ("a: 1\n---\nb: 2", "f:2:1: but found another document"),
        ("a: \x01", "f:1:1: unacceptable character"),
        ("[" * 65 + "]" * 65, "f:1:65: values are nested more than 64 deep"),
        ("[" * 100_000, "f:1:65: values are nested more than 64 deep"),
        ("{a: " * 65 + "1" + "}" * 65, "f:1:254: values are nested more than 64 deep"),
        ("a: " + "9" * 5000, "f:1:4: a number has 40 digits at most, and is not infinite"),
        ("a: 0x" + "f" * 5000, "f:1:4: a number has 40 digits at most, and is not infinite"),
        ("a: 1e999", "f:1:4: a number has 40 digits at most, and is not infinite"),
        ('a: "\\ud800"', "f:1:4: half of a surrogate pair is no text"),
        ('"\\ud800": 1', "f:1:1: half of a surrogate pair is no text"),
    ],
)
def test_what_is_no_yaml_of_ours_is_told_with_its_place(text: str, mistake: str) -> None:
    with pytest.raises(ScenarioFileError) as caught:
        Document("f", text)
    assert str(caught.value).startswith(mistake)


def laughs(value: str, levels: int) -> str:
    """A text whose aliases stand for ten to the power of ``levels`` times its value."""
    lists = (f"[{', '.join([f'*a{level}'] * 10)}]" for level in range(levels))
    return "\n".join(f"a{n}: &a{n} {text}" for n, text in enumerate((value, *lists)))


def test_what_aliases_stand_for_is_bounded() -> None:
    with pytest.raises(ScenarioFileError, match="more than 100000 values, counting what aliases"):
        Document("f", laughs("1", 30))
    with pytest.raises(ScenarioFileError, match="more than 16777216 characters"):
        Document("f", laughs("x" * 10_000, 4))
    Document("f", laughs("x", 3))


def test_a_mistake_about_a_long_text_is_one_line_that_can_be_read() -> None:
    text = str(ScenarioFileError("f", Place(1, 1), "x" * 10_000))
    assert len(text) < 1100
