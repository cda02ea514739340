"""The process behind a test's cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from fencepost.testing.servers import Server


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Server:
    found: Server = request.getfixturevalue("_fencepost_server")
    return found
