"""Files into a topic, each row once, by conditional publish (KIP-27).

`job` plans it and lets Spark run it. What a row becomes is a matter of its file alone: `rows` puts
every row in its partition and its order, `chunks` cuts what a partition gets into sets of batches,
and neither looks at how many executors there are, or which attempt it is. `loading` brings the
chunks of one partition to the offsets that are theirs, in whichever task that is.
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
