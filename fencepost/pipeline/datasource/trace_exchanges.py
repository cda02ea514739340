"""What a line of a trace says of each partition: a row of `TRACES` each.

The fields of a message are those of its version. What was asked and what was answered is brought
together by topic, or topic id, and partition.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

Json: TypeAlias = Mapping[str, Any]
Row: TypeAlias = dict[str, object]
"""Columns of `TRACES`; what is not in it is null."""

CLIENT_REPLICA_ID: Final = -1
_UNKNOWN: Final = -1


def exchange_rows(line: Json) -> Iterator[Row]:
    """The rows of one exchange, without what they share."""
    read = _APIS.get(line["api"])
    if read is None:
        error = (line["response"] or {}).get("error_code")
        yield {"error": error}
        return
    yield from read(line["request"], line["response"])


def replica_id(line: Json) -> int:
    """Who asks: a follower, or -1 for a client."""
    request = line["request"]
    state = request.get("replica_state")
    found = request.get("replica_id", CLIENT_REPLICA_ID) if state is None else state["replica_id"]
    return int(found)


# -- records ------------------------------------------------------------------------------------


def _produce(request: Json, response: Json | None) -> Iterator[Row]:
    answers = _partitions(response, "responses", "partition_responses", "index")
    for key, asked in _partitions(request, "topic_data", "partition_data", "index").items():
        yield {
            **_partition_columns(key),
            **_response_columns(answers.get(key), response, offset="base_offset"),
            **_records(asked.get("records")),
            "acks": request["acks"],
        }


def _fetch(request: Json, response: Json | None) -> Iterator[Row]:
    asked = _partitions(request, "topics", "partitions", "partition")
    answers = _partitions(response, "responses", "partitions", "partition_index")
    refused = 0 if response is None else response.get("error_code", 0)
    session = (response or {}).get("session_id") or request.get("session_id") or None
    for key in {**asked, **answers}:
        answer = answers.get(key)
        row: Row = {
            **_partition_columns(key),
            "isolation_level": request["isolation_level"],
            "session_id": session,
            **_asked_by_fetch(asked.get(key)),
        }
        if answer is not None:
            row |= _answered_by_fetch(answer)
        elif response is not None:  # of a session whose partition has no news, or is refused
            row["error"] = refused
        yield row


def _asked_by_fetch(asked: Json | None) -> Row:
    if asked is None:
        return {}
    return {
        "fetch_offset": asked["fetch_offset"],
        "current_leader_epoch": asked.get("current_leader_epoch", _UNKNOWN),
        "asked_epoch": asked.get("last_fetched_epoch", _UNKNOWN),
    }


def _answered_by_fetch(answer: Json) -> Row:
    diverging = answer.get("diverging_epoch")
    parted = diverging is not None and diverging["epoch"] >= 0
    return {
        "error": answer["error_code"],
        "high_watermark": answer["high_watermark"],
        "log_start_offset": answer.get("log_start_offset"),
        "offset": diverging["end_offset"] if diverging is not None and parted else None,
        "epoch": diverging["epoch"] if diverging is not None and parted else None,
        **_records(answer.get("records")),
    }


def _records(summary: Json | None) -> Row:
    if summary is None:
        return {"bytes": 0, "batches": []}
    return {
        "bytes": summary["bytes"],
        "batches": [_batch(each) for each in summary["batches"]],
    }


def _batch(batch: Json) -> Row:
    return {
        "base_offset": batch["base_offset"],
        "last_offset": batch["last_offset"],
        "count": batch["count"],
        "size": batch["bytes"],
        "epoch": batch["epoch"],
        "crc": batch.get("crc"),
        "producer_id": batch["producer_id"],
        "producer_epoch": batch["producer_epoch"],
        "base_sequence": batch["base_sequence"],
        "expected_offset": batch.get("expected_offset"),
    }


# -- offsets and epochs -------------------------------------------------------------------------


def _list_offsets(request: Json, response: Json | None) -> Iterator[Row]:
    answers = _partitions(response, "topics", "partitions", "partition_index")
    for key, asked in _partitions(request, "topics", "partitions", "partition_index").items():
        yield {
            **_partition_columns(key),
            **_response_columns(answers.get(key), response, offset="offset", epoch="leader_epoch"),
            "timestamp": asked["timestamp"],
            "current_leader_epoch": asked.get("current_leader_epoch", _UNKNOWN),
            "isolation_level": request.get("isolation_level", 0),
        }


def _offset_for_leader_epoch(request: Json, response: Json | None) -> Iterator[Row]:
    answers = _partitions(response, "topics", "partitions", "partition")
    for key, asked in _partitions(request, "topics", "partitions", "partition").items():
        yield {
            **_partition_columns(key),
            **_response_columns(
                answers.get(key), response, offset="end_offset", epoch="leader_epoch"
            ),
            "asked_epoch": asked["leader_epoch"],
            "current_leader_epoch": asked.get("current_leader_epoch", _UNKNOWN),
        }


def _delete_records(request: Json, response: Json | None) -> Iterator[Row]:
    answers = _partitions(response, "topics", "partitions", "partition_index")
    for key, asked in _partitions(request, "topics", "partitions", "partition_index").items():
        answer = answers.get(key)
        yield {
            **_partition_columns(key),
            **_response_columns(answer, response),
            "offset": asked["offset"],
            "log_start_offset": None if answer is None else answer["low_watermark"],
        }


# -- groups -------------------------------------------------------------------------------------


def _offset_commit(request: Json, response: Json | None) -> Iterator[Row]:
    answers = _partitions(response, "topics", "partitions", "partition_index")
    for key, asked in _partitions(request, "topics", "partitions", "partition_index").items():
        yield {
            **_partition_columns(key),
            **_response_columns(answers.get(key), response),
            "group": request["group_id"],
            "offset": asked["committed_offset"],
            "epoch": asked.get("committed_leader_epoch", _UNKNOWN),
        }


def _offset_fetch(request: Json, response: Json | None) -> Iterator[Row]:
    if "groups" not in request:
        yield from _fetched_of_group(request["group_id"], response)
        return
    for group in (response or {}).get("groups", ()):
        yield from _fetched_of_group(group["group_id"], group)


def _fetched_of_group(group: str, answer: Json | None) -> Iterator[Row]:
    """What was answered; where nothing was, there is nothing to tell."""
    refused = (answer or {}).get("error_code", 0)
    for key, each in _partitions(answer, "topics", "partitions", "partition_index").items():
        yield {
            **_partition_columns(key),
            "group": group,
            "error": refused or each["error_code"],
            "offset": each["committed_offset"],
            "epoch": each.get("committed_leader_epoch", _UNKNOWN),
        }


def _offset_delete(request: Json, response: Json | None) -> Iterator[Row]:
    answers = _partitions(response, "topics", "partitions", "partition_index")
    for key in _partitions(request, "topics", "partitions", "partition_index"):
        yield {
            **_partition_columns(key),
            **_response_columns(answers.get(key), response),
            "group": request["group_id"],
        }


def _delete_groups(request: Json, response: Json | None) -> Iterator[Row]:
    codes = {each["group_id"]: each["error_code"] for each in (response or {}).get("results", ())}
    for group in request["groups_names"]:
        yield {"group": group, "error": codes.get(group)}


# -- what messages have in common ---------------------------------------------------------------

_Key: TypeAlias = tuple[str | None, str | None, int]
"""A topic's name or its id, and a partition."""


def _partitions(
    message: Json | None, topics: str, partitions: str, index: str
) -> dict[_Key, Mapping[str, Any]]:
    return {
        (topic.get("topic", topic.get("name")), topic.get("topic_id"), each[index]): each
        for topic in (message or {}).get(topics) or ()
        for each in topic[partitions]
    }


def _partition_columns(key: _Key) -> Row:
    return {"topic": key[0], "topic_id": key[1], "partition": key[2]}


def _response_columns(
    answer: Json | None,
    response: Json | None,
    *,
    offset: str | None = None,
    epoch: str | None = None,
) -> Row:
    """The error, and what else is asked for of an answer.

    :param response: All of it; an error that is about all of it stands there.
    """
    if answer is None:
        return {"error": (response or {}).get("error_code")}
    row: Row = {"error": answer["error_code"], "log_start_offset": answer.get("log_start_offset")}
    if offset is not None:
        row["offset"] = answer[offset]
    if epoch is not None:
        row["epoch"] = answer.get(epoch, _UNKNOWN)
    return row


_APIS: Final[Mapping[str, Callable[[Json, Json | None], Iterator[Row]]]] = {
    "Produce": _produce,
    "Fetch": _fetch,
    "ListOffsets": _list_offsets,
    "OffsetForLeaderEpoch": _offset_for_leader_epoch,
    "OffsetCommit": _offset_commit,
    "TxnOffsetCommit": _offset_commit,
    "OffsetFetch": _offset_fetch,
    "OffsetDelete": _offset_delete,
    "DeleteGroups": _delete_groups,
    "DeleteRecords": _delete_records,
}
"""Requests that are about partitions or groups. Of any other there is one row."""
