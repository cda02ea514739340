"""Where fetched and built things stay between runs: outside the tree."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


def cache_dir() -> Path:
    """``FENCEPOST_TEST_CACHE``, or a folder in the user's cache."""
    chosen = os.environ.get("FENCEPOST_TEST_CACHE")
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(chosen) if chosen else Path(base) / "fencepost-tests"


def made_once(
    name: str, inputs: list[Path], make: Callable[[Path], None], *, within: Path | None = None
) -> Path:
    """The folder that ``make`` filled; made again when a file of ``inputs`` changes.

    Appears whole or not at all, so that an interrupted run, or two at a time, do no harm.

    :param within: Where it is made instead of `cache_dir`.
    """
    digest = hashlib.sha256(b"\0".join(each.read_bytes() for each in inputs)).hexdigest()[:16]
    target = (within or cache_dir()) / f"{name}-{digest}"
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with alone(target.name):
        if not target.is_dir():
            _make(target, name, make)
    return target


@contextmanager
def alone(name: str) -> Iterator[None]:
    """Keep other workers, which want the same, from the same work: they wait for it.

    :param name: Of the work.
    """
    with (Path(tempfile.gettempdir()) / f"fencepost-tests-{name}.lock").open("w") as file:
        if sys.platform != "win32":
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _make(target: Path, name: str, make: Callable[[Path], None]) -> None:
    made = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=target.parent))
    try:
        make(made)
        try:
            made.rename(target)
        except OSError:
            if not target.is_dir():  # not just that another run was faster
                raise
    finally:
        shutil.rmtree(made, ignore_errors=True)
