"""A request and its answer in words: what it is about, where it reads or writes, its outcome.

It is the one place that words them, for the lists of ``fencepost trace`` and for the timeline.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from fencepost.protocol.errors import ErrorCode
from fencepost.verbs.answers.cluster import ExchangeState

OK: Final = "ok"
NO_ANSWER: Final = "no answer"
SLOW_MS: Final = 100
"""Of an answer that takes as long, the line says how long."""
MAX_SUBJECTS: Final = 6
"""Topics and partitions that a line names."""
_TOPIC_FIELDS: Final = ("name", "topic", "topic_name", "topic_id")
_PARTITION_FIELDS: Final = ("partition_index", "partition", "index", "partition_id")
_ID_FIELDS: Final = ("group_id", "transactional_id", "key", "coordinator_keys")
_SHORT_ID: Final = 8
_REQUEST_NOTES: Final = {
    "Fetch": ("from", "fetch_offset"),
    "ListOffsets": ("timestamp", "timestamp"),
    "OffsetForLeaderEpoch": ("of epoch", "leader_epoch"),
    "OffsetCommit": ("offset", "committed_offset"),
    "TxnOffsetCommit": ("offset", "committed_offset"),
}
"""Of an API the word and the field of its request that say where it reads or writes."""
_ANSWER_NOTES: Final = {
    "Produce": ("at", "base_offset"),
    "ListOffsets": ("is", "offset"),
    "OffsetForLeaderEpoch": ("ends at", "end_offset"),
    "OffsetFetch": ("offset", "committed_offset"),
    "JoinGroup": ("generation", "generation_id"),
}
"""The same of its answer."""
_TIMESTAMPS: Final = {
    -1: "latest",
    -2: "earliest",
    -3: "max timestamp",
    -4: "earliest local",
    -5: "latest tiered",
    -6: "earliest pending upload",
}


class ExchangeText(Struct, frozen=True, kw_only=True):
    """The words of one exchange; several of the same `key` may share a line."""

    key: tuple[object, ...]
    """Client, broker, request, subjects and outcome."""
    sender: str
    request: str
    """API and version, and what it is about."""
    records: int
    """In its batches and those of its answer."""
    notes: Mapping[str, object]
    """Values by the word before them, such as the offset."""
    outcome: str
    took_ms: int

    @property
    def is_ok(self) -> bool:
        """Whether it was answered without an error, or wants no answer."""
        return self.outcome in (OK, _SENT)


_SENT: Final = "sent"


def exchange_text(state: ExchangeState) -> ExchangeText:
    """The words of an exchange."""
    about = shortened(subjects(state))
    request = f"{request_name(state)} {about}".strip()
    sender = f"{state.client_id or state.connection} -> {state.broker}"
    result = outcome(state)
    return ExchangeText(
        key=(sender, request, result),
        sender=sender,
        request=request,
        records=sum(_record_counts(state.request)) + sum(_record_counts(state.response)),
        notes=dict(_notes(state)),
        outcome=result,
        took_ms=(state.elapsed_us or 0) // 1000,
    )


def exchange_line(first: ExchangeText, last: ExchangeText, records: int) -> str:
    """One line for exchanges of the same key: values that changed are shown as a range.

    :param records: In all of them together.
    """
    words = [] if not records else [f"{records} record{'s' if records > 1 else ''}"]
    for word, until in last.notes.items():
        value = first.notes.get(word, until)
        words.append(f"{word} {value}" if value == until else f"{word} {value} to {until}")
    took = max(first.took_ms, last.took_ms)
    slow = f" after {took} ms" if took >= SLOW_MS and first.outcome != NO_ANSWER else ""
    return f"{first.sender}  {first.request}: {', '.join([*words, first.outcome])}{slow}"


def request_name(state: ExchangeState) -> str:
    """Such as ``Produce v9``."""
    draft = "" if state.dialect is None else f" of {state.dialect}"
    return f"{state.api} v{state.version}{draft}"


def outcome(state: ExchangeState) -> str:
    """The errors in the answer, by name, each once; or that there are none, or no answer."""
    if state.response is None:
        return _SENT if state.request.get("acks") == 0 else NO_ANSWER
    return ", ".join(dict.fromkeys(_errors(state.response))) or OK


def subjects(state: ExchangeState) -> list[str]:
    """Groups, transactions, topics and partitions that a request names, each once."""
    return list(dict.fromkeys(_subjects(state.request, state.topic_names)))


def shortened(names: Sequence[str]) -> str:
    """The first names, and how many others there are."""
    more = f" and {len(names) - MAX_SUBJECTS} more" if len(names) > MAX_SUBJECTS else ""
    return ", ".join(names[:MAX_SUBJECTS]) + more


def _errors(value: object) -> Iterator[str]:
    if isinstance(value, Mapping):
        code = value.get("error_code")
        if isinstance(code, int) and code:
            yield _error_name(code)
    for each in _values_of(value):
        yield from _errors(each)


def _error_name(code: int) -> str:
    try:
        return ErrorCode(code).name
    except ValueError:  # a fault may answer any code
        return f"error {code}"


def _subjects(value: object, names: Mapping[str, str]) -> Iterator[str]:
    if isinstance(value, Mapping):
        for name in _ID_FIELDS:
            if value.get(name):
                yield str(value[name])
        topic = _topic(value, names)
        if topic is not None:
            partitions = list(_partitions(value))
            yield from (f"{topic}-{each}" for each in partitions)
            if not partitions:
                yield topic
    for each in _values_of(value, but="protocols"):
        yield from _subjects(each, names)


def _values_of(value: object, *, but: str = "") -> Iterator[object]:
    """What is in a message, but for a field: the protocols of a group have names, too."""
    if isinstance(value, Mapping):
        yield from (each for name, each in value.items() if name != but)
    elif isinstance(value, list):
        yield from value


def _topic(value: Mapping[str, object], names: Mapping[str, str]) -> str | None:
    """The topic that an element is about, by its name where that is known."""
    for name in _TOPIC_FIELDS:
        found = value.get(name)
        if isinstance(found, str):
            return names.get(found, found[:_SHORT_ID]) if name == "topic_id" else found
    return None


def _partitions(value: Mapping[str, object]) -> Iterator[int]:
    """Indices of the partitions listed in an element."""
    for listed in value.values():
        for each in listed if isinstance(listed, list) else ():
            if isinstance(each, int):
                yield each
            elif isinstance(each, Mapping):
                found = (
                    each[name] for name in _PARTITION_FIELDS if isinstance(each.get(name), int)
                )
                yield from (index for index in found if isinstance(index, int))


# -- notes --------------------------------------------------------------------------------------


def _notes(state: ExchangeState) -> Iterator[tuple[str, object]]:
    """Where a request reads or writes, if it is about one place."""
    for message, words in ((state.request, _REQUEST_NOTES), (state.response, _ANSWER_NOTES)):
        word, field = words.get(state.api, ("", ""))
        values = list(_values_named(message, field)) if field else []
        if len(values) == 1 and (values[0] != -1 or field == "timestamp"):
            yield word, _TIMESTAMPS.get(values[0], values[0]) if field == "timestamp" else values[0]


def _record_counts(value: object) -> Iterator[int]:
    """The numbers of records in the batches of a message."""
    if isinstance(value, Mapping):
        count = value.get("count")
        if isinstance(count, int) and "base_offset" in value:
            yield count
            return
    for each in _values_of(value):
        yield from _record_counts(each)


def _values_named(value: object, name: str) -> Iterator[int]:
    """The numbers in all fields of a name, but those of record batches."""
    if isinstance(value, Mapping):
        found = value.get(name)
        if isinstance(found, int) and "producer_epoch" not in value:
            yield found
    for each in _values_of(value):
        yield from _values_named(each, name)
