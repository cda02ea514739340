"""The control API of three brokers in this process."""

from __future__ import annotations

import httpx
import pytest

from fencepost.broker.server.server import Server
from tests.control.conftest import clock, configs, control, server

__all__ = ["clock", "configs", "control", "server"]


@pytest.fixture
def url(server: Server, control: httpx.AsyncClient) -> str:
    return str(control.base_url).rstrip("/")
