"""Programs that are not Kafka's print what they print at a real 4.3.1: kcl and topicctl.

No package registry has them. ``FENCEPOST_TEST_PROGRAMS`` names the folder that they are in.
"""

from __future__ import annotations

import pytest

from tests.clients.tools import session as reading
from tests.clients.tools.playing import Ground, check


@pytest.mark.parametrize(
    "session", reading.sessions(reading.PROGRAMS), ids=lambda session: session.name
)
def test_a_program_prints_what_it_prints_at_a_real_kafka(
    brokers: Ground, session: reading.Session
) -> None:
    check(session, brokers)
