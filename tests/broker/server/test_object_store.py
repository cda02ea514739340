"""The tier's objects in a folder and in a real S3 server, by threads and in the caller's turn."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

import pytest

from fencepost.broker.server.object_store import PART_BYTES, THREADS, ObstoreObjectStore
from fencepost.broker.server.remote_urls import RemoteUnavailable, open_remote, remote_problem
from fencepost.protocol.byte_utils import Buffer
from fencepost.storage.tier.object_store import TierError
from tests.harness.cluster import unique
from tests.harness.s3 import S3, serve_s3

T = TypeVar("T")

PIECES: Final = [bytes([n]) * (PART_BYTES // 2 + n) for n in range(5)]
BIG: Final = b"".join(PIECES)
"""More than two parts."""


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3]:
    with serve_s3(tmp_path_factory.mktemp("s3") / "moto.log") as server:
        yield server


@pytest.fixture(params=["folder", "bucket", "prefix"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "folder":
        return f"file://{tmp_path}/a%20tier/of/ours"
    server: S3 = request.getfixturevalue("s3")
    bucket = unique("tier")
    server.make_bucket(bucket)
    return server.url(bucket, "some/where" if request.param == "prefix" else "")


class Caller:
    """Calls an object store on one loop, and waits for what it is told."""

    def __init__(self, url: str, executor: Executor | None) -> None:
        self._loop = asyncio.get_running_loop()
        self.objects = ObstoreObjectStore(
            open_remote(url, {}), self._loop.call_soon_threadsafe, executor
        )

    async def put(self, key: str, buffers: Iterable[Buffer]) -> TierError | None:
        return await self._answer(partial(self.objects.put, key, buffers))

    async def get(self, key: str, start: int = 0, end: int | None = None) -> bytes | TierError:
        return await self._answer(partial(self.objects.get, key, start, end))

    async def delete(self, *keys: str) -> TierError | None:
        return await self._answer(partial(self.objects.delete, keys))

    async def list(self, prefix: str) -> Sequence[str] | TierError:
        return await self._answer(partial(self.objects.list, prefix))

    async def _answer(self, call: Callable[[Callable[[T], None]], None]) -> T:
        answer: asyncio.Future[T] = self._loop.create_future()

        def done(outcome: T) -> None:
            assert threading.current_thread() is threading.main_thread()
            answer.set_result(outcome)

        call(done)
        assert not answer.done(), "told within the call"
        return await answer


@pytest.fixture(params=["threads", "in turn"])
async def tier(request: pytest.FixtureRequest, url: str) -> AsyncIterator[Caller]:
    caller = Caller(url, ThreadPoolExecutor(THREADS) if request.param == "threads" else None)
    yield caller
    caller.objects.close()


async def test_an_object_is_read_as_it_was_written(tier: Caller) -> None:
    assert await tier.put("t-1/0/a.log", [b"abc", memoryview(b"def"), bytearray(b"g")]) is None
    assert await tier.get("t-1/0/a.log") == b"abcdefg"
    assert await tier.put("t-1/0/a.log", [b"again"]) is None
    assert await tier.get("t-1/0/a.log") == b"again"


async def test_an_object_may_be_empty(tier: Caller) -> None:
    assert await tier.put("empty", []) is None
    assert await tier.get("empty") == b""


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (0, 3, b"abc"),
        (2, 5, b"cde"),
        (3, None, b"defg"),
        (5, 100, b"fg"),
        (7, 9, b""),
        (9, None, b""),
        (4, 4, b""),
    ],
)
async def test_a_range_of_an_object(
    tier: Caller, start: int, end: int | None, expected: bytes
) -> None:
    await tier.put("some", [b"abcdefg"])
    assert await tier.get("some", start, end) == expected


async def test_what_is_large_is_sent_as_it_is_taken(tier: Caller) -> None:
    assert await tier.put("t-1/0/big.log", iter(PIECES)) is None
    assert await tier.get("t-1/0/big.log") == BIG
    end = 2 * PART_BYTES
    assert await tier.get("t-1/0/big.log", end - 2, end + 3) == BIG[end - 2 : end + 3]


async def test_what_is_not_there(tier: Caller) -> None:
    for start, end in ((0, None), (1, None), (1, 2)):
        missing = await tier.get("t-1/0/none.log", start, end)
        assert isinstance(missing, TierError)
        assert missing.missing
        assert missing.key == "t-1/0/none.log"
        assert "\n" not in str(missing)
    assert await tier.list("t-1/0/") == []
    assert await tier.delete("t-1/0/none.log") is None


async def test_objects_are_listed_in_order_and_below_the_prefix_alone(tier: Caller) -> None:
    for key in ("t-1/1/b", "t-1/1/a", "t-1/10/c", "t-12/1/d"):
        await tier.put(key, [b"x"])
    assert await tier.list("t-1/1/") == ["t-1/1/a", "t-1/1/b"]
    assert await tier.list("t-1/") == ["t-1/1/a", "t-1/1/b", "t-1/10/c"]


async def test_many_objects(tier: Caller) -> None:
    keys = [f"many/{n:04d}" for n in range(30)]
    for key in keys:
        await tier.put(key, [b""])
    assert await tier.list("many/") == keys


async def test_deleting_what_is_there_and_what_is_not(tier: Caller) -> None:
    for key in ("d/a", "d/b", "d/c"):
        await tier.put(key, [b"x"])
    assert await tier.delete("d/a", "d/none", "d/c") is None
    assert await tier.list("d/") == ["d/b"]
    assert await tier.delete() is None


async def test_a_folder_in_which_nothing_is_left_goes(tmp_path: Path) -> None:
    caller = Caller(f"file://{tmp_path}/tier", None)
    await caller.put("t-1/0/a.log", [b"x"])
    await caller.delete("t-1/0/a.log")
    assert list((tmp_path / "tier").iterdir()) == []


def failing(pieces: Iterable[bytes], error: Exception) -> Iterator[bytes]:
    yield from pieces
    raise error


@pytest.mark.parametrize("pieces", [PIECES[:1], PIECES], ids=["small", "large"])
async def test_of_an_object_that_fails_on_its_way_nothing_is_there(
    tier: Caller, url: str, request: pytest.FixtureRequest, pieces: list[bytes]
) -> None:
    failed = await tier.put("t-1/0/f.log", failing(pieces, OSError(5, "Input/output error")))
    assert isinstance(failed, TierError)
    assert "Input/output error" in str(failed)
    missing = await tier.get("t-1/0/f.log")
    assert isinstance(missing, TierError)
    assert missing.missing
    if url.startswith("s3"):
        s3: S3 = request.getfixturevalue("s3")
        assert s3.unfinished(url.removeprefix("s3://").split("/")[0]) == 0


async def test_a_bug_is_an_error_to_the_caller(
    tier: Caller, capsys: pytest.CaptureFixture[str]
) -> None:
    failed = await tier.put("k", failing([], RuntimeError("a bug")))
    assert isinstance(failed, TierError)
    assert "a bug" in capsys.readouterr().err


async def test_in_turn_it_is_done_when_the_call_returns(url: str) -> None:
    posted: list[Callable[[], None]] = []
    objects = ObstoreObjectStore(open_remote(url, {}), posted.append)
    told: list[object] = []
    objects.put("k", [b"v"], told.append)
    objects.get("k", 0, None, told.append)
    assert not told
    for each in posted:
        each()
    assert told == [None, b"v"]


async def test_the_end_gives_up_what_is_being_sent_and_waits_for_it(url: str) -> None:
    caller = Caller(url, ThreadPoolExecutor(THREADS))
    begun = threading.Event()
    told: list[object] = []

    def pieces() -> Iterator[bytes]:
        yield from PIECES
        begun.set()
        for _ in range(20):
            yield from PIECES

    caller.objects.put("t-1/0/late.log", pieces(), told.append)
    assert await asyncio.to_thread(begun.wait, 20)
    caller.objects.close()
    caller.objects.put("t-1/0/after.log", [b"never begun"], told.append)
    await asyncio.sleep(0)
    assert not told
    assert await Caller(url, None).list("t-1/0/") == []


# What a URL names.


@pytest.mark.parametrize(
    "text",
    [
        "memory:",
        "memory:///",
        "file:///var/tier",
        "file:///",
        "s3://bucket",
        "s3://bucket/a/b",
        "s3://bucket?endpoint=http://127.0.0.1:9000&region=eu",
    ],
)
def test_urls(text: str) -> None:
    assert remote_problem(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "memory",
        "/var/tier",
        "file:tier",
        "file://var/tier",
        "file:///tier?x=1",
        "memory:there",
        "s3:",
        "s3:///prefix",
        "s3://bucket/p#f",
        "gs://bucket",
        "http://bucket",
        "s3://[bucket",
    ],
)
def test_texts_that_name_no_tier(text: str) -> None:
    problem = remote_problem(text)
    assert problem is not None
    assert "\n" not in problem


def refusal(url: str, environment: dict[str, str] | None = None) -> str:
    with pytest.raises(RemoteUnavailable) as refused:
        open_remote(url, environment or {})
    text = str(refused.value)
    assert "\n" not in text
    return text


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    text = refusal(f"file://{tmp_path}/file/tier")
    assert text == f"can't write to the tier file://{tmp_path}/file/tier: Not a directory"
    assert refusal("file:///proc/1/tier").startswith("can't write to the tier file:///proc/1/tier")


def test_a_folder_that_cannot_be_written_to() -> None:
    assert refusal("file:///proc").startswith("can't write to the tier file:///proc: ")


def test_a_folder_is_made_and_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "mine").write_text("kept")
    open_remote(f"file://{tmp_path}/here", {})
    assert [each.name for each in (tmp_path / "here").iterdir()] == ["mine"]


def test_a_bucket_that_is_not_there(s3: S3) -> None:
    text = refusal(s3.url("no-bucket", "p"))
    assert text == "can't use the tier s3://no-bucket/p: there is no such bucket"


def test_a_server_that_does_not_answer() -> None:
    text = refusal(S3("http://127.0.0.1:1").url("bucket"))
    assert text.startswith("can't use the tier s3://bucket: ")
    assert "not-shown" not in text


def test_a_query_that_s3_does_not_know(s3: S3) -> None:
    text = refusal(s3.url("bucket") + "&colour=green")
    assert "colour" in text
    assert "not-shown" not in text


def test_credentials_and_endpoint_of_the_environment(
    s3: S3, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket = unique("tier")
    s3.make_bucket(bucket)
    for name, value in s3.environment.items():
        monkeypatch.setenv(name, value)
    open_remote(f"s3://{bucket}", s3.environment)
