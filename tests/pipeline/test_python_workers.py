"""Python workers do not look at their modules behind each task."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from fencepost.pipeline import python_workers
from fencepost.pipeline.python_workers import freeze_loaded_modules

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_objects_are_frozen_once_for_each_time_at_which_modules_are_loaded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    frozen: list[int] = []
    monkeypatch.setattr(gc, "freeze", lambda: frozen.append(len(sys.modules)))
    monkeypatch.setattr(python_workers, "_frozen_modules", 0)
    loaded = len(sys.modules)
    for _ in range(3):
        freeze_loaded_modules()
    assert frozen == [loaded]
    monkeypatch.setitem(sys.modules, "loaded_later", ModuleType("loaded_later"))
    for _ in range(3):
        freeze_loaded_modules()
    assert frozen == [loaded, loaded + 1]


def test_little_is_left_to_look_at_behind_a_task(spark: SparkSession) -> None:
    def task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        freeze_loaded_modules()
        for _ in batches:
            yield pa.RecordBatch.from_pydict({"objects": [len(gc.get_objects())]})

    # Two workers at most run them, and each may load a module in its first ones.
    for _ in range(3):
        rows = spark.range(0, 4, numPartitions=4).mapInArrow(task, "objects long").collect()
    assert max(row.objects for row in rows) < 5_000
