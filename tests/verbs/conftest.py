"""A fake control API, and the connections that ask it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fencepost.verbs.remote import Remote
from tests.harness.fake_control_api import FakeControlApi, fake_control_api


@pytest.fixture
def stub() -> Iterator[FakeControlApi]:
    with fake_control_api() as made:
        yield made


@pytest.fixture
def remote(stub: FakeControlApi) -> Iterator[Remote]:
    made = Remote(stub.url, timeout_s=5)
    yield made
    made.close()
