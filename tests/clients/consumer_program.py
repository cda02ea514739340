"""Consumers of partition 0 that are told what to do: `fencepost.client.Consumer` in a process.

A line is a consumer's name, a verb and its arguments; it is answered by one line. The Java consumer
does the same by tests/clients/java/ConsumerStory.java. Arguments: bootstrap servers and topic.
"""

from __future__ import annotations

import asyncio
import sys

from fencepost.client import (
    Consumer,
    ConsumerRecord,
    LogTruncationError,
    NoOffsetForPartitionError,
    OffsetAndMetadata,
    OffsetOutOfRangeError,
    Partition,
)

WAIT_S = 30.0


class Program:
    """The consumers by their names."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._bootstrap = bootstrap
        self._partition = Partition(topic=topic, index=0)
        self._consumers: dict[str, Consumer] = {}

    async def answer(self, line: str) -> str:
        name, verb, *arguments = line.split()
        try:
            return await self._obey(name, verb, arguments)
        except LogTruncationError as error:
            diverged = error.divergent_offsets.get(self._partition)
            at = error.offsets[self._partition]
            return f"truncated at {at}, diverges at {show_offset(diverged)}"
        except OffsetOutOfRangeError as error:
            return f"out of range at {error.offsets[self._partition]}"
        except NoOffsetForPartitionError:
            return "no offset"

    async def _obey(self, name: str, verb: str, arguments: list[str]) -> str:
        if verb == "new":
            self._consumers[name] = self._make(name, *arguments)
            return "done"
        consumer, partition = self._consumers[name], self._partition
        match verb, [int(each) for each in arguments]:
            case "seek", [offset, *epoch]:
                consumer.seek(partition, offset, leader_epoch=epoch[0] if epoch else None)
                return "done"
            case "read", [count]:
                return await read(consumer, count)
            case "position", []:
                return f"at {(await consumer.position(partition, timeout_s=WAIT_S)).offset}"
            case "commit", []:
                await consumer.commit(timeout_s=WAIT_S)
                return show_offset((await consumer.committed([partition]))[partition])
            case "time", [timestamp]:
                found = (await consumer.offsets_for_times({partition: timestamp}))[partition]
                if found is None:
                    return "nothing"
                return f"{found.offset}, epoch {show_epoch(found.leader_epoch)}"
            case "ends", []:
                start = await consumer.beginning_offsets([partition])
                end = await consumer.end_offsets([partition])
                return f"{start[partition]} to {end[partition]}"
        raise ValueError(verb)

    def _make(self, name: str, policy: str, group: str | None = None) -> Consumer:
        made = Consumer(
            self._bootstrap,
            client_id=name,
            group_id=group,
            auto_offset_reset=policy,
            max_poll_records=1,
            metadata_max_age_ms=500,
            request_timeout_ms=2_000,
        )
        made.assign([self._partition])
        return made

    async def close(self) -> None:
        for each in self._consumers.values():
            await each.close()


async def read(consumer: Consumer, count: int) -> str:
    first = last = await next_record(consumer)
    for _ in range(count - 1):
        last = await next_record(consumer)
    return f"{show_record(first)} to {show_record(last)}"


async def next_record(consumer: Consumer) -> ConsumerRecord:
    for record in await consumer.poll(timeout_s=WAIT_S):
        return record
    raise AssertionError(f"no record within {WAIT_S:g} s")


def show_record(record: ConsumerRecord) -> str:
    value = (record.value or b"").decode()
    return f"{value} at {record.offset}, epoch {show_epoch(record.leader_epoch)}"


def show_offset(offset: OffsetAndMetadata | None) -> str:
    if offset is None:
        return "nothing"
    return f"{offset.offset}, epoch {show_epoch(offset.leader_epoch)}"


def show_epoch(epoch: int | None) -> int:
    return -1 if epoch is None else epoch


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


async def main() -> None:
    program = Program(*sys.argv[1:])
    say("ready")
    while line := await asyncio.to_thread(sys.stdin.readline):
        say(await program.answer(line))
    await program.close()


if __name__ == "__main__":
    asyncio.run(main())
