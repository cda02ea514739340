"""What takes long is done on a thread of its own: the loop has others to serve."""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial

from fencepost.broker.data_dir.persistence import DataDirPersistence
from fencepost.broker.node.cluster import Cluster

_THREADS = 1
"""A disk is no quicker for being asked twice at a time."""


@contextmanager
def sync_on_thread(cluster: Cluster) -> Iterator[None]:
    """Let the log directories of a cluster, which has some, sync on a thread; within its loop.

    At the end what is under way is waited for, and nobody is told any more.
    """
    persistence = cluster.persistence
    assert isinstance(persistence, DataDirPersistence)
    loop, soon = asyncio.get_running_loop(), cluster.scheduler.soon

    def do(work: Callable[[], None], then: Callable[[OSError | None], None]) -> None:
        def run() -> None:
            error: OSError | None = None
            try:
                work()
            except OSError as found:
                error = found
            loop.call_soon_threadsafe(soon, partial(then, error))

        executor.submit(run)

    with ThreadPoolExecutor(_THREADS, "sync") as executor:
        for log_dir in persistence.log_dirs.values():
            log_dir.run_sync = do
        try:
            yield
        finally:
            executor.shutdown(cancel_futures=True)
