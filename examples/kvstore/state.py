"""What operations do: a shard's keys and values, and nothing of logs or networks.

The same operations in the same order have the same results, which is all that a log needs.
"""

from dataclasses import dataclass, field
from enum import StrEnum


class Kind(StrEnum):
    """What an operation does to its key."""

    GET = "get"
    PUT = "put"
    DELETE = "delete"
    CAS = "cas"
    """Compare and set: put, if the value is the expected one."""
    APPEND = "append"
    """Put text behind the value; to no value it is a put."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """What a client asks of one key."""

    kind: Kind
    key: str
    value: str | None = None
    """To put or to append; None for get and delete."""
    expected: str | None = None
    """For cas; None is no value."""

    @property
    def writes(self) -> bool:
        """Whether it may change anything, and belongs in the log."""
        return self.kind is not Kind.GET


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What became of an operation."""

    done: bool
    """False only for a cas that found another value."""
    value: str | None
    """For put and delete the value before, for the others the value now; None is no value."""


@dataclass(slots=True)
class State:
    """The keys of a shard and their values."""

    values: dict[str, str] = field(default_factory=dict)

    def apply(self, operation: Operation) -> Result:
        """Carry an operation out."""
        key, before = operation.key, self.values.get(operation.key)
        match operation.kind:
            case Kind.GET:
                return Result(done=True, value=before)
            case Kind.PUT:
                self._set(key, operation.value)
                return Result(done=True, value=before)
            case Kind.DELETE:
                self._set(key, None)
                return Result(done=True, value=before)
            case Kind.CAS:
                done = before == operation.expected
                if done:
                    self._set(key, operation.value)
                return Result(done=done, value=self.values.get(key))
            case Kind.APPEND:
                self._set(key, (before or "") + (operation.value or ""))
                return Result(done=True, value=self.values[key])

    def _set(self, key: str, value: str | None) -> None:
        if value is None:
            self.values.pop(key, None)
        else:
            self.values[key] = value
