"""What operations do to keys, and how the log tells them."""

from __future__ import annotations

import json

import pytest

from examples.kvstore.records import Entry, UnreadableLog, decode, encode
from examples.kvstore.state import Kind, Operation, Result, State


def op(kind: Kind, value: str | None = None, expected: str | None = None) -> Operation:
    return Operation(kind=kind, key="k", value=value, expected=expected)


@pytest.mark.parametrize(
    ("before", "operation", "result", "after"),
    [
        (None, op(Kind.GET), (True, None), None),
        ("a", op(Kind.GET), (True, "a"), "a"),
        (None, op(Kind.PUT, "b"), (True, None), "b"),
        ("a", op(Kind.PUT, "b"), (True, "a"), "b"),
        ("a", op(Kind.PUT, ""), (True, "a"), ""),
        (None, op(Kind.DELETE), (True, None), None),
        ("a", op(Kind.DELETE), (True, "a"), None),
        (None, op(Kind.APPEND, "b"), (True, "b"), "b"),
        ("a", op(Kind.APPEND, "b"), (True, "ab"), "ab"),
        ("a", op(Kind.CAS, "b", "a"), (True, "b"), "b"),
        ("a", op(Kind.CAS, "b", "x"), (False, "a"), "a"),
        ("a", op(Kind.CAS, "b", None), (False, "a"), "a"),
        (None, op(Kind.CAS, "b", None), (True, "b"), "b"),
        (None, op(Kind.CAS, "b", ""), (False, None), None),
        ("a", op(Kind.CAS, None, "a"), (True, None), None),
    ],
)
def test_operations(
    before: str | None, operation: Operation, result: tuple[bool, str | None], after: str | None
) -> None:
    others = {"j": "other"}
    state = State(others | ({} if before is None else {"k": before}))
    done, value = result
    assert state.apply(operation) == Result(done=done, value=value)
    assert state.values == others | ({} if after is None else {"k": after})


@pytest.mark.parametrize(
    "operation",
    [
        None,
        op(Kind.PUT, "v"),
        op(Kind.PUT, ""),
        op(Kind.DELETE),
        op(Kind.APPEND, "ä\n"),
        op(Kind.CAS, "new", "old"),
        op(Kind.CAS, None, "old"),
        op(Kind.CAS, "new", None),
        Operation(kind=Kind.PUT, key="ключ", value="v"),
    ],
)
def test_an_entry_is_read_as_it_was_written(operation: Operation | None) -> None:
    entry = Entry(id="a-1", operation=operation)
    key, value = encode(entry)
    assert decode(key, value) == entry
    assert key == (None if operation is None else operation.key.encode())
    assert json.loads(value)["id"] == "a-1"


@pytest.mark.parametrize(
    "value",
    [None, b"", b"{", b"[]", b"{}", b'{"op": "put"}', b'{"id": "a", "op": "burn"}', b"\xff", b"1"],
)
def test_what_others_write_is_not_taken_for_an_entry(value: bytes | None) -> None:
    with pytest.raises(UnreadableLog):
        decode(b"k", value)
