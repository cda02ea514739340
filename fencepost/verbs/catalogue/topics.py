"""The verbs on topics and their records."""

from typing import Final

from fencepost.verbs.catalogue.verb import PARTITION, Method, Shape, Verb

TOPICS: Final[tuple[Verb, ...]] = (
    Verb(
        name="topics",
        method=Method.GET,
        path="/v1/topics",
        answer="answers.topics.TopicState",
        shape=Shape.LIST,
        command="topics",
        summary="List all topics, by name.",
    ),
    Verb(
        name="create_topic",
        method=Method.POST,
        path="/v1/topics",
        request="bodies.NewTopicBody",
        answer="answers.topics.TopicState",
        command="topic create",
        positional=("name",),
        summary="Create a topic; answers when every replica is in the ISR.",
    ),
    Verb(
        name="delete_topic",
        method=Method.DELETE,
        path="/v1/topics/{topic}",
        answer="answers.Done",
        command="topic delete",
        summary="Delete a topic; answers when no broker has it.",
    ),
    Verb(
        name="produce_records",
        method=Method.POST,
        path="/v1/topics/{topic}/records",
        request="record_bodies.ProduceBody",
        answer="answers.records.ProducedRecords",
        command="records produce",
        summary="Append records to a topic; answers when they are committed.",
    ),
    Verb(
        name="read_records",
        method=Method.GET,
        path=f"{PARTITION}/records",
        request="record_bodies.RecordsQuery",
        answer="answers.records.RecordsState",
        command="records read",
        summary="Read records of a partition, decoded.",
    ),
    Verb(
        name="expect_records",
        method=Method.POST,
        path="/v1/topics/{topic}/records/expect",
        request="record_bodies.ExpectBody",
        answer="answers.records.ExpectedRecords",
        command="records expect",
        summary="Wait until a topic has matching records; refused with the nearest ones.",
    ),
)
