"""A confluent-kafka (librdkafka) consumer of partition 0 that is told what to do, line by line.

    python reader.py BOOTSTRAP TOPIC CLIENT_ID AUTO_OFFSET_RESET [GROUP [seek]]

``read 20`` reads so many records, ``end`` asks where the log ends, ``commit`` commits what was
read; it answers each line with one. With a group it is a member of it. With ``seek`` it seeks what
the group has committed. java/ReaderStory.java is the same with the Java client.
"""

from __future__ import annotations

import sys
from typing import Final

from confluent_kafka import OFFSET_END, Consumer, KafkaError, Message, TopicPartition

WAIT_S: Final = 60.0


class Refused(Exception):
    """What a consumer is told in place of a record."""


class Reader:
    """A consumer of the partition alone.

    :param settings: What librdkafka is configured with.
    """

    def __init__(self, settings: dict[str, str | bool], topic: str) -> None:
        self._settings = settings
        self._topic = topic
        self._consumer = Consumer(settings)

    def assign(self) -> None:
        """Begin at offset 0."""
        self._consumer.assign([TopicPartition(self._topic, 0, 0)])

    def subscribe(self) -> None:
        """Begin, as a member of the group, where it has committed."""
        self._consumer.subscribe([self._topic])

    def subscribe_and_seek(self) -> None:
        """Begin there as well, and have the committed leader epoch checked.

        librdkafka checks the epoch of a position that is sought, and not of one at which an
        assignment begins (its issue 5158). The assignment begins at offset 0, then, whose records
        the seek discards: a fetch at the committed offset could be refused before the seek.
        """

        def seek(consumer: Consumer, partitions: list[TopicPartition]) -> None:
            found = consumer.committed(partitions, WAIT_S)
            committed = [each for each in found if each.offset >= 0]
            consumer.assign(
                [TopicPartition(each.topic, each.partition, 0) for each in committed]
                + [each for each in found if each.offset < 0]
            )
            for each in committed:
                consumer.seek(each)

        self._consumer.subscribe([self._topic], on_assign=seek)

    def do(self, verb: str, *arguments: str) -> str:
        match verb:
            case "read":
                return self._read(int(arguments[0]))
            case "commit":
                self._consumer.commit(asynchronous=False)
                (found,) = self._consumer.committed([TopicPartition(self._topic, 0)], WAIT_S)
                epoch: int | None = found.leader_epoch
                return f"committed {found.offset}, epoch {-1 if epoch is None else epoch}"
            case _:
                return end(self._settings, self._topic)

    def close(self) -> None:
        self._consumer.close()

    def _read(self, count: int) -> str:
        # It fetches only while it is asked to read, as the Java client does.
        self._consumer.resume(self._consumer.assignment())
        try:
            first = last = self._next()
            for _ in range(count - 1):
                last = self._next()
        except Refused as refused:
            return str(refused)
        finally:
            self._consumer.pause(self._consumer.assignment())
        return f"{shown(first)} to {shown(last)}"

    def _next(self) -> Message:
        message = self._consumer.poll(WAIT_S)
        if message is None:
            raise Refused("no record")
        error = message.error()
        if error is not None:
            raise Refused(f"{error.name()}: {error.str()}")
        return message


def main(bootstrap: str, topic: str, client_id: str, policy: str, *member: str) -> None:
    group, *seeks = member or (client_id,)
    settings: dict[str, str | bool] = {
        "bootstrap.servers": bootstrap,
        "client.id": client_id,
        "group.id": group,
        "auto.offset.reset": policy,
        "enable.auto.commit": False,
        "enable.partition.eof": False,
    }
    reader = Reader(settings, topic)
    if seeks:
        reader.subscribe_and_seek()
    elif member:
        reader.subscribe()
    else:
        reader.assign()
    tell("ready")
    for line in sys.stdin:
        tell(reader.do(*line.split()))
    reader.close()


def tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


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


def shown(message: Message) -> str:
    return f"{(message.value() or b'').decode()} at {message.offset()}"


if __name__ == "__main__":
    main(*sys.argv[1:])
