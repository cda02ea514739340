"""The limits of what clients, browsers, files and the command line may make the server do or keep.

docs/security.md has them as tables (``python -m docs.generate``), and each has a test
(tests/test_limits.py names it). No number stands here: the default of a config or an option is that
of its declaration, and a limit that nothing sets is the constant that its code uses. For that this
module imports every room, and so it stands outside the package: nothing at run time imports it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from fencepost.broker import handlers
from fencepost.broker.configs.broker_configs import broker_configs
from fencepost.broker.configs.topic_configs import topic_configs
from fencepost.broker.controller import MAX_BROKERS
from fencepost.broker.controller.topic_changes import MAX_NAME, MAX_PARTITIONS_PER_REQUEST
from fencepost.broker.core.event_history import MAX_OF_KIND
from fencepost.broker.faults.rules import MAX_STEPS
from fencepost.broker.handlers.client_metrics import MAX_INSTANCES
from fencepost.broker.handlers.create_topics import MAX_RECORDS as MAX_METADATA_RECORDS
from fencepost.broker.handlers.describe_configs import MAX_ENTRIES
from fencepost.broker.server import journal, journal_history, trace_file
from fencepost.broker.server.connection import MAX_IN_FLIGHT
from fencepost.broker.server.logs import MAX_WAITING
from fencepost.broker.server.resources import CONTROL_CONNECTIONS
from fencepost.cli.serve import MAX_LOG_DIRS
from fencepost.cli.serve_options import SERVE_OPTIONS
from fencepost.control import (
    group_metrics,
    guard,
    limits,
    message_json,
    metrics,
    record_reading,
    routes_events,
)
from fencepost.protocol.codec.reader import MAX_ELEMENTS, MAX_TAGGED_FIELDS
from fencepost.protocol.compression import MAX_DECOMPRESSED_BYTES, MAX_MEMBERS
from fencepost.protocol.frames import MAX_HEADER_TAGS
from fencepost.protocol.listener_text import MAX_HOST, MAX_PORT
from fencepost.protocol.records import MAX_RECORDS
from fencepost.scenario import document, loader
from fencepost.storage.files.file_system import MAX_OPEN_FILES
from fencepost.storage.log.validation import MAX_RECORD_ERRORS
from fencepost.verbs import bodies, control_token


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """One limit."""

    name: str
    """What is limited."""
    error: str
    """What happens beyond it: what a client or a user gets."""
    set_by: str | None = None
    """The config or option that sets it; None where it is fixed."""
    default: int | str | None = None
    """None where the config or the option has it."""

    def shown_default(self) -> str:
        """The default as text, numbers with commas.

        :raises KeyError: When neither it nor what sets it has one.
        """
        if self.default is not None:
            return f"{self.default:,}" if isinstance(self.default, int) else self.default
        name = self.set_by or ""
        if name.startswith("--"):
            option = {each.flag: each for each in SERVE_OPTIONS}[name]
            return option.default or option.unset or ""
        config = broker_configs().get(name) or topic_configs()[name]
        text = config.default
        if text is None and config.synonym:
            text = broker_configs()[config.synonym].default
        return f"{int(text or ''):,}"


_CLOSED: Final = "the connection is closed"
_CLOSED_AND_COUNTED: Final = "the connection is closed and counted"
_TOO_LARGE: Final = "MESSAGE_TOO_LARGE, with a message from Produce v8 on"
_BAD: Final = "400 INVALID_REQUEST"
_TOO_MANY: Final = "429 THROTTLING_QUOTA_EXCEEDED"
_BAD_FILE: Final = "one line with its place in the file, and exit code 2"
_BAD_OPTION: Final = "one line, and exit code 2"

LIMITS: Final[Mapping[str, tuple[Limit, ...]]] = {
    "requests": (
        Limit(name="bytes of a request", set_by="socket.request.max.bytes", error=_CLOSED),
        Limit(
            name="elements that an array claims to have",
            default="as many as the rest of the request can hold",
            error=_CLOSED,
        ),
        Limit(name="elements of a request, in all its arrays", default=MAX_ELEMENTS, error=_CLOSED),
        Limit(
            name="elements of a request that changes something",
            default=handlers.MAX_CHANGES,
            error="POLICY_VIOLATION for all that it names",
        ),
        Limit(name="tagged fields of a request's header", default=MAX_HEADER_TAGS, error=_CLOSED),
        Limit(name="tagged fields of a request's body", default=MAX_TAGGED_FIELDS, error=_CLOSED),
        Limit(name="bytes of a batch", set_by="max.message.bytes", error="MESSAGE_TOO_LARGE"),
        Limit(
            name="records of a batch, and those that are read of a Produce",
            default=MAX_RECORDS,
            error=_TOO_LARGE,
        ),
        Limit(
            name="bytes that the batches unpack to which are read of a Produce",
            default=MAX_DECOMPRESSED_BYTES,
            error=_TOO_LARGE,
        ),
        Limit(
            name="gzip members or snappy blocks of a batch that is read",
            default=MAX_MEMBERS,
            error=_TOO_LARGE,
        ),
        Limit(
            name="records at fault that the answer for a partition names",
            default=MAX_RECORD_ERRORS,
            error="the others are counted in the message",
        ),
        Limit(
            name="partitions that a CreateTopics, CreatePartitions or Metadata creates",
            default=MAX_PARTITIONS_PER_REQUEST,
            error="POLICY_VIOLATION for all of its topics; a Metadata creates none of them",
        ),
        Limit(
            name="configs in an answer of DescribeConfigs",
            default=MAX_ENTRIES,
            error="POLICY_VIOLATION for the resources beyond",
        ),
        Limit(
            name="partitions in an answer of DescribeTopicPartitions",
            set_by="max.request.partition.size.limit",
            error="a cursor to go on with",
        ),
        Limit(
            name="bytes of records in an answer of Fetch",
            set_by="fetch.max.bytes",
            error="fewer records",
        ),
        Limit(
            name="bytes of a committed offset's metadata",
            set_by="offset.metadata.max.bytes",
            error="OFFSET_METADATA_TOO_LARGE",
        ),
        Limit(
            name="bytes of a client's telemetry",
            set_by="telemetry.max.bytes",
            error="TELEMETRY_TOO_LARGE",
        ),
        Limit(
            name="characters of a topic's name", default=MAX_NAME, error="INVALID_TOPIC_EXCEPTION"
        ),
        Limit(
            name="records of the metadata log that a CreateTopics writes",
            default=MAX_METADATA_RECORDS,
            error="POLICY_VIOLATION for all of its topics",
        ),
        Limit(
            name="incremental fetch sessions",
            set_by="max.incremental.fetch.session.cache.slots",
            error="no session: each Fetch names all of its partitions",
        ),
        Limit(name="members of a group", set_by="group.max.size", error="GROUP_MAX_SIZE_REACHED"),
        Limit(
            name="milliseconds of a member's session timeout",
            set_by="group.max.session.timeout.ms",
            error="INVALID_SESSION_TIMEOUT",
        ),
        Limit(
            name="client instances whose telemetry a broker knows",
            default=MAX_INSTANCES,
            error="the least recently used is forgotten",
        ),
    ),
    "memory": (
        Limit(
            name="bytes of logs in memory, and of a tier in memory",
            set_by="--max-memory",
            error="POLICY_VIOLATION, with a message from Produce v8 on",
        ),
        Limit(
            name="the same with what groups commit",
            default="an eighth more",
            error="POLICY_VIOLATION",
        ),
        Limit(
            name="bytes of requests that arrive or wait for their answer",
            default="a quarter of what the process may have",
            error=_CLOSED_AND_COUNTED,
        ),
        Limit(
            name="requests that the journal keeps, and as many between brokers",
            default=journal.MAX_EXCHANGES,
            error="the oldest is forgotten",
        ),
        Limit(
            name="bytes that they take", default=journal.MAX_BYTES, error="the oldest is forgotten"
        ),
        Limit(
            name="kinds of forgotten requests that are counted apart, by API, version and client",
            default=journal_history.MAX_KINDS,
            error="all others are counted together, and may match any `verify`",
        ),
        Limit(
            name="characters of a client id by which they are counted apart",
            default=journal_history.MAX_CLIENT_ID,
            error="counted as all others",
        ),
        Limit(
            name="deleted topics whose ids `verify` knows",
            default=journal_history.MAX_DELETED,
            error="the oldest is forgotten",
        ),
    ),
    "connections": (
        Limit(
            name="connections, and files of logs that are open",
            default="the soft limit RLIMIT_NOFILE",
            error=_CLOSED_AND_COUNTED,
        ),
        Limit(
            name="files of logs that are held open",
            default=MAX_OPEN_FILES,
            error="one that is used less is closed",
        ),
        Limit(
            name="connections of clients to a broker",
            set_by="max.connections",
            error=_CLOSED_AND_COUNTED,
        ),
        Limit(
            name="the same from one address",
            set_by="max.connections.per.ip",
            error=_CLOSED_AND_COUNTED,
        ),
        Limit(
            name="milliseconds that a connection is silent",
            set_by="connections.max.idle.ms",
            error=_CLOSED,
        ),
        Limit(
            name="requests of a connection that wait for their answer",
            default=MAX_IN_FLIGHT,
            error="the next is not read yet",
        ),
    ),
    "control-api": (
        Limit(
            name="connections that need no room beside those of clients",
            default=CONTROL_CONNECTIONS,
            error="closed where clients have taken all",
        ),
        Limit(
            name="requests that are answered at a time", default=guard.MAX_REQUESTS, error=_TOO_MANY
        ),
        Limit(name="streams of events", default=routes_events.MAX_STREAMS, error=_TOO_MANY),
        Limit(
            name="events of one kind that are kept",
            default=MAX_OF_KIND,
            error="the oldest are dropped, and an event `events_dropped` says how many",
        ),
        Limit(
            name="bytes of a head whose rest is waited for",
            default=limits.MAX_HEAD_BYTES,
            error="400, and the connection is closed",
        ),
        Limit(
            name="seconds that a connection takes to send a head, or the rest of a refused body",
            default=int(limits.HEAD_S),
            error=_CLOSED,
        ),
        Limit(name="bytes of a body", default=limits.MAX_BODY_BYTES, error="413 INVALID_REQUEST"),
        Limit(
            name="seconds that a body takes to arrive",
            default=int(limits.BODY_S),
            error="408 REQUEST_TIMED_OUT",
        ),
        Limit(
            name="bytes of the form that takes a token",
            default=guard.MAX_FORM,
            error="401, and the form again",
        ),
        Limit(
            name="characters of a token",
            default=f"{control_token.MIN_CHARACTERS} to {control_token.MAX_CHARACTERS}",
            error=_BAD_OPTION,
        ),
        Limit(name="requests of an answer of the trace", default=bodies.MAX_LISTED, error=_BAD),
        Limit(
            name="elements of a message that the trace shows",
            default=message_json.SHORT.elements,
            error="the others are counted",
        ),
        Limit(
            name="batches of a partition that the trace shows",
            default=message_json.SHORT.batches,
            error="the others are counted",
        ),
        Limit(
            name="bytes of a field that the trace shows",
            default=message_json.MAX_BYTES,
            error="the number of bytes alone",
        ),
        Limit(
            name="partitions in the metrics",
            default=metrics.MAX_PARTITIONS,
            error="`fencepost_partitions_left_out` counts the others; `?topic=` asks for some",
        ),
        Limit(
            name="groups, and partitions of groups, in the metrics",
            default=group_metrics.MAX_ROWS,
            error="`fencepost_group_partitions_left_out` counts the others",
        ),
        Limit(
            name="records, offsets or topics that a verb is given, and records of its answer",
            default=bodies.MAX_LISTED,
            error=_BAD,
        ),
        Limit(
            name="bytes of keys, values and headers that are answered of a partition",
            default=record_reading.MAX_BYTES,
            error="the answer ends before, and `next_offset` is where to read on",
        ),
        Limit(name="fetches of a step", default=bodies.MAX_FETCHES, error=_BAD),
        Limit(name="actions in a fault's sequence", default=MAX_STEPS, error=_BAD),
        Limit(
            name="milliseconds of a fault's delay, or of a wait",
            default=bodies.MAX_DELAY_MS,
            error=_BAD,
        ),
        Limit(
            name="milliseconds that a manual clock is advanced by",
            default=bodies.MAX_ADVANCE_MS,
            error=_BAD,
        ),
    ),
    "logs": (
        Limit(
            name="bytes of the log that wait for the reader of a pipe",
            default=MAX_WAITING,
            error="lines are dropped and counted (`fencepost_log_lines_dropped_total`)",
        ),
        Limit(
            name="lines of `--trace` that wait for the disk",
            default=trace_file.MAX_BEHIND,
            error="requests wait",
        ),
        Limit(
            name="bytes of a file of `--trace`",
            default=trace_file.MAX_FILE_BYTES,
            error="another file",
        ),
        Limit(name="files of `--trace`", set_by="--trace-files", error="the oldest is deleted"),
    ),
    "scenario-files": (
        Limit(name="values within values", default=document.MAX_DEPTH, error=_BAD_FILE),
        Limit(
            name="values, each as often as aliases repeat it",
            default=document.MAX_VALUES,
            error=_BAD_FILE,
        ),
        Limit(
            name="characters of all texts, likewise",
            default=document.MAX_CHARACTERS,
            error=_BAD_FILE,
        ),
        Limit(name="digits of a number", default=document.MAX_DIGITS, error=_BAD_FILE),
        Limit(
            name="texts that the ranges of a list stand for",
            default=document.MAX_TEXTS,
            error=_BAD_FILE,
        ),
        Limit(
            name="characters of a range",
            default=document.MAX_RANGE,
            error="it is a text as it stands",
        ),
        Limit(name="repetitions of a step", default=loader.MAX_REPEAT, error=_BAD_FILE),
        Limit(name="milliseconds that a step waits", default=loader.MAX_WITHIN_MS, error=_BAD_FILE),
        Limit(
            name="characters of a message about a file",
            default=document.MAX_MESSAGE,
            error="the rest is left out",
        ),
    ),
    "options": (
        Limit(name="brokers", default=MAX_BROKERS, error=_BAD_OPTION),
        Limit(name="log directories of a broker", default=MAX_LOG_DIRS, error=_BAD_OPTION),
        Limit(name="the highest port", default=MAX_PORT, error=_BAD_OPTION),
        Limit(name="characters of a host's name", default=MAX_HOST, error=_BAD_OPTION),
    ),
}
"""By the sections of docs/security.md, each of which has a table of its own."""
