"""A confluent-kafka (librdkafka) client that does what it is told, line by line.

    python worker.py BOOTSTRAP

``produce ID TOPIC a,b [option=value]...`` sends records to partition 0, one after the other;
``consume ID TOPIC COUNT`` reads partition 0 from its beginning; ``member ID TOPIC COUNT GROUP``
reads as a member of a group and commits. ID is the client id. Each line is answered with one: all
that the application was told, in order: offsets, values, errors. java/WorkerStory.java and
go/worker/main.go are the same with their clients.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.error import ConsumeError

Settings = dict[str, object]

WAIT_S = 30.0


class Worker:
    """Carries lines out."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap

    def carry_out(self, line: str) -> str:
        verb, client_id, topic, what, *rest = line.split()
        options = dict(each.split("=") for each in rest if "=" in each)
        if verb == "produce":
            told = self._produce(client_id, topic, what.split(","), options)
        elif verb == "consume":
            told = self._consume(client_id, topic, int(what), options)
        else:
            told = self._member(client_id, topic, int(what), rest[0], options)
        return "; ".join(told)

    def _settings(self, client_id: str, options: dict[str, str]) -> Settings:
        return {
            "bootstrap.servers": self._bootstrap,
            "client.id": client_id,
            "socket.timeout.ms": int(options.get("request_ms", 5000)),
            "retry.backoff.ms": 20,
            "reconnect.backoff.ms": 20,
            "topic.metadata.refresh.interval.ms": int(options.get("refresh_ms", 300_000)),
            "log_level": 2,
        }

    def _produce(
        self, client_id: str, topic: str, values: list[str], options: dict[str, str]
    ) -> Iterator[str]:
        throttled = [0.0]
        producer = Producer(
            {
                **self._settings(client_id, options),
                "enable.idempotence": options.get("idempotent", "true") == "true",
                "acks": int(options.get("acks", -1)),
                "message.timeout.ms": int(options.get("delivery_ms", 20_000)),
                "linger.ms": 0,
                "throttle_cb": lambda event: throttled.append(event.throttle_time),
            }
        )
        for value in values:
            told: list[str] = []
            try:
                producer.produce(topic, value, partition=0, on_delivery=_answered(told))
                producer.flush(WAIT_S)
                if told == ["_PURGE_QUEUE"]:
                    # It is given back for a fatal error, which is raised apart from it.
                    producer.poll(WAIT_S)
            except KafkaException as error:
                told.append(error.args[0].name())
            except SystemError as error:
                # The fatal error was there already when `_answered` was called.
                assert isinstance(error.__cause__, KafkaException)
                told.append(error.__cause__.args[0].name())
            yield told[-1] if told else "nothing"
        if max(throttled):
            yield f"throttled {round(max(throttled) * 1000)}"

    def _consume(
        self, client_id: str, topic: str, count: int, options: dict[str, str]
    ) -> Iterator[str]:
        consumer = self._consumer(client_id, "absent", options)
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        yield from _read(consumer, count, int(options.get("errors", 1)))
        consumer.close()

    def _member(
        self, client_id: str, topic: str, count: int, group: str, options: dict[str, str]
    ) -> Iterator[str]:
        consumer = self._consumer(client_id, group, options)
        consumer.subscribe([topic])
        told = list(_read(consumer, count, int(options.get("errors", 1))))
        if len(told) >= count:
            try:
                consumer.commit(asynchronous=False)
                told.append("committed")
            except KafkaException as error:
                told.append(error.args[0].name())
        consumer.close()
        yield from told

    def _consumer(self, client_id: str, group: str, options: dict[str, str]) -> Consumer:
        return Consumer(
            {
                **self._settings(client_id, options),
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "fetch.wait.max.ms": 100,
                "fetch.error.backoff.ms": 20,
                "heartbeat.interval.ms": 100,
                "check.crcs": options.get("crc", "true") == "true",
            }
        )


def _answered(told: list[str]) -> Callable[[KafkaError | None, Message], None]:
    def answered(error: KafkaError | None, message: Message) -> None:
        told.append(f"{message.offset()}" if error is None else error.name())

    return answered


def _read(consumer: Consumer, count: int, errors: int) -> Iterator[str]:
    deadline = time.monotonic() + WAIT_S
    while count > 0 and errors > 0:
        if time.monotonic() > deadline:
            yield "nothing"
            return
        message = consumer.poll(1.0)
        if message is None:
            continue
        error = message.error()
        if error is None:
            count -= 1
            yield (message.value() or b"").decode()
        else:
            errors -= 1
            yield error.name()


def main(bootstrap: str) -> None:
    worker = Worker(bootstrap)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    for line in sys.stdin:
        try:
            answer = worker.carry_out(line)
        except (ConsumeError, KafkaException) as error:
            answer = f"raised {error.args[0].name()}"
        sys.stdout.write(f"{answer}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
