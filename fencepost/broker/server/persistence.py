"""Serves a cluster that is kept in files: syncs run on a thread, and recovery is logged.

A sync may take long; on a worker thread it does not block the event loop.
"""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial

from fencepost.broker.data_dir.log_dirs import all_dirs
from fencepost.broker.data_dir.persistence import DataDirPersistence
from fencepost.broker.node.cluster import Cluster
from fencepost.broker.server import logs

_THREADS = 1
"""Syncs of one disk gain nothing from running at the same time."""


@contextmanager
def serve_files(cluster: Cluster) -> Iterator[None]:
    """Let the log directories of a persistent cluster sync on a thread; within its running loop.

    What the start found missing is told first, before a client can read there. The end waits for
    the sync that is running; callbacks are not called after it.
    """
    cluster.events.tell_start()
    if cluster.events.found_on_disk:
        _log_recovery(cluster)
    persistence = cluster.persistence
    assert isinstance(persistence, DataDirPersistence)
    loop, soon = asyncio.get_running_loop(), cluster.scheduler.soon

    def submit(sync: Callable[[], None], then: Callable[[OSError | None], None]) -> None:
        def run() -> None:
            error: OSError | None = None
            try:
                sync()
            except OSError as raised:
                error = raised
            loop.call_soon_threadsafe(soon, partial(then, error))

        executor.submit(run)

    with ThreadPoolExecutor(_THREADS, "sync") as executor:
        for log_dir in all_dirs(persistence.log_dirs):
            log_dir.checkpoints.run_sync = submit
        try:
            yield
        finally:
            executor.shutdown(cancel_futures=True)


def log_recovery(cluster: Cluster) -> None:
    """Log what recovery rebuilt and a summary of the data directory, if `serve_files` has not.

    It is called when the ports accept: a start in order need not wait for it.
    """
    if not cluster.events.found_on_disk:
        _log_recovery(cluster)


def _log_recovery(cluster: Cluster) -> None:
    """One line per log that recovery has changed, and the summary."""
    persistence = cluster.persistence
    assert isinstance(persistence, DataDirPersistence)
    report = persistence.recovery_report
    if report is None:
        return
    log = logs.logger(data_dir=str(persistence.data_dir.path))
    recovered = checked = 0
    for broker_id, log_dir in persistence.log_dirs.items():
        for problem in log_dir.problems:
            log.warning("data_dir_problem", broker=broker_id, problem=problem)
        for name, recovery in log_dir.recoveries:
            recovered += 1
            checked += recovery.checked_bytes
            if recovery.cut or recovery.rebuilt or recovery.tidied:
                log.warning(
                    "log_recovered",
                    broker=broker_id,
                    log=name,
                    cut=[cut._asdict() for cut in recovery.cut],
                    rebuilt=recovery.rebuilt,
                    tidied=recovery.tidied,
                )
    log.info(
        "data_dir_opened",
        clean=report.clean,
        adopted=report.adopted,
        logs=sum(each.log_count for each in persistence.log_dirs.values()),
        recovered=recovered,
        checked_bytes=checked,
        registry_cut_bytes=report.torn_bytes,
        strays=report.strays,
        missing=report.missing,
        dropped_configs=report.dropped_configs,
    )
