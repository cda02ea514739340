"""A fake control API, and the connections that ask it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fencepost.verbs.remote import Remote
from tests.verbs.stub import Stub, serving


@pytest.fixture
def stub() -> Iterator[Stub]:
    with serving() as made:
        yield made


@pytest.fixture
def remote(stub: Stub) -> Iterator[Remote]:
    made = Remote(stub.url, timeout_s=5)
    yield made
    made.close()
