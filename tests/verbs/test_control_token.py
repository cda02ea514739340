"""The token of a control API: where it is read, and that no message has it."""

from __future__ import annotations

from pathlib import Path

import pytest

from fencepost.verbs.answers import Done
from fencepost.verbs.catalogue import VERBS
from fencepost.verbs.control_token import InvalidToken, checked, drawn, from_environment, read
from fencepost.verbs.methods import AsyncVerbs, Verbs
from fencepost.verbs.remote import Remote, Unreachable
from fencepost.verbs.remote_async import AsyncRemote
from tests.harness.fake_control_api import FakeControlApi, ok, stream

SECRET = "hush hush"


@pytest.mark.parametrize("token", ["12345678", "a-b.c_d~e+f/g==", "x" * 512])
def test_a_token_is_what_a_header_carries(token: str) -> None:
    assert checked(token) == token


@pytest.mark.parametrize(
    "token", ["", "1234567", SECRET, "ä" * 8, "x" * 513, "12345678\n", "12345678\r\nX: y"]
)
def test_any_other_text_is_refused_and_not_repeated(token: str) -> None:
    with pytest.raises(InvalidToken) as refused:
        checked(token)
    assert (
        str(refused.value) == "the token is not 8 to 512 letters, digits and characters of -._~+/="
    )


def test_drawn_tokens_are_of_the_form_and_differ() -> None:
    assert checked(drawn()) != checked(drawn())


def test_a_file_has_it_with_white_space_around(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_bytes(b"\n the-token-of-a-file \r\n")
    assert read(file) == "the-token-of-a-file"
    assert from_environment({"FENCEPOST_CONTROL_TOKEN_FILE": str(file)}) == "the-token-of-a-file"


@pytest.mark.parametrize("content", [b"", b"hush hush", b"\xff" * 9, b"two-tokens\nin-a-file"])
def test_a_file_with_anything_else_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "token"
    file.write_bytes(content)
    with pytest.raises(InvalidToken) as refused:
        read(file)
    assert str(refused.value).startswith(f"{file} has no token")
    assert "hush" not in str(refused.value)


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidToken, match="No such file"):
        read(tmp_path / "none")


def test_a_variable_counts_more_than_a_file(tmp_path: Path) -> None:
    both = {"FENCEPOST_CONTROL_TOKEN": "a-token-of-ours", "FENCEPOST_CONTROL_TOKEN_FILE": "none"}
    assert from_environment(both) == "a-token-of-ours"
    assert from_environment({}) is None
    assert from_environment(dict.fromkeys(both, "")) is None


@pytest.mark.parametrize("token", [None, "a-token-of-ours"])
async def test_each_request_carries_it(stub: FakeControlApi, token: str | None) -> None:
    carried = None if token is None else f"Bearer {token}"
    stub.will(ok({}))
    verbs = Verbs(Remote(stub.url, token=token))
    verbs.reset()
    verbs.remote.close()
    verbs.reset()
    verbs.remote.close()
    stub.will(stream("data: {}"))
    list(verbs.remote.call_stream(VERBS["events"], Done, {}, {}))
    stub.will(ok({}))
    remote = AsyncRemote(stub.url, token=token)
    await AsyncVerbs(remote).reset()
    remote.close()
    assert [each.authorization for each in stub.asked] == [carried] * 4


@pytest.mark.parametrize("make", [Remote, AsyncRemote])
def test_a_token_that_no_header_can_carry_is_refused_and_not_repeated(
    make: type[Remote | AsyncRemote],
) -> None:
    with pytest.raises(InvalidToken, match=r"^the token is not 8 to 512 letters"):
        make("http://127.0.0.1:1", token=f"{SECRET}\n")


def test_a_user_in_the_url_stands_in_no_message() -> None:
    for url in (
        "http://me:secret@127.0.0.1:1",
        "http://me:se/cret@there",
        "me:secret@there",
        "x://me:secret@there",
    ):
        with pytest.raises(Unreachable) as failed:
            Verbs(Remote(url)).reset()
        assert "cret" not in str(failed.value), failed.value
