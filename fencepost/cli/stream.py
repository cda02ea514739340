"""``fencepost stream``: Spark's Structured Streaming, from topics to Parquet or a topic."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Final

import typer

from fencepost.cli.output import complain, show_json, show_text
from fencepost.cli.spark import Master, reporting_errors
from fencepost.cli.typer_options import option
from fencepost.cli.usage_errors import InvalidUsage, parse_pairs
from fencepost.pipeline.stream.options import (
    CountOptions,
    OnDataLoss,
    SourceOptions,
    StartingOffsets,
    Trigger,
    TriggerOptions,
)

if TYPE_CHECKING:
    from fencepost.pipeline.stream.query_monitor import MicroBatch

FAILED: Final = 1
"""The exit code of a query that failed."""

_Topics = Annotated[str, typer.Argument(metavar="TOPIC[,...]", help="The topics to read.")]
_Bootstrap = Annotated[
    str,
    option("bootstrap", "HOST:PORT[,...]", "Brokers, by which the others are learnt."),
]
_CHECKPOINT: Final = (
    "The folder in which Spark keeps the finished batches, from which a restart continues."
)
_Checkpoint = Annotated[str, option("checkpoint", "DIR", _CHECKPOINT)]
_OwnCheckpoint = Annotated[
    str | None,
    option("checkpoint", "DIR", _CHECKPOINT, unset="_checkpoint in the directory"),
]
_Trigger = Annotated[
    Trigger,
    option(
        "trigger",
        None,
        "micro-batches go on until SIGTERM or Ctrl-C, available-now ends with the records"
        " that are there at the start.",
    ),
]
_Interval = Annotated[
    float,
    option(
        "interval",
        "SECONDS",
        "The minimum time from the start of a micro-batch to that of the next.",
        at_least=0,
    ),
]
_Start = Annotated[
    StartingOffsets,
    option("from", None, "Where to begin as long as there is no checkpoint."),
]
_OnDataLoss = Annotated[
    OnDataLoss,
    option(
        "on-data-loss",
        None,
        "What to do when offsets are gone, or go back (the connector's failOnDataLoss).",
    ),
]
_MaxOffsets = Annotated[
    int | None,
    option(
        "max-offsets",
        "N",
        "The maximum number of offsets in a batch, over all partitions.",
        at_least=1,
        unset="as many as there are",
    ),
]
_Options = Annotated[
    list[str] | None,
    option(
        "option",
        "KEY=VALUE",
        "Set an option of the connector, such as kafka.security.protocol=SSL. May be repeated.",
    ),
]
_AsJson = Annotated[bool, typer.Option("--json", help="Print a line of JSON for each batch.")]
_Window = Annotated[
    float | None,
    option(
        "window",
        "SECONDS",
        "Count in windows of this length, by the records' timestamps.",
        at_least=0.001,
        unset="all of time",
    ),
]
_Late = Annotated[
    float,
    option(
        "late",
        "SECONDS",
        "How late a record may arrive, after newer ones, and still be counted in its window.",
        at_least=0,
    ),
]


def register(app: typer.Typer) -> None:
    """Add the commands to the others."""
    group = typer.Typer(
        name="stream",
        help="Run Spark's Structured Streaming on topics, through its own Kafka connector.",
        no_args_is_help=True,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    group.command("to-parquet")(to_parquet)
    group.command("to-topic")(to_topic)
    app.add_typer(group)


def to_parquet(
    topics: _Topics,
    directory: Annotated[str, typer.Argument(metavar="DIR", help="Where the files go.")],
    bootstrap: _Bootstrap,
    checkpoint: _OwnCheckpoint = None,
    trigger: _Trigger = Trigger.MICRO_BATCHES,
    interval: _Interval = 0.0,
    start: _Start = StartingOffsets.EARLIEST,
    on_data_loss: _OnDataLoss = OnDataLoss.FAIL,
    max_offsets: _MaxOffsets = None,
    options: _Options = None,
    master: Master = None,
    as_json: _AsJson = False,
) -> None:
    """Write the records of topics to Parquet files, each once, with their offsets and headers.

    Exits with 0 when all is written or it was stopped, with 1 when the query failed, and with 2
    when it could not be started.
    """
    source = _source(bootstrap, topics, start, on_data_loss, max_offsets, options)
    own = f"{directory.rstrip('/')}/_checkpoint"
    pace = TriggerOptions(checkpoint=checkpoint or own, trigger=trigger, interval_s=interval)
    with _reporting_errors():
        from fencepost.pipeline.stream.job import write_files

        write_files(source, pace, directory, master=master, tell=_batch_printer(as_json))


def to_topic(
    topics: _Topics,
    target: Annotated[str, typer.Argument(metavar="TARGET", help="The topic to write to.")],
    bootstrap: _Bootstrap,
    checkpoint: _Checkpoint,
    trigger: _Trigger = Trigger.MICRO_BATCHES,
    interval: _Interval = 0.0,
    start: _Start = StartingOffsets.EARLIEST,
    on_data_loss: _OnDataLoss = OnDataLoss.FAIL,
    max_offsets: _MaxOffsets = None,
    window: _Window = None,
    late: _Late = 0.0,
    options: _Options = None,
    master: Master = None,
    as_json: _AsJson = False,
) -> None:
    """Count the records of topics by their keys, and write the counts to another topic.

    Exits with 0 when all is counted or it was stopped, with 1 when the query failed, and with 2
    when it could not be started.
    """
    source = _source(bootstrap, topics, start, on_data_loss, max_offsets, options)
    if late and window is None:
        raise InvalidUsage("--late: there is no --window that a record could be late for")
    pace = TriggerOptions(checkpoint=checkpoint, trigger=trigger, interval_s=interval)
    counting = CountOptions(window_s=window, late_s=late)
    with _reporting_errors():
        from fencepost.pipeline.stream.job import write_counts

        write_counts(source, pace, target, counting, master=master, tell=_batch_printer(as_json))


def _source(
    bootstrap: str,
    topics: str,
    start: StartingOffsets,
    on_data_loss: OnDataLoss,
    max_offsets: int | None,
    options: Sequence[str] | None,
) -> SourceOptions:
    names = tuple(name.strip() for name in topics.split(","))
    if not all(names):
        raise InvalidUsage(f"{topics!r} is not a list of topics, such as orders,payments")
    return SourceOptions(
        bootstrap=bootstrap,
        topics=names,
        start=start,
        on_data_loss=on_data_loss,
        max_offsets=max_offsets,
        options=parse_pairs("--option", "KEY=VALUE", options),
    )


@contextmanager
def _reporting_errors() -> Iterator[None]:
    """Report in one line what cannot run, and what fails."""
    from fencepost.pipeline.stream.query_monitor import StreamFailedError

    with reporting_errors():
        try:
            yield
        except StreamFailedError as error:
            complain(f"fencepost: {error}")
            raise typer.Exit(FAILED) from None


def _batch_printer(as_json: bool) -> Callable[["MicroBatch"], None]:
    def tell(batch: "MicroBatch") -> None:
        if as_json:
            show_json(json.dumps(batch.to_dict()))
        else:
            show_text(batch)

    return tell
