"""Unmodified Python producers that say in a header what they expect (KIP-27), line by line.

    python conditional.py confluent|kafka-python|aiokafka BOOTSTRAP

``ID TOPIC [option=value]... RECORD...`` sends records at once, as one batch of each partition,
and waits for all. ID is the client id; the producer of that name is made at its first line, with
its options, and goes on with the next. A record is ``value``, or ``value@expected``; with ``1/``
before it, it is for partition 1. Options: ``idempotent=true``, ``encoding=bytes`` for 8 bytes in
place of decimal text, ``batch=one`` for a request of each record's own, some of them on their way
at once. Each line is answered with one: for each record its offset, or the error that the
application is told. java/ConditionalStory.java and go/conditional/main.go are the same with their
clients.
"""

from __future__ import annotations

import asyncio
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from aiokafka import AIOKafkaProducer
from confluent_kafka import KafkaError, Message, Producer
from kafka import KafkaProducer
from kafka.errors import KafkaError as KafkaPythonError

HEADER: Final = "expected-offset"
WAIT_S: Final = 30.0
LINGER_MS: Final = 250
"""Long enough for what is sent at once to be one batch."""

Options = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Sent:
    """A record to be sent."""

    partition: int
    value: bytes
    headers: list[tuple[str, bytes]]


def parse(words: Sequence[str]) -> tuple[str, str, Options, list[Sent]]:
    """Client id, topic, options and records of a line."""
    client_id, topic, *rest = words
    options = dict(word.split("=") for word in rest if "=" in word)
    records = [_record(word, options) for word in rest if "=" not in word]
    return client_id, topic, options, records


def _record(word: str, options: Options) -> Sent:
    partition, _, rest = word.rpartition("/")
    value, _, expected = rest.partition("@")
    headers = [(HEADER, _encoded(expected, options))] if expected else []
    return Sent(int(partition or 0), value.encode(), headers)


def _encoded(expected: str, options: Options) -> bytes:
    if options.get("encoding") == "bytes":
        return int(expected).to_bytes(8, "big", signed=True)
    return expected.encode()


class Sender(ABC):
    """A producer of one library."""

    @abstractmethod
    async def send(self, topic: str, records: Sequence[Sent]) -> list[str]:
        """Send, wait, and tell what became of each."""

    @abstractmethod
    async def close(self) -> None:
        """Let go of it."""


class Confluent(Sender):
    """confluent-kafka, which is librdkafka."""

    def __init__(self, bootstrap: str, client_id: str, options: Options) -> None:
        is_alone = options.get("batch") == "one"
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "client.id": client_id,
                "enable.idempotence": options.get("idempotent", "false"),
                "acks": "all",
                "linger.ms": 0 if is_alone else LINGER_MS,
                "batch.num.messages": 1 if is_alone else 1000,
                "log_level": 0,
            }
        )

    async def send(self, topic: str, records: Sequence[Sent]) -> list[str]:
        told = ["nothing"] * len(records)
        for at, each in enumerate(records):
            self._producer.produce(
                topic,
                each.value,
                partition=each.partition,
                headers=list(each.headers),
                on_delivery=_answered(told, at),
            )
        self._producer.flush(WAIT_S)
        return told

    async def close(self) -> None:
        self._producer.flush(WAIT_S)


def _answered(told: list[str], at: int) -> Callable[[KafkaError | None, Message], None]:
    def answered(error: KafkaError | None, message: Message) -> None:
        if error is None:
            told[at] = str(message.offset())
        else:
            told[at] = f"{error.code()} {error.name()}: {error.str()}"

    return answered


class KafkaPython(Sender):
    """kafka-python."""

    def __init__(self, bootstrap: str, client_id: str, options: Options) -> None:
        is_alone = options.get("batch") == "one"
        self._producer = KafkaProducer(
            bootstrap_servers=bootstrap,
            client_id=client_id,
            enable_idempotence=options.get("idempotent") == "true",
            acks="all",
            linger_ms=0 if is_alone else LINGER_MS,
            batch_size=0 if is_alone else 16384,
        )

    async def send(self, topic: str, records: Sequence[Sent]) -> list[str]:
        futures = [
            self._producer.send(
                topic, each.value, partition=each.partition, headers=list(each.headers)
            )
            for each in records
        ]
        told: list[str] = []
        for each in futures:
            try:
                told.append(str(each.get(timeout=WAIT_S).offset))
            except KafkaPythonError as error:
                told.append(told_of(error))
        return told

    async def close(self) -> None:
        self._producer.close()


class Aio(Sender):
    """aiokafka."""

    def __init__(self, bootstrap: str, client_id: str, options: Options) -> None:
        is_alone = options.get("batch") == "one"
        self._producer = AIOKafkaProducer(
            bootstrap_servers=bootstrap,
            client_id=client_id,
            enable_idempotence=options.get("idempotent") == "true",
            acks="all",
            # What is sent in one turn of the loop goes together as it is. To linger would part it:
            # each partition's batch does that for itself, and none waits for another.
            linger_ms=0,
            max_batch_size=1 if is_alone else 16384,
        )
        self._is_started = False

    async def send(self, topic: str, records: Sequence[Sent]) -> list[str]:
        if not self._is_started:
            self._is_started = True
            await self._producer.start()
        futures = [
            await self._producer.send(
                topic, each.value, partition=each.partition, headers=each.headers
            )
            for each in records
        ]
        done = await asyncio.gather(*futures, return_exceptions=True)
        return [told_of(e) if isinstance(e, BaseException) else str(e.offset) for e in done]

    async def close(self) -> None:
        await self._producer.stop()


def told_of(error: BaseException) -> str:
    """Its name, its code and what it says."""
    return f"{type(error).__name__} {getattr(error, 'errno', '')}: {error}"


SENDERS: Final[Mapping[str, Callable[[str, str, Options], Sender]]] = {
    "confluent": Confluent,
    "kafka-python": KafkaPython,
    "aiokafka": Aio,
}


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


async def main(library: str, bootstrap: str) -> None:
    senders: dict[str, Sender] = {}
    say("ready")
    while line := await asyncio.to_thread(sys.stdin.readline):
        client_id, topic, options, records = parse(line.split())
        if client_id not in senders:
            senders[client_id] = SENDERS[library](bootstrap, client_id, options)
        told = await senders[client_id].send(topic, records)
        say(" | ".join(told))
    for each in senders.values():
        await each.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
