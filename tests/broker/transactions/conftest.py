"""Leaders that answer WriteTxnMarkers as the test says."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fencepost.broker import handlers
from tests.broker.transactions.workbench import FakeLeaders


@pytest.fixture
def leaders() -> Iterator[FakeLeaders]:
    before = dict(handlers._HANDLERS)
    fake = FakeLeaders()
    fake.install()
    yield fake
    handlers._HANDLERS.clear()
    handlers._HANDLERS.update(before)
