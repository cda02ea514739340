"""The verbs on topics and their records."""

from typing import Final

from fencepost.verbs import bodies, record_bodies
from fencepost.verbs.answers import Done
from fencepost.verbs.answers.records import ExpectedRecords, ProducedRecords, RecordsState
from fencepost.verbs.answers.topics import TopicState
from fencepost.verbs.catalogue.verb import PARTITION, Method, Shape, Verb

TOPICS: Final[tuple[Verb, ...]] = (
    Verb(
        name="topics",
        method=Method.GET,
        path="/v1/topics",
        response_model=TopicState,
        shape=Shape.LIST,
        command="topics",
        summary="List all topics, by name.",
    ),
    Verb(
        name="create_topic",
        method=Method.POST,
        path="/v1/topics",
        request_model=bodies.NewTopicBody,
        response_model=TopicState,
        command="topic create",
        positional=("name",),
        summary="Create a topic; answers when every replica is in the ISR.",
    ),
    Verb(
        name="delete_topic",
        method=Method.DELETE,
        path="/v1/topics/{topic}",
        response_model=Done,
        command="topic delete",
        summary="Delete a topic; answers when no broker has it.",
    ),
    Verb(
        name="produce_records",
        method=Method.POST,
        path="/v1/topics/{topic}/records",
        request_model=record_bodies.ProduceBody,
        response_model=ProducedRecords,
        command="records produce",
        summary="Append records to a topic; answers when they are committed.",
    ),
    Verb(
        name="read_records",
        method=Method.GET,
        path=f"{PARTITION}/records",
        request_model=record_bodies.RecordsQuery,
        response_model=RecordsState,
        command="records read",
        summary="Read records of a partition, decoded.",
    ),
    Verb(
        name="expect_records",
        method=Method.POST,
        path="/v1/topics/{topic}/records/expect",
        request_model=record_bodies.ExpectBody,
        response_model=ExpectedRecords,
        command="records expect",
        summary="Wait until a topic has matching records; refused with the nearest ones.",
    ),
)
