"""An `ObjectStore` of the remote tier in memory, in a folder or in S3, by obstore.

obstore's calls block, so a small pool of threads makes them; callbacks run in the turns of the
event loop, as all of the core. With a manual clock each call is made at once and its callback
scheduled, so that ``advance`` returns after all that was due. The store in memory, which does not
block, works the same way.
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
"""The size of a part: S3's minimum for multipart uploads."""
PARTS_AT_ONCE: Final = 2
LISTED_AT_ONCE: Final = 1000

Post = Callable[[Callable[[], None]], object]
"""Schedules a callback in the core's thread; called from any thread."""


class _Closing(Exception):
    """The store closes: uploads are aborted."""


class ObstoreObjectStore:
    """An `ObjectStore` over one of obstore's stores.

    :param executor: Makes the calls; None makes them in the caller's thread.
    """

    def __init__(
        self, store: "ObjectStoreMethods", post: Post, executor: Executor | None = None
    ) -> None:
        self._store = store
        self._post = post
        self._executor = executor
        self.is_closing = False
        """Whether callbacks are dropped."""

    def put(self, key: str, buffers: Iterable[Buffer], done: DoneCallback) -> None:
        """Write an object atomically; its buffers are read as they are sent."""
        self._run(key, partial(self._put, key, iter(buffers)), done)

    def get(self, key: str, start: int, end: int | None, done: ReadCallback) -> None:
        """Read the bytes from `start` to `end` (exclusive), as far as the object has them."""
        self._run(key, partial(_get, self._store, key, start, end), done)

    def delete(self, keys: Sequence[str], done: DoneCallback) -> None:
        """Delete objects; missing objects are no error."""
        self._run(keys[0] if keys else "", partial(_delete, self._store, keys), done)

    def list(self, prefix: str, done: ListCallback) -> None:
        """List the keys with a `prefix`, which ends with a slash, sorted."""
        self._run(prefix, partial(_list, self._store, prefix), done)

    def close(self) -> None:
        """Abort uploads, wait for the running calls, and drop all callbacks."""
        self.is_closing = True
        if self._executor is not None:
            self._executor.shutdown(cancel_futures=True)

    def _run(self, key: str, call: Callable[[], T], done: Callable[[T | TierError], None]) -> None:
        """Make a call, and pass its outcome to a callback later.

        :param key: The key or prefix for its error.
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

    # In the threads.

    def _put(self, key: str, buffers: Iterator[Buffer]) -> None:
        """Send a small object in one request, others in parts."""
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
    except Exception:  # each store has its own error for a range beyond the end
        if start < store.head(key)["size"]:
            raise
        return b""


def _delete(store: "ObjectStoreMethods", keys: Sequence[str]) -> None:
    try:
        store.delete(keys)
    except FileNotFoundError:  # one is missing; the others may not be deleted
        for key in keys:
            with suppress(FileNotFoundError):
                store.delete(key)


def _list(store: "ObjectStoreMethods", prefix: str) -> list[str]:
    listed = store.list(prefix.rstrip("/") or None, chunk_size=LISTED_AT_ONCE)
    return sorted(meta["path"] for chunk in listed for meta in chunk)


@contextmanager
def open_objects(url: str, *, at_once: bool) -> Iterator[MakeObjectStore]:
    """Open the store of a URL within a running loop; the end of the context closes it.

    :param at_once: Whether calls are made in the loop's thread instead of a pool.
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
    except Exception as error:  # noqa: BLE001  # after a bug the callback must run as well
        logs.logger().exception("tier_call_failed")
        return TierError(key, first_line(error))
