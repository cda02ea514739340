"""An application on quixstreams that counts words; word_count.py says how it is talked to.

Arguments: bootstrap servers, source, target, name, directory of its state.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from threading import Event, Semaphore, Thread

from quixstreams import Application, State  # type: ignore[import-not-found]  # in packages of its own

BOOTSTRAP, SOURCE, TARGET, NAME, DIRECTORY = sys.argv[1:]
COMMON = {
    # Both for the reasons in copier.py.
    "topic.metadata.refresh.interval.ms": 2000,
    "connections.max.idle.ms": 1000,
}
allowed = Semaphore(0)


def main() -> None:
    """Run it, and run it again after an error, as it would be deployed."""
    ended = Event()
    running: list[Application] = []
    Thread(target=read, args=(running, ended), daemon=True).start()
    while not ended.is_set():
        running[:] = [counter()]
        try:
            running[0].run()
        except Exception:  # noqa: BLE001  # each is its last
            traceback.print_exc()


def counter() -> Application:
    application = Application(
        BOOTSTRAP,
        consumer_group=NAME,
        auto_offset_reset="earliest",
        commit_interval=0.05,
        consumer_poll_timeout=0.02,
        consumer_extra_config={**COMMON, "group.instance.id": NAME},
        producer_extra_config={
            **COMMON,
            "transactional.id": NAME,
            "transaction.timeout.ms": 10_000,  # as Kafka Streams has it
            "message.timeout.ms": 10_000,
            "linger.ms": 0,
        },
        processing_guarantee="exactly-once",
        state_dir=DIRECTORY,
        loglevel="WARNING",
    )
    source = application.topic(SOURCE, value_deserializer="string")
    target = application.topic(TARGET, value_serializer="string")
    frame = application.dataframe(source)
    frame = frame.apply(str.split, expand=True).group_by(str, name="word")
    frame.apply(count, stateful=True).to_topic(target)
    return application


def read(running: Sequence[Application], ended: Event) -> None:
    for line in sys.stdin:
        allowed.release(int(line.split()[1]))
    ended.set()
    for application in running:
        application.stop()


def count(word: str, state: State) -> str:
    if not allowed.acquire(blocking=False):
        sys.stdout.write("waits\n")
        sys.stdout.flush()
        allowed.acquire()
    number = state.get("count", 0) + 1
    state.set("count", number)
    return f"{word} {number}"


main()
