"""Requests about configs with the answers of a real Kafka, and how both are recorded.

A question is a list: the kind, whether it only validates, the resources as (type, name, configs),
where a config is (name, operation, value); "describe" with (type, name, keys); or "list" with a
version of ListConfigResources and types. It is asked of broker 1 of a cluster that has the topics
t1 and t2, t1 with segment.bytes=2000000.

``answers.jsonl`` holds the questions about topics and brokers, and ``resource_answers.jsonl`` those
about groups and client metrics, with the answers of Apache Kafka 4.3.1, one node, a line each.
``python -m tests.broker.configs.recorded_answers HOST:PORT`` sends all of them to a fresh broker
and writes the files again. ``differences.jsonl`` has fencepost's answers that differ, and why.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, TypeAlias

from fencepost.protocol.messages import (
    alter_configs,
    create_topics,
    describe_configs,
    incremental_alter_configs,
    list_config_resources,
)
from tests.harness.typed_client import BlockingClient

Message: TypeAlias = Any
"""A request or response of any API."""
Question: TypeAlias = list[Any]
Answer: TypeAlias = list[Any]
Ask = Callable[[str, int, Message], Message]
"""Sends a request of an API in a version and gives back the decoded answer."""

ANSWERS = [Path(__file__).with_name(name) for name in ("answers.jsonl", "resource_answers.jsonl")]
TOPICS = {"t1": {"segment.bytes": "2000000"}, "t2": {}}
DIFFERENCES = Path(__file__).with_name("differences.jsonl")
_PLACES = ("log.dirs",)
"""Configs whose values say where a real broker keeps its files: not kept."""
_SOMEWHERE = "somewhere"


def recorded() -> list[tuple[Question, Answer]]:
    """Every question with the answer of a real Kafka, in the order they were sent."""
    return [row for path in ANSWERS for row in _rows(path)]


def _rows(path: Path) -> list[tuple[Question, Answer]]:
    return [tuple(json.loads(line)) for line in path.read_text().splitlines()]


def ask(send: Ask, question: Question) -> Answer:
    kind, *rest = question
    if kind == "describe":
        return _describe(send, *rest)
    if kind == "list":
        return _list(send, *rest)
    return _alter(send, kind, *rest)


def differences() -> dict[str, Answer]:
    """Answers of fencepost that differ on purpose, by question as JSON."""
    rows = [json.loads(line) for line in DIFFERENCES.read_text().splitlines()]
    return {json.dumps(row["question"]): row["fencepost"] for row in rows}


def create_topics_request() -> create_topics.CreateTopicsRequest:
    return create_topics.CreateTopicsRequest(
        topics=tuple(
            create_topics.CreatableTopic(
                name=name,
                num_partitions=1,
                replication_factor=1,
                configs=tuple(
                    create_topics.CreatableTopicConfig(name=key, value=value)
                    for key, value in configs.items()
                ),
            )
            for name, configs in TOPICS.items()
        ),
        timeout_ms=10_000,
    )


def _describe(send: Ask, resources: list[list[Any]]) -> Answer:
    request = describe_configs.DescribeConfigsRequest(
        resources=tuple(
            describe_configs.DescribeConfigsResource(
                resource_type=kind,
                resource_name=name,
                configuration_keys=None if keys is None else tuple(keys),
            )
            for kind, name, keys in resources
        ),
        include_synonyms=True,
    )
    return [
        [result.error_code, result.error_message, sorted(map(_entry, result.configs))]
        for result in send("describe_configs", 4, request).results
    ]


def _list(send: Ask, version: int, types: list[int]) -> Answer:
    request = list_config_resources.ListConfigResourcesRequest(resource_types=tuple(types))
    response = send("list_config_resources", version, request)
    found = [[each.resource_type, each.resource_name] for each in response.config_resources]
    return [response.error_code, sorted(found)]


def _entry(entry: describe_configs.DescribeConfigsResourceResult) -> list[Any]:
    synonyms = [[s.name, _kept(s.name, s.value), s.source] for s in entry.synonyms]
    return [
        entry.name,
        _kept(entry.name, entry.value),
        "read-only" if entry.read_only else "",
        entry.config_source,
        "sensitive" if entry.is_sensitive else "",
        entry.config_type,
        synonyms,
    ]


def _kept(name: str, value: str | None) -> str | None:
    return _SOMEWHERE if name in _PLACES and value is not None else value


def _alter(send: Ask, kind: str, validate_only: bool, resources: list[list[Any]]) -> Answer:
    if kind == "alter":
        response = send("alter_configs", 2, _alter_request(validate_only, resources))
    else:
        response = send(
            "incremental_alter_configs", 1, _incremental_request(validate_only, resources)
        )
    return [[each.error_code, each.error_message] for each in response.responses]


def _alter_request(
    validate_only: bool, resources: list[list[Any]]
) -> alter_configs.AlterConfigsRequest:
    return alter_configs.AlterConfigsRequest(
        resources=tuple(
            alter_configs.AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=tuple(
                    alter_configs.AlterableConfig(name=key, value=value)
                    for key, _, value in configs
                ),
            )
            for kind, name, configs in resources
        ),
        validate_only=validate_only,
    )


def _incremental_request(
    validate_only: bool, resources: list[list[Any]]
) -> incremental_alter_configs.IncrementalAlterConfigsRequest:
    return incremental_alter_configs.IncrementalAlterConfigsRequest(
        resources=tuple(
            incremental_alter_configs.AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=tuple(
                    incremental_alter_configs.AlterableConfig(
                        name=key, config_operation=operation, value=value
                    )
                    for key, operation, value in configs
                ),
            )
            for kind, name, configs in resources
        ),
        validate_only=validate_only,
    )


def record(address: str) -> None:
    host, _, port = address.rpartition(":")
    with closing(BlockingClient((host, int(port)), "recorder")) as client:
        send = client.ask
        send("create_topics", 7, create_topics_request())
        time.sleep(1)
        for path in ANSWERS:
            lines = [
                json.dumps([question, _settled(send, question)]) for question, _ in _rows(path)
            ]
            path.write_text("\n".join(lines) + "\n")


def _settled(send: Ask, question: Question) -> Answer:
    answer = ask(send, question)
    if question[0] in ("alter", "incremental") and not question[1]:
        time.sleep(0.5)  # until the change has come back from the controller
    return answer


if __name__ == "__main__":
    record(sys.argv[1])
