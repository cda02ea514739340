"""A network between brokers that a test delivers by hand."""

from __future__ import annotations

from collections import deque

from fencepost.broker.network.links import Deliver, Link


class ManualTransport:
    """Delivers messages at once, or keeps them for the test to deliver."""

    def __init__(self) -> None:
        self.keeps = False
        self.kept: deque[tuple[Link, Deliver]] = deque()

    def __call__(self, link: Link, deliver: Deliver) -> None:
        if self.keeps:
            self.kept.append((link, deliver))
        else:
            deliver()

    def deliver(self, count: int = 1) -> list[Link]:
        """Deliver the oldest messages; the messages that these cause are kept."""
        delivered = []
        for _ in range(count):
            link, deliver = self.kept.popleft()
            deliver()
            delivered.append(link)
        return delivered
