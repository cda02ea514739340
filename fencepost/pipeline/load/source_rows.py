"""A frame of records, in their partitions and their order, of files.

The order of a partition's records is that of the files' names, and within a file that of its rows.
Spark splits files as it likes, and reads the parts in any order; but each part knows where it
begins in its file, and is read from there on by one task. So rows are sorted by their file, where
their part begins, and how many the task has read before: which comes to the same order however the
file is split. In Parquet every row knows its number.
"""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t
from pyspark.sql.pandas.functions import arrow_udf

from fencepost.pipeline.load.options import Columns, Files
from fencepost.pipeline.load.partitioner import partitions_of

_READER_OPTIONS: Final = {
    # A row that cannot be read is told of, not left out.
    "csv": {"header": "true", "mode": "FAILFAST", "columnPruning": "false"},
    "json": {"mode": "FAILFAST"},
    "parquet": {},
}
_FILE: Final = "_metadata.file_path"
_FEW_FILES: Final = 64
"""Up to so many, it is faster to number them than to sort by their names."""
_ROW_BITS: Final = 40
_HEADERS: Final = "array<struct<key:string,value:binary>>"


class NoSuchColumns(Exception):
    """The source does not have a column that is named, or one that cannot be taken so."""


def read_files(spark: SparkSession, files: Files) -> DataFrame:
    """The rows of files, as they are there.

    :raises pyspark.errors.AnalysisException: When there are no such files.
    """
    reader = spark.read.format(files.format)
    options = {**_READER_OPTIONS[files.format], **files.options}
    return reader.options(**options).load([_absolute(path) for path in files.paths])


def _absolute(path: str) -> str:
    """A path of this process, which the JVM may have been started elsewhere than; or as it is."""
    return str(Path(path).absolute()) if Path(path).exists() else path


def arrange(
    rows: DataFrame, files: Files, columns: Columns, count: int, names: Sequence[str]
) -> DataFrame:
    """Records as `sink` takes them: one task a partition, sorted.

    :param count: How many partitions the topic has.
    :param names: Of all files, sorted.
    :raises NoSuchColumns: When the rows are not as `columns` says.
    """
    records = rows.select(*_record(rows, columns), *_sort_columns(files.format, names))
    chosen = records.withColumn("partition", _partition(columns, count))
    order = [name for name in records.columns if name.startswith("place")]
    placed = chosen.repartitionById(count, "partition").sortWithinPartitions(*order)
    wanted = ["partition", "key", "value", "timestamp", "headers"]
    return placed.select(*(name for name in wanted if name in placed.columns))


# -- places -------------------------------------------------------------------------------------


def _sort_columns(of_format: str, names: Sequence[str]) -> list[Column]:
    """What rows are sorted by; one number where that is enough, as Spark sorts by it best."""
    if of_format == "parquet":
        row = f.col("_metadata.row_index")
        if len(names) > _FEW_FILES:
            return [f.col(_FILE).alias("place_file"), row.alias("place_row")]
        return [(f.shiftleft(_file_number(names), _ROW_BITS) + row).alias("place")]
    file = f.col(_FILE) if len(names) > _FEW_FILES else _file_number(names)
    return [
        file.alias("place_file"),
        f.col("_metadata.file_block_start").alias("place_part"),
        f.monotonically_increasing_id().alias("place_row"),
    ]


def _file_number(names: Sequence[str]) -> Column:
    """Where the row's file stands among all of them."""
    # Of local files, Spark's two ways to name one differ.
    known = f.array(*(f.lit(re.sub("^file:/+", "file:/", name)) for name in names))
    number = f.array_position(known, f.col(_FILE))
    unknown = f.raise_error(f.concat(f.lit("a file has come to the source: "), f.col(_FILE)))
    return f.when(number > 0, number).otherwise(unknown.cast("bigint"))


def _partition(columns: Columns, count: int) -> Column:
    if columns.partition is not None:
        return f.col("partition")
    by_content = f.pmod(f.xxhash64("value", "timestamp"), f.lit(count)).cast("int")
    if columns.key is None:
        return by_content
    return f.coalesce(_by_key(count)(f.col("key")), by_content)


def _by_key(count: int) -> Callable[[Column], Column]:
    def chosen(keys: pa.Array) -> pa.Array:
        return partitions_of(keys, count)

    # Its overloads want an object that stands for the kind of function, which is found by itself.
    by_key: Callable[[Column], Column] = arrow_udf(chosen, "int")  # type: ignore[call-overload]  # see above
    return by_key


# -- records ------------------------------------------------------------------------------------


def _record(rows: DataFrame, columns: Columns) -> list[Column]:
    types = {field.name: field.dataType for field in rows.schema}
    for name in (columns.key, columns.value, columns.timestamp, columns.headers, columns.partition):
        if name is not None and name not in types:
            raise NoSuchColumns(f"there is no column {name}, but {', '.join(types)}")
    key = f.lit(None).cast("binary") if columns.key is None else _bytes(columns.key, types)
    record = [key.alias("key"), _value(columns, types).alias("value")]
    record.append(_timestamp(columns.timestamp, types).alias("timestamp"))
    if columns.headers is not None:
        record.append(_header_list(columns.headers, types[columns.headers]).alias("headers"))
    if columns.partition is not None:
        # What is no number becomes null, which is refused where the row would be appended.
        record.append(f.col(_quoted(columns.partition)).try_cast("int").alias("partition"))
    return record


def _value(columns: Columns, types: dict[str, t.DataType]) -> Column:
    if columns.value is not None:
        return _bytes(columns.value, types)
    if "value" in types:
        return _bytes("value", types)
    row = f.struct(*(f.col(_quoted(name)) for name in types))
    return f.to_json(row, {"ignoreNullFields": "false"}).cast("binary")


def _bytes(name: str, types: dict[str, t.DataType]) -> Column:
    """A column as bytes: text is UTF-8, numbers and times are text, the rest is JSON."""
    column, kind = f.col(_quoted(name)), types[name]
    if isinstance(kind, t.BinaryType):
        return column
    if isinstance(kind, (t.StructType, t.ArrayType, t.MapType)):
        return f.to_json(column).cast("binary")
    return column.cast("string").cast("binary")


def _timestamp(name: str | None, types: dict[str, t.DataType]) -> Column:
    modified = f.unix_millis(f.col("_metadata.file_modification_time"))
    if name is None:
        return modified
    column, kind = f.col(_quoted(name)), types[name]
    if isinstance(kind, (t.TimestampType, t.TimestampNTZType, t.DateType)):
        return f.coalesce(f.unix_millis(column.cast("timestamp")), modified)
    if isinstance(kind, t.IntegralType):
        return f.coalesce(column.cast("bigint"), modified)
    raise NoSuchColumns(f"{name} is a {kind.simpleString()}: no time, nor milliseconds")


def _header_list(name: str, kind: t.DataType) -> Column:
    column = f.col(_quoted(name))
    if isinstance(kind, t.MapType):
        column = f.map_entries(column)
    elif not isinstance(kind, t.ArrayType) or not _is_header(kind.elementType):
        raise NoSuchColumns(f"{name} is a {kind.simpleString()}: no map, nor key and value")
    return column.cast(_HEADERS)


def _is_header(kind: t.DataType) -> bool:
    return isinstance(kind, t.StructType) and len(kind) == 2


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
