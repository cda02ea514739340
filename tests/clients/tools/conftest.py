"""The brokers that tools and old clients are run on, all on the same."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.clients.tools.ground import chosen
from tests.clients.tools.playing import PROGRAMS, Ground

collect_ignore = [] if PROGRAMS else ["test_programs.py"]
"""Programs that no package registry has are run only where they are at hand."""


@pytest.fixture(scope="session")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    with chosen(tmp_path_factory.mktemp("tools")) as started:
        yield started
