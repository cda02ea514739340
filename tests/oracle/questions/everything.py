"""All sections, in the order in which the rows were recorded."""

from __future__ import annotations

from tests.harness.served_cluster import Cluster
from tests.oracle.asker import Asker
from tests.oracle.asking import Row
from tests.oracle.questions import (
    api_versions,
    epochs,
    fetch,
    list_offsets,
    malformed,
    metadata,
    produce,
)
from tests.oracle.steering import Steering

SECTIONS = (api_versions, metadata, list_offsets, epochs, fetch, produce, malformed)


def ask(cluster: Cluster, steering: Steering) -> list[Row]:
    """Put every question to a fresh cluster of one or three brokers."""
    asker = Asker(cluster, steering)
    try:
        for section in SECTIONS:
            section.ask(asker)
    finally:
        asker.close()
    return asker.rows
