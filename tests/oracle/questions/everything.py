"""All sections, in the order in which the rows were recorded."""

from __future__ import annotations

from tests.oracle.asking import Broker, Row
from tests.oracle.questions import (
    api_versions,
    epochs,
    fetch,
    list_offsets,
    malformed,
    metadata,
    produce,
)

SECTIONS = (api_versions, metadata, list_offsets, epochs, fetch, produce, malformed)


def ask(address: tuple[str, int]) -> list[Row]:
    """Put every question to the one broker of a fresh cluster."""
    broker = Broker(address)
    try:
        for section in SECTIONS:
            section.ask(broker)
    finally:
        broker.close()
    return broker.rows
