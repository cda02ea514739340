"""How long to go on: a deadline, the time of one attempt, pauses that grow.

A question that is asked until it is answered.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from typing import Final, Protocol, TypeVar

from fencepost.client.client import Client
from fencepost.client.errors import RETRIABLE, KafkaClientError
from fencepost.protocol.errors import error_name

_INITIAL_BACKOFF_S: Final = 0.02
_MAX_BACKOFF_S: Final = 0.5


class Deadline:
    """What is left of the time for something. It runs from when it is made.

    :param deadline_s: For all of it.
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
    """What a broker has answered, with the code of its error; 0 is none."""

    @property
    def error(self) -> int: ...


A = TypeVar("A", bound=_Answer)


class RetryFailed(Exception):
    """There is no answer that will do; the text says why.

    :ivar error: The code of a broker that would answer the same again; None where time was up.
    """

    def __init__(self, reason: str, error: int | None) -> None:
        super().__init__(reason)
        self.error = error


async def retry(
    client: Client,
    ask: Callable[[], Awaitable[A]],
    *,
    patience_s: float,
    suits: Callable[[A], bool] = lambda _: True,
    may_come_right: Collection[int] = RETRIABLE,
) -> A:
    """Ask until there is an answer without error that suits, by new metadata each time.

    :param ask: One attempt. It ends by itself; at least one is made.
    :param patience_s: How long to begin further attempts.
    :param may_come_right: The errors after which there is another attempt.
    :raises NotTold: When another error is answered, or time is up.
    """
    patience = Deadline(patience_s, patience_s)
    while True:
        try:
            answer = await ask()
        except KafkaClientError as error:
            reason = str(error)
        else:
            if not answer.error and suits(answer):
                return answer
            reason = error_name(answer.error) if answer.error else "nothing is there yet"
            if answer.error and answer.error not in may_come_right:
                raise RetryFailed(reason, answer.error)
        if patience.is_expired:
            raise RetryFailed(f"not within {patience_s:g} s: {reason}", None)
        client.forget()
        await patience.backoff()
