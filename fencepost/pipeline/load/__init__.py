"""Loads files into a topic, each row once, by conditional publish (KIP-27).

`job` plans the load and runs it as a Spark job. Partition, order and batch of a row depend on the
files alone, not on the number of executors, nor on the attempt: `source_rows` gives each row its
partition and its order, and `batch_encoding` divides the rows of a partition into sets of batches.
`sink` runs in the tasks, and `partition_load` appends the batches of one partition at their
offsets.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from fencepost.pipeline.load.job import load
    from fencepost.pipeline.load.options import (
        Columns,
        Files,
        Loaded,
        LoadInterrupted,
        LoadRefused,
        Target,
    )

__all__ = ["Columns", "Files", "LoadInterrupted", "LoadRefused", "Loaded", "Target", "load"]

_HOMES: Final = {
    "Columns": "options",
    "Files": "options",
    "LoadInterrupted": "options",
    "LoadRefused": "options",
    "Loaded": "options",
    "Target": "options",
    "load": "job",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
