"""Transactional producers of five clients, driven alike."""

from __future__ import annotations

import asyncio
import gc
import itertools
import warnings
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from threading import Thread
from typing import Any, Final, Protocol, TypeAlias

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError as AiokafkaError
from confluent_kafka import KafkaError, KafkaException, Producer
from kafka import KafkaProducer
from kafka.errors import KafkaError as KafkaPythonError

from tests.harness.dialogue import Dialogue
from tests.harness.golang import build_program
from tests.harness.java import story_command

WAIT_S: Final = 30.0
CLIENTS: Final = ("confluent-kafka", "aiokafka", "kafka-python", "java", "franz-go")


class RefusedError(Exception):
    """What a client raised; its text is the client's own name of it."""


class Transactor(Protocol):
    """A transactional producer, which writes to partition 0.

    :raises RefusedError: From each method, when its client raises an error of its own.
    """

    def begin(self) -> None: ...
    def send(self, topic: str, value: str) -> None: ...
    def commit(self) -> None: ...
    def abort(self) -> None: ...
    def close(self) -> None: ...


Start: TypeAlias = Callable[[str, str, int], Transactor]
"""Makes a producer from bootstrap servers, a transactional id and a timeout in milliseconds."""


def starting(client: str, folder: Path) -> AbstractContextManager[Start]:
    """What starts producers of a client, one of `CLIENTS`."""
    return _STARTING[client](folder)


@contextmanager
def closing_after(start: Start) -> Iterator[Start]:
    """The same; in the end all that it has started are closed."""
    with ExitStack() as stack:

        def start_and_close(bootstrap: str, transactional_id: str, timeout_ms: int) -> Transactor:
            transactor = start(bootstrap, transactional_id, timeout_ms)
            stack.callback(transactor.close)
            return transactor

        yield start_and_close


# -- confluent-kafka ----------------------------------------------------------------------------


class _Confluent:
    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int) -> None:
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "transactional.id": transactional_id,
                "transaction.timeout.ms": timeout_ms,
                "linger.ms": 0,
                "reconnect.backoff.max.ms": 100,
                "log_level": 2,
            }
        )
        self._call(self._producer.init_transactions, WAIT_S)

    def begin(self) -> None:
        self._call(self._producer.begin_transaction)

    def send(self, topic: str, value: str) -> None:
        answers: list[KafkaError | None] = []
        self._call(
            lambda: self._producer.produce(
                topic, value, partition=0, on_delivery=lambda error, _: answers.append(error)
            )
        )
        self._call(self._producer.flush, WAIT_S)
        assert answers, "it was not delivered in time"
        if (error := answers[0]) is not None:
            raise RefusedError(error.name())

    def commit(self) -> None:
        self._call(self._producer.commit_transaction, WAIT_S)

    def abort(self) -> None:
        self._call(self._producer.abort_transaction, WAIT_S)

    def close(self) -> None:
        """It is closed when it is collected."""

    def _call(self, function: Callable[..., object], *arguments: object) -> None:
        try:
            function(*arguments)
        except KafkaException as error:
            raise RefusedError(error.args[0].name()) from error


@contextmanager
def _confluent(folder: Path) -> Iterator[Start]:
    yield _Confluent


# -- kafka-python -------------------------------------------------------------------------------


class _KafkaPython:
    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int) -> None:
        self._producer = KafkaProducer(
            bootstrap_servers=bootstrap,
            transactional_id=transactional_id,
            transaction_timeout_ms=timeout_ms,
            reconnect_backoff_max_ms=100,
        )
        self._call(self._producer.init_transactions)

    def begin(self) -> None:
        self._call(self._producer.begin_transaction)

    def send(self, topic: str, value: str) -> None:
        sent = self._producer.send(topic, value.encode(), partition=0)
        self._call(sent.get, WAIT_S)

    def commit(self) -> None:
        self._call(self._producer.commit_transaction)

    def abort(self) -> None:
        self._call(self._producer.abort_transaction)

    def close(self) -> None:
        self._producer.close(timeout=10)

    def _call(self, function: Callable[..., object], *arguments: object) -> None:
        try:
            function(*arguments)
        except KafkaPythonError as error:
            raise RefusedError(type(error).__name__) from error


@contextmanager
def _kafka_python(folder: Path) -> Iterator[Start]:
    yield _KafkaPython
    with warnings.catch_warnings():  # it leaves its sockets to the collector
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


# -- aiokafka -----------------------------------------------------------------------------------


class _Aiokafka:
    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        bootstrap: str,
        transactional_id: str,
        timeout_ms: int,
    ) -> None:
        self._loop = loop
        self._producer: Any = None
        self._run(self._start(bootstrap, transactional_id, timeout_ms))

    async def _start(self, bootstrap: str, transactional_id: str, timeout_ms: int) -> None:
        self._producer = AIOKafkaProducer(
            bootstrap_servers=bootstrap,
            transactional_id=transactional_id,
            transaction_timeout_ms=timeout_ms,
        )
        await self._producer.start()

    def begin(self) -> None:
        self._run(self._producer.begin_transaction())

    def send(self, topic: str, value: str) -> None:
        self._run(self._producer.send_and_wait(topic, value.encode(), partition=0))

    def commit(self) -> None:
        self._run(self._producer.commit_transaction())

    def abort(self) -> None:
        self._run(self._producer.abort_transaction())

    def close(self) -> None:
        self._run(self._producer.stop())

    def _run(self, work: Coroutine[Any, Any, object]) -> None:
        try:
            asyncio.run_coroutine_threadsafe(work, self._loop).result(WAIT_S)
        except AiokafkaError as error:
            raise RefusedError(type(error).__name__) from error


@contextmanager
def _aiokafka(folder: Path) -> Iterator[Start]:
    """Its loop runs on a thread, as between calls it has heartbeats and metadata to see to."""
    loop = asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever)
    thread.start()
    try:
        yield lambda *arguments: _Aiokafka(loop, *arguments)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


# -- Java and franz-go --------------------------------------------------------------------------


class _Spoken:
    """A producer in a program that does what it is told, ``java/TransactorStory.java`` or
    ``go/transactor/main.go``: a line is the producer's number, a verb and its arguments, and is
    answered by ``done`` or the name of an error.
    """

    def __init__(self, program: Dialogue, number: int, *arguments: object) -> None:
        self._program = program
        self._number = number
        self._ask("init", *arguments)

    def begin(self) -> None:
        self._ask("begin")

    def send(self, topic: str, value: str) -> None:
        self._ask("send", topic, value)

    def commit(self) -> None:
        self._ask("commit")

    def abort(self) -> None:
        self._ask("abort")

    def close(self) -> None:
        """It ends with its program."""

    def _ask(self, *words: object) -> None:
        answer = self._program.ask(" ".join(map(str, (self._number, *words))))
        if answer != "done":
            raise RefusedError(answer)


@contextmanager
def _java(folder: Path) -> Iterator[Start]:
    with _program(story_command("TransactorStory", log_level="OFF"), folder / "java.log") as start:
        yield start


@contextmanager
def _franz_go(folder: Path) -> Iterator[Start]:
    with _program([str(build_program("transactor"))], folder / "franz-go.log") as start:
        yield start


@contextmanager
def _program(command: list[str], log: Path) -> Iterator[Start]:
    numbers = itertools.count()
    with Dialogue(command, log) as program:
        program.hear_until("ready")
        yield lambda *arguments: _Spoken(program, next(numbers), *arguments)


_STARTING: Final = {
    "confluent-kafka": _confluent,
    "aiokafka": _aiokafka,
    "kafka-python": _kafka_python,
    "java": _java,
    "franz-go": _franz_go,
}
