"""An order, and the message about it."""

from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Its message has the id as key, and the quantity and the article as value."""

    order_id: str
    quantity: int
    article: str

    @classmethod
    def parse(cls, key: bytes | None, value: bytes | None) -> Self:
        """Read a message, such as ``2 fence posts``.

        :raises ValueError: When it says something else.
        """
        quantity, _, article = (value or b"").decode().partition(" ")
        if not key or not article:
            raise ValueError(f"a quantity and an article are needed: {value!r}")
        return cls(order_id=key.decode(), quantity=int(quantity), article=article)

    def value(self) -> str:
        """The value of the message."""
        return f"{self.quantity} {self.article}"
