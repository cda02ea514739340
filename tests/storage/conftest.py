"""Every test that makes logs by `logs.new_log` is run with logs in memory and in files."""

from collections.abc import Iterator

import pytest

from tests.harness.logs import Kind, Made


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if hasattr(metafunc.module, "new_log"):
        kinds = getattr(metafunc.function, "kinds", Kind)
        metafunc.parametrize("log_kind", list(kinds), ids=lambda kind: kind.name, indirect=True)


@pytest.fixture(autouse=True)
def log_kind(request: pytest.FixtureRequest) -> Iterator[None]:
    Made.kind = getattr(request, "param", Kind.MEMORY)
    yield
    Made.kind = Kind.MEMORY
