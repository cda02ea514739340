"""The control API of three brokers in this process."""

from __future__ import annotations

import httpx
import pytest

from fencepost.broker.server.server import Server


@pytest.fixture
def url(server: Server, control: httpx.AsyncClient) -> str:
    return str(control.base_url).rstrip("/")
