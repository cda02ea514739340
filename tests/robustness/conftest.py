"""A broker to be maltreated: one of its own, never one that was given.

What these tests send has brought down real brokers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest

from tests.harness.served_cluster import Cluster, configs, serve
from tests.harness.wire import Body

SETTINGS = {
    # So that what is thrown at it is forgotten again, and does not look like a leak.
    "auto.create.topics.enable": "false",
    "log.retention.bytes": "1000000",
    "log.retention.check.interval.ms": "500",
    "log.segment.bytes": "1048576",
}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    log = tmp_path_factory.mktemp("robustness") / "fencepost.log"
    started = serve(log, *configs(SETTINGS), brokers=1)
    yield started
    complaints = [line for line in log.read_text().splitlines() if is_complaint(line)]
    started.stop()
    assert not complaints, f"{len(complaints)} complaints, the first\n" + complaints[0][:5000]


def is_complaint(line: str) -> bool:
    """Whether a line of the log tells of a bug: an error event, or a traceback of no event."""
    try:
        event: Body = json.loads(line)
    except ValueError:
        return bool(re.match(r"Traceback|Exception|Fatal", line))
    return event.get("level") in {"error", "critical"} or "exception" in event
