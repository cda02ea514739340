"""Turns of the event loop of a server."""

from __future__ import annotations

import time

from fencepost.broker.server.event_loop import TURN_NS


def run_for_a_turn() -> None:
    """A callback after which the turn is over."""
    end_ns = time.monotonic_ns() + TURN_NS
    while time.monotonic_ns() < end_ns:
        pass
