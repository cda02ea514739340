"""A question that is asked until it is answered."""

from collections.abc import Awaitable, Callable, Collection
from typing import Protocol, TypeVar

from fencepost.client.client import Client
from fencepost.client.errors import RETRIABLE, KafkaClientError
from fencepost.client.patience import Patience
from fencepost.protocol.errors import error_name


class _Answer(Protocol):
    """What a broker has answered, with the code of its error; 0 is none."""

    @property
    def error(self) -> int: ...


A = TypeVar("A", bound=_Answer)


class NotTold(Exception):
    """There is no answer that will do; the text says why.

    :ivar error: The code of a broker that would answer the same again; None where time was up.
    """

    def __init__(self, reason: str, error: int | None) -> None:
        super().__init__(reason)
        self.error = error


async def until_told(
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
    patience = Patience(patience_s, patience_s)
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
                raise NotTold(reason, answer.error)
        if patience.is_over:
            raise NotTold(f"not within {patience_s:g} s: {reason}", None)
        client.forget()
        await patience.pause()
