"""``fencepost load``: files into a topic, each row once."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from fencepost.cli.output import complain, show_text
from fencepost.cli.spark import Master, reporting_errors
from fencepost.cli.typer_options import option
from fencepost.cli.usage_errors import InvalidUsage, parse_pairs

if TYPE_CHECKING:
    from fencepost.pipeline.load import Columns, Files, Loaded, Target

REFUSED: Final = 1
"""The exit code where the topic has other records than the source, or refuses a row."""
AGAIN: Final = 75
"""The exit code of an interruption, after which the same command continues."""
# Formats, codecs and defaults are those of `fencepost.pipeline.load`, which would import Arrow for
# help; a test compares them.
_FORMATS: Final = ("parquet", "csv", "json")
_CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")


def register(app: typer.Typer) -> None:
    """Add the command to the others."""
    app.command()(load)


def load(
    source: Annotated[
        list[str],
        typer.Argument(metavar="SOURCE...", help="Files, folders of them, or what Spark can read."),
    ],
    topic: Annotated[
        str,
        option("topic", "TOPIC", "A topic with check.expected.offsets=true."),
    ],
    bootstrap: Annotated[
        str,
        option("bootstrap", "HOST:PORT,...", "Brokers, as Spark's executors reach them."),
    ] = "127.0.0.1:9092",
    format_: Annotated[
        str | None,
        option(
            "format",
            "|".join(_FORMATS),
            "The format of the files; json is an object a line.",
            unset="as their names end",
        ),
    ] = None,
    key: Annotated[
        str | None,
        option(
            "key",
            "COLUMN",
            "Becomes the key, by which the partition is chosen as Kafka's producers do.",
            unset="no key; the partition by the value",
        ),
    ] = None,
    value: Annotated[
        str | None,
        option(
            "value",
            "COLUMN",
            "Becomes the value.",
            unset="the column value, or the whole row as JSON",
        ),
    ] = None,
    timestamp: Annotated[
        str | None,
        option(
            "timestamp",
            "COLUMN",
            "A time, or milliseconds since the epoch.",
            unset="when the file was modified",
        ),
    ] = None,
    headers: Annotated[
        str | None,
        option("headers", "COLUMN", "A map, or an array of keys and values."),
    ] = None,
    partition: Annotated[
        str | None,
        option("partition", "COLUMN", "Says the partition, instead of the key."),
    ] = None,
    read: Annotated[
        list[str] | None,
        option(
            "read",
            "NAME=VALUE",
            "An option of Spark's reader of the format, such as sep=; may be repeated.",
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        option(
            "checkpoint",
            "DIR",
            "A folder for the start offsets, for a topic that has records already.",
            unset="it begins at offset 0",
        ),
    ] = None,
    compression: Annotated[
        str,
        option("compression", "|".join(_CODECS), "Of the batches."),
    ] = "none",
    chunk_bytes: Annotated[
        int,
        option(
            "chunk-bytes",
            "BYTES",
            "The size of one request, which is appended wholly or not at all; before compression.",
            at_least=1,
        ),
    ] = 1 << 20,
    batch_bytes: Annotated[
        int,
        option(
            "batch-bytes",
            "BYTES",
            "The size of one batch; below the topic's max.message.bytes. Before compression.",
            at_least=1,
        ),
    ] = 1 << 18,
    patience: Annotated[
        float,
        option(
            "patience",
            "SECONDS",
            "How long to retry one request while brokers fail.",
            at_least=0,
        ),
    ] = 60.0,
    quiet: Annotated[bool, option("quiet", None, "Do not show how far it is.")] = False,
    master: Master = None,
) -> None:
    """Load Parquet, CSV or JSON lines into a topic, each row exactly once.

    To start it again with the same arguments goes on where it ended, after any failure. Exits with
    0 when every row is where it belongs, with 1 when a partition has something else there: then
    partition and offset are named. 2: it was asked wrongly. 75: it was interrupted; start again.
    """
    with reporting_errors():
        from fencepost.pipeline.requirements import require_packages

        require_packages()
        from fencepost.pipeline.load import Columns, Files, Target
        from fencepost.pipeline.load.batch_encoding import BatchLimits
        from fencepost.protocol.compression import CODECS_BY_NAME

        files = Files(
            paths=tuple(source),
            format=_format(source, format_),
            options=parse_pairs("--read", "NAME=VALUE", read),
        )
        columns = Columns(
            key=key, value=value, timestamp=timestamp, headers=headers, partition=partition
        )
        codec = CODECS_BY_NAME[_known("--compression", compression, _CODECS)]
        limits = BatchLimits(batch_bytes=batch_bytes, chunk_bytes=chunk_bytes, codec=codec)
        target = Target(bootstrap=bootstrap, topic=topic, limits=limits, patience_s=patience)
        code = _load(files, target, columns, checkpoint, master, quiet=quiet)
    raise typer.Exit(code)


def _load(
    files: "Files",
    target: "Target",
    columns: "Columns",
    checkpoint: Path | None,
    master: str | None,
    *,
    quiet: bool,
) -> int:
    """Run it; the exit code."""
    from fencepost.pipeline.load import LoadInterrupted, LoadRefused
    from fencepost.pipeline.load.job import UnreadableRows, load
    from fencepost.pipeline.load.source_rows import NoSuchColumns
    from fencepost.pipeline.session import session

    tell = None if quiet else _tell
    with session("fencepost load", master=master) as spark:
        try:
            loaded = load(spark, files, target, columns=columns, checkpoint=checkpoint, tell=tell)
        except LoadRefused as error:
            return _failed(str(error), REFUSED)
        except LoadInterrupted as error:
            return _failed(f"{error}; start again to go on", AGAIN)
        except KeyboardInterrupt:
            return _failed("stopped; start again to go on", AGAIN)
        except (UnreadableRows, NoSuchColumns, OSError, ValueError) as error:
            raise InvalidUsage(str(error)) from error
    show_text(_summary(loaded))
    return 0


def _summary(loaded: "Loaded") -> str:
    where = ", ".join(
        f"{loaded.topic}-{each.partition} {each.base}-{each.next_offset - 1}"
        for each in loaded.partitions
    )
    there = f"all {loaded.rows} are there: {where}" if where else "there are none"
    return f"{loaded.appended} rows were appended; {there}"


def _format(source: Sequence[str], asked: str | None) -> str:
    """What the files are, as it is asked for, or as their names end.

    :raises InvalidUsage: When that is not to be seen, or is more than one.
    """
    from fencepost.pipeline.load.options import format_of

    if asked is not None:
        return _known("--format", asked, _FORMATS)
    names = [name for each in source for name in _names(each)]
    found = {each for each in map(format_of, names) if each is not None}
    if len(found) != 1:
        seen = " and ".join(sorted(found)) or "nothing that is known"
        raise InvalidUsage(f"--format is missing: by their names the files are {seen}")
    return found.pop()


def _names(path: str) -> list[str]:
    """Of the files in a folder, without those that Spark passes over; otherwise the path itself."""
    folder = Path(path)
    if not folder.is_dir():
        return [path]
    below = [each.relative_to(folder) for each in folder.rglob("*")]
    return [str(each) for each in below if not any(_is_hidden(part) for part in each.parts)]


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def _known(flag: str, given: str, known: Sequence[str]) -> str:
    if given not in known:
        raise InvalidUsage(f"{flag}: there is no {given}, only {', '.join(known)}")
    return given


def _tell(text: str) -> None:
    complain(text)


def _failed(text: str, code: int) -> int:
    complain(f"fencepost load: {text}")
    return code
