"""The tier's objects in memory, in a folder or in S3, by obstore.

obstore's calls block, so a few threads make them; what comes of them is told in the turns of the
loop, where all of the core runs. With a manual clock nothing happens beside the turns: then each
call is made at once and its outcome told in the next callback, so that ``advance`` has done all
that was due when it answers. So it is in memory, too, where nothing blocks.
"""

import asyncio
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Final, TypeVar

from fencepost.broker.core.scheduler import Scheduler
from fencepost.broker.node.cluster import MakeObjectStore
from fencepost.broker.server import logs
from fencepost.broker.server.remote_urls import first_line, open_remote
from fencepost.protocol.byte_utils import Buffer
from fencepost.storage.tier.object_store import DoneCallback, ListCallback, ReadCallback, TierError

if TYPE_CHECKING:
    from obstore.store import ObjectStoreMethods

T = TypeVar("T")

THREADS: Final = 4
PART_BYTES: Final = 5 << 20
"""What is sent at a time, and the least that S3 takes of an object in parts."""
PARTS_AT_ONCE: Final = 2
LISTED_AT_ONCE: Final = 1000

Post = Callable[[Callable[[], None]], object]
"""Runs a callback where the core runs, later; called from any thread."""


class _Closing(Exception):
    """Objects on their way are given up."""


class ObstoreObjectStore:
    """An `ObjectStore` over one of obstore's stores.

    :param executor: Whose threads make the calls; None is the caller's own.
    """

    def __init__(
        self, store: "ObjectStoreMethods", post: Post, executor: Executor | None = None
    ) -> None:
        self._store = store
        self._post = post
        self._executor = executor
        self.is_closing = False
        """Whether nobody is told anything any more."""

    def put(self, key: str, buffers: Iterable[Buffer], done: DoneCallback) -> None:
        """Write an object whole or not at all; its bytes are taken as they are sent."""
        self._run(key, partial(self._put, key, iter(buffers)), done)

    def get(self, key: str, start: int, end: int | None, done: ReadCallback) -> None:
        """Read from `start` to before `end`, as far as there is something."""
        self._run(key, partial(_get, self._store, key, start, end), done)

    def delete(self, keys: Sequence[str], done: DoneCallback) -> None:
        """Delete objects; those that are not there are no error."""
        self._run(keys[0] if keys else "", partial(_delete, self._store, keys), done)

    def list(self, prefix: str, done: ListCallback) -> None:
        """The keys that begin with `prefix`, which ends with a slash, in order."""
        self._run(prefix, partial(_list, self._store, prefix), done)

    def close(self) -> None:
        """Wait for the calls under way; objects that are being sent are given up.

        Nobody is told anything any more.
        """
        self.is_closing = True
        if self._executor is not None:
            self._executor.shutdown(cancel_futures=True)

    def _run(self, key: str, call: Callable[[], T], done: Callable[[T | TierError], None]) -> None:
        """Make a call, and tell what came of it later.

        :param key: What it is about, for its error.
        """

        def work() -> None:
            self._post(partial(self._deliver, done, _outcome(key, call)))

        if self._executor is None:
            work()
        elif not self.is_closing:
            self._executor.submit(work)

    def _deliver(self, done: Callable[[T | TierError], None], outcome: T | TierError) -> None:
        if not self.is_closing:
            done(outcome)

    # What the threads do.

    def _put(self, key: str, buffers: Iterator[Buffer]) -> None:
        """Small objects in one request, others part after part."""
        head = bytearray()
        for buffer in buffers:
            head += buffer
            if len(head) >= PART_BYTES:
                parts = chain([head], self._until_closing(buffers))
                self._store.put(key, parts, chunk_size=PART_BYTES, max_concurrency=PARTS_AT_ONCE)
                return
        self._store.put(key, bytes(head), use_multipart=False)

    def _until_closing(self, buffers: Iterator[Buffer]) -> Iterator[Buffer]:
        for buffer in buffers:
            if self.is_closing:
                raise _Closing
            yield buffer


def _get(store: "ObjectStoreMethods", key: str, start: int, end: int | None) -> bytes:
    if start == 0 and end is None:
        return store.get(key).bytes().to_bytes()
    if end is not None and start >= end:
        return b""
    try:
        if end is None:
            return store.get(key, options={"range": {"offset": start}}).bytes().to_bytes()
        return store.get_range(key, start=start, end=end).to_bytes()
    except FileNotFoundError:
        raise
    except Exception:  # every store has other words for a range behind the end
        if start < store.head(key)["size"]:
            raise
        return b""


def _delete(store: "ObjectStoreMethods", keys: Sequence[str]) -> None:
    try:
        store.delete(keys)
    except FileNotFoundError:  # one is gone; others may not have been looked at
        for key in keys:
            with suppress(FileNotFoundError):
                store.delete(key)


def _list(store: "ObjectStoreMethods", prefix: str) -> list[str]:
    listed = store.list(prefix.rstrip("/") or None, chunk_size=LISTED_AT_ONCE)
    return sorted(meta["path"] for chunk in listed for meta in chunk)


@contextmanager
def open_objects(url: str, *, at_once: bool) -> Iterator[MakeObjectStore]:
    """What makes the tier of a URL, within a running loop; it is closed at the end.

    :param at_once: Whether nothing is to happen beside the turns of the loop.
    :raises RemoteUnavailable: When it can't be used.
    """
    store = open_remote(url, os.environ)
    opened: list[ObstoreObjectStore] = []

    def make(scheduler: Scheduler) -> ObstoreObjectStore:
        if at_once:
            objects = ObstoreObjectStore(store, scheduler.soon)
        else:
            loop = asyncio.get_running_loop()

            def post(callback: Callable[[], None]) -> None:
                loop.call_soon_threadsafe(scheduler.soon, callback)

            objects = ObstoreObjectStore(store, post, ThreadPoolExecutor(THREADS, "tier"))
        opened.append(objects)
        return objects

    try:
        yield make
    finally:
        for each in opened:
            each.close()


def _outcome(key: str, call: Callable[[], T]) -> T | TierError:
    from obstore.exceptions import BaseError

    try:
        return call()
    except FileNotFoundError as error:
        return TierError(key, first_line(error), missing=True)
    except (BaseError, OSError, ValueError, _Closing) as error:
        return TierError(key, first_line(error))
    except Exception as error:  # noqa: BLE001  # a bug must not leave whoever asked without answer
        logs.logger().exception("tier_call_failed")
        return TierError(key, first_line(error))
