"""Work on the object store that consists of several operations, written as a generator.

The generator yields each operation (`put`, `get`, ... with ``yield from``) and continues with its
result. An `AsyncTask` runs a generator, and can stop it between two operations: the result of an
operation that is under way is ignored then.
"""

from collections.abc import Callable, Generator, Iterable, Sequence
from functools import partial
from typing import Final, Generic, TypeAlias, TypeVar

from fencepost.protocol.byte_utils import Buffer
from fencepost.storage.tier.object_store import ObjectStore, TierError

T = TypeVar("T")
OnAnswer: TypeAlias = Callable[[object], None]
StartOperation: TypeAlias = Callable[[OnAnswer], None]
"""Starts an operation of the store, which calls back with its result later."""
AsyncSteps: TypeAlias = Generator[StartOperation, object, T]

OnDone: TypeAlias = Callable[[TierError | None], None]
"""Called when work is done, with the error if it failed."""

_MAX_PARALLEL_READS: Final = 32
"""Objects that are read at the same time."""


class AsyncTask(Generic[T]):
    """A generator that is run.

    :param done: Called with the generator's value, or with the error that ended it. Not called when
        the task is stopped.
    """

    def __init__(self, steps: AsyncSteps[T], done: Callable[[T | TierError], None]) -> None:
        self._steps: AsyncSteps[T] | None = steps
        self._done = done
        self._running = False
        """Whether the generator is running now."""

    def start(self) -> None:
        """Run the generator up to its first operation."""
        self._resume(None)

    def stop(self) -> None:
        """Run no further; harmless where the generator has ended."""
        steps, self._steps = self._steps, None
        if steps is not None and not self._running:
            steps.close()

    def _resume(self, answer: object) -> None:
        steps = self._steps
        if steps is None:
            return
        self._running = True
        try:
            ask = steps.throw(answer) if isinstance(answer, TierError) else steps.send(answer)
        except StopIteration as stop:
            self._end(stop.value)
        except TierError as error:
            # With its traceback it would keep this frame in memory, which has it as the answer.
            self._end(error.with_traceback(None))
        else:
            if self._steps is None:  # what the step did has stopped it
                steps.close()
            else:
                ask(self._resume)
        finally:
            self._running = False

    def _end(self, result: T | TierError) -> None:
        steps, self._steps = self._steps, None
        if steps is not None:
            self._done(result)


def put(store: ObjectStore, key: str, buffers: Iterable[Buffer]) -> AsyncSteps[None]:
    """Write an object.

    :raises TierError: When it can't be.
    """
    yield partial(store.put, key, buffers)


def get(store: ObjectStore, key: str, start: int = 0, end: int | None = None) -> AsyncSteps[bytes]:
    """Read an object's bytes from `start` (inclusive) to `end` (exclusive).

    :raises TierError: When it can't be.
    """
    data = yield partial(store.get, key, start, end)
    assert isinstance(data, bytes)
    return data


def get_each(store: ObjectStore, keys: Sequence[str]) -> AsyncSteps[list[bytes | None]]:
    """Read objects whole, some at a time; None for each that is not there.

    :raises TierError: When one of them can't be read.
    """
    found: list[bytes | None] = []
    for first in range(0, len(keys), _MAX_PARALLEL_READS):
        answers = yield partial(_get_some, store, keys[first : first + _MAX_PARALLEL_READS])
        assert isinstance(answers, list)
        for answer in answers:
            if not isinstance(answer, TierError):
                found.append(answer)
            elif answer.missing:
                found.append(None)
            else:
                try:
                    raise answer
                finally:
                    del answer, answers  # as the error's traceback keeps this frame in memory
    return found


def _get_some(store: ObjectStore, keys: Sequence[str], done: OnAnswer) -> None:
    answers: dict[str, bytes | TierError] = {}

    def take(key: str, answer: bytes | TierError) -> None:
        answers[key] = answer
        if len(answers) == len(keys):
            done([answers[each] for each in keys])

    for key in keys:
        store.get(key, 0, None, partial(take, key))


def delete(store: ObjectStore, keys: Sequence[str]) -> AsyncSteps[None]:
    """Delete objects, which may be gone already.

    :raises TierError: When one of them can't be.
    """
    yield partial(store.delete, keys)


def list_keys(store: ObjectStore, prefix: str) -> AsyncSteps[list[str]]:
    """The keys that begin with a prefix, in order.

    :raises TierError: When the store does not say.
    """
    keys = yield partial(store.list, prefix)
    assert isinstance(keys, list)
    return keys
