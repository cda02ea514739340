"""What is wrong with a cluster or a consumer, so that a scenario shows that it notices."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """A wrong behaviour, by the scenario that is to notice it."""

    does: str
    """What is wrong."""
    noticed: str
    """What the scenario says at the step that has to fail, or a part of it."""
    apply: Callable[[], None]
    is_consumer: bool = False
    """Whether the consumers of the scenario are wrong, and not the brokers."""


_replaced: Final[list[tuple[object, str, object]]] = []


def set_attribute(target: object, name: str, value: object) -> None:
    """Replace an attribute, until `applied` ends."""
    assert hasattr(target, name), f"{target} has no {name}"
    _replaced.append((target, name, getattr(target, name)))
    setattr(target, name, value)


@contextmanager
def applied(mutant: Mutant) -> Iterator[None]:
    """Have this process do what no process should."""
    mutant.apply()
    try:
        yield
    finally:
        while _replaced:
            setattr(*_replaced.pop())
