"""Parsed configs, read as what they are."""

from collections.abc import Callable

from fencepost.broker.configs.definitions import Value


class Typed:
    """Typed access to parsed configs by name; a name of another type is a bug."""

    def __init__(self, value_of: Callable[[str], Value]) -> None:
        self._value_of = value_of

    def flag(self, name: str) -> bool:
        """A BOOLEAN."""
        value = self._value_of(name)
        assert isinstance(value, bool), name
        return value

    def number(self, name: str) -> int:
        """A SHORT, INT or LONG that has a value."""
        value = self._value_of(name)
        assert isinstance(value, int), name
        return value

    def optional_number(self, name: str) -> int | None:
        """A SHORT, INT or LONG that may have no value."""
        return None if self._value_of(name) is None else self.number(name)

    def ratio(self, name: str) -> float:
        """A DOUBLE."""
        value = self._value_of(name)
        assert isinstance(value, float), name
        return value

    def text(self, name: str) -> str:
        """A STRING that has a value."""
        value = self._value_of(name)
        assert isinstance(value, str), name
        return value

    def optional_text(self, name: str) -> str | None:
        """A STRING that may have none."""
        return None if self._value_of(name) is None else self.text(name)

    def entries(self, name: str) -> tuple[str, ...]:
        """A LIST."""
        value = self._value_of(name)
        assert isinstance(value, tuple), name
        return value
