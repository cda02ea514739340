"""Retries until a deadline, with growing pauses between the attempts."""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from typing import Final, Protocol, TypeVar

from fencepost.client.client import Client
from fencepost.client.errors import RETRIABLE, KafkaClientError
from fencepost.protocol.errors import error_name

_INITIAL_BACKOFF_S: Final = 0.02
_MAX_BACKOFF_S: Final = 0.5


class Deadline:
    """A deadline for an operation of several requests. It runs from its construction.

    :param deadline_s: For the whole operation.
    :param attempt_s: For one request, at most.
    """

    def __init__(self, deadline_s: float, attempt_s: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._end = self._loop.time() + deadline_s
        self._attempt_s = attempt_s
        self._next_pause_s = _INITIAL_BACKOFF_S

    @property
    def remaining_s(self) -> float:
        """Seconds until the deadline, 0 behind it."""
        return max(self._end - self._loop.time(), 0)

    @property
    def is_expired(self) -> bool:
        """Whether the deadline has passed."""
        return self.remaining_s == 0

    @property
    def attempt_timeout_s(self) -> float:
        """Seconds that a request may take now."""
        return min(self._attempt_s, self.remaining_s)

    async def backoff(self) -> None:
        """Wait before the next attempt, each time for longer."""
        await asyncio.sleep(min(self._next_pause_s, self.remaining_s))
        self._next_pause_s = min(2 * self._next_pause_s, _MAX_BACKOFF_S)


class _Answer(Protocol):
    """A broker's answer with its error code; 0 is none."""

    @property
    def error(self) -> int: ...


A = TypeVar("A", bound=_Answer)


class RetryFailed(Exception):
    """No attempt succeeded; the text says why.

    :ivar error: The code of an error that is not retriable; None where time was up.
    """

    def __init__(self, reason: str, error: int | None) -> None:
        super().__init__(reason)
        self.error = error


async def retry(
    client: Client,
    ask: Callable[[], Awaitable[A]],
    *,
    deadline_s: float,
    accepts: Callable[[A], bool] = lambda _: True,
    retriable: Collection[int] = RETRIABLE,
) -> A:
    """Make attempts until an answer has no error and is accepted, with new metadata each time.

    :param ask: One attempt. It ends by itself; at least one is made.
    :param deadline_s: How long to begin further attempts.
    :param accepts: Whether an answer without error will do.
    :param retriable: The errors after which there is another attempt.
    :raises RetryFailed: When another error is answered, or time is up.
    """
    deadline = Deadline(deadline_s, deadline_s)
    while True:
        try:
            answer = await ask()
        except KafkaClientError as error:
            reason = str(error)
        else:
            if not answer.error and accepts(answer):
                return answer
            reason = error_name(answer.error) if answer.error else "nothing is there yet"
            if answer.error and answer.error not in retriable:
                raise RetryFailed(reason, answer.error)
        if deadline.is_expired:
            raise RetryFailed(f"not within {deadline_s:g} s: {reason}", None)
        client.forget()
        await deadline.backoff()
