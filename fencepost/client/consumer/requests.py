"""Requests that the core wants sent, and the turns in which it decides on them."""

from collections.abc import Callable
from enum import Enum, auto
from typing import TypeVar

from msgspec import Struct, field

from fencepost.client.errors import KafkaClientError
from fencepost.protocol.apis import Api

R = TypeVar("R")


class Channel(Enum):
    """Which connection to a node carries a request.

    A broker answers the requests of one connection in their order, so what waits there (Fetch,
    JoinGroup) has a connection of its own.
    """

    FETCH = auto()
    GROUP = auto()
    OTHER = auto()


class Request(Struct, frozen=True, kw_only=True, eq=False):
    """A request to a node. Exactly one of its two callbacks is called, once.

    Both take the time in ms, on the clock of the core's turns.
    """

    node: int
    """Broker id; negative for the brokers of the bootstrap list."""
    api: Api
    version: int
    message: object
    """The API's request."""
    timeout_ms: int
    """Without an answer for so long, it has failed."""
    on_answer: Callable[[object, int], None]
    """With the API's response."""
    on_failure: Callable[[KafkaClientError, int], None]
    channel: Channel = Channel.OTHER


def typed(answer: type[R], handle: Callable[[R, int], None]) -> Callable[[object, int], None]:
    """A callback for the responses of one API.

    :raises TypeError: From the callback, when it is handed a response of another API.
    """

    def checked(response: object, now: int) -> None:
        if not isinstance(response, answer):
            raise TypeError(f"{type(response).__name__} is no {answer.__name__}")
        handle(response, now)

    return checked


class Turn(Struct, kw_only=True):
    """One pass over all that may be due."""

    now: int
    """Milliseconds, monotonic."""
    fetches: bool = True
    """Whether records are wanted."""
    requests: list[Request] = field(default_factory=list)
    wake_at: int | None = None
    """When the next turn is due if nothing happens before; None: only when something happens."""

    def is_due(self, at: int) -> bool:
        """Whether a time has come; if not, there is a turn then."""
        if at <= self.now:
            return True
        self.wake_at = at if self.wake_at is None else min(at, self.wake_at)
        return False

    def send(self, request: Request) -> None:
        """Have a request sent."""
        self.requests.append(request)


class Backoff(Struct, frozen=True, kw_only=True):
    """Pauses that double from attempt to attempt."""

    initial_ms: int
    max_ms: int

    def pause_ms(self, attempts: int) -> int:
        """How long to wait after so many attempts in a row, 1 or more, have failed."""
        return min(self.initial_ms << min(attempts - 1, 20), self.max_ms)


class Retry(Struct):
    """When something may be attempted again."""

    backoff: Backoff
    at: int = 0
    """In ms."""
    attempts: int = 0
    """Since the last reset."""

    def pause(self, now: int) -> None:
        """Wait before the next attempt, longer each time."""
        self.attempts += 1
        self.at = now + self.backoff.pause_ms(self.attempts)

    def reset(self) -> None:
        """Attempt the next at once."""
        self.attempts = 0
        self.at = 0
