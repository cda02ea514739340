"""Calls of a consumer that take several requests: done when their result is there."""

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Operation(Generic[T]):
    """A call that is under way. It ends once; later ends are ignored.

    :ivar done: Whether it has ended, well or not.
    :ivar reason: Why the last attempt failed; for who gives up waiting.
    """

    def __init__(self) -> None:
        self.done = False
        self.reason = "there was no answer"
        self._value: T | None = None
        self._error: Exception | None = None
        self._callbacks: list[Callable[[], None]] = []

    def result(self) -> T:
        """The result.

        :raises Exception: Why there is none.
        """
        assert self.done
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[return-value]  # T itself may allow None

    def then(self, callback: Callable[[], None]) -> None:
        """Call when it is done, at once if it is."""
        if self.done:
            callback()
        else:
            self._callbacks.append(callback)

    def complete(self, value: T) -> None:
        """End well."""
        if not self.done:
            self._value = value
            self._end()

    def fail(self, error: Exception) -> None:
        """End with an error."""
        if not self.done:
            self._error = error
            self._end()

    def cancel(self) -> None:
        """Drop it: nothing waits for its result any more."""
        self._callbacks.clear()
        self.done = True

    def _end(self) -> None:
        self.done = True
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()
