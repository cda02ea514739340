"""A confluent-kafka (librdkafka) consumer of partition 0 that is told what to do, line by line.

    python reader.py BOOTSTRAP TOPIC CLIENT_ID AUTO_OFFSET_RESET

``read 20`` reads so many records, ``end`` asks where the log ends; it answers each line with one.
java/ReaderStory.java is the same with the Java client.
"""

from __future__ import annotations

import sys

from confluent_kafka import OFFSET_END, Consumer, KafkaError, Message, TopicPartition

WAIT_S = 60.0


class Refused(Exception):
    """What a consumer is told in place of a record."""


def main(bootstrap: str, topic: str, client_id: str, policy: str) -> None:
    partition = TopicPartition(topic, 0, 0)
    settings: dict[str, str | bool] = {
        "bootstrap.servers": bootstrap,
        "client.id": client_id,
        "group.id": client_id,
        "auto.offset.reset": policy,
        "enable.auto.commit": False,
        "enable.partition.eof": False,
    }
    consumer = Consumer(settings)
    consumer.assign([partition])
    tell("ready")
    for line in sys.stdin:
        verb, *rest = line.split()
        if verb == "read":
            # It fetches only while it is asked to read, as the Java client does.
            consumer.resume([partition])
            tell(read(consumer, int(rest[0])))
            consumer.pause([partition])
        else:
            tell(end(settings, topic))
    consumer.close()


def tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def read(consumer: Consumer, count: int) -> str:
    try:
        first = last = following(consumer)
        for _ in range(count - 1):
            last = following(consumer)
    except Refused as refused:
        return str(refused)
    return f"{shown(first)} to {shown(last)}"


def end(settings: dict[str, str | bool], topic: str) -> str:
    """Where a consumer starts that wants only what comes.

    It asks until it is told. ``get_watermark_offsets`` would ask once, and raise what it is told.
    """
    starting = Consumer({**settings, "enable.partition.eof": True})
    starting.assign([TopicPartition(topic, 0, OFFSET_END)])
    message = starting.poll(WAIT_S)
    starting.close()
    error = None if message is None else message.error()
    if message is None or error is None or error.code() != KafkaError._PARTITION_EOF:
        return f"no end, but {error}"
    return f"ends at {message.offset()}"


def following(consumer: Consumer) -> Message:
    message = consumer.poll(WAIT_S)
    if message is None:
        raise Refused("no record")
    error = message.error()
    if error is not None:
        raise Refused(f"{error.name()}: {error.str()}")
    return message


def shown(message: Message) -> str:
    return f"{(message.value() or b'').decode()} at {message.offset()}"


if __name__ == "__main__":
    main(*sys.argv[1:])
