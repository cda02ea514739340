"""What every test gets: uvloop, no silent skips under CI, and the servers' logs with a failure."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
from collections.abc import Callable, Generator, Iterator, Mapping
from typing import TYPE_CHECKING, Final

import hypothesis
import pytest

from tests.harness.distribution import Scheduling, long_ones_first
from tests.harness.process import LIVE
from tests.harness.process_guard import InProcess, StartsAProcess
from tests.harness.require import under_ci
from tests.harness.served_cluster import Cluster, configs, given, serving

if TYPE_CHECKING:
    from tests.harness.kafka_writes import KafkaWrites

if sys.platform == "win32":  # which uvloop does not run on
    from asyncio import new_event_loop
else:
    from uvloop import new_event_loop

pytest_plugins = ["fencepost.testing.plugin", "tests.harness.coverage_sample"]

SETTINGS: Final[Mapping[str, str]] = {
    # Kafka's own default, 3 s, is a wait for more members that a test knows will not come.
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "4",
}

EXAMPLES: Final = int(os.environ.get("FENCEPOST_EXAMPLES", "30"))
"""Of each property that does not say how many itself."""

_log_positions = pytest.StashKey[dict[int, int]]()


def pytest_asyncio_loop_factories() -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"uvloop": new_event_loop}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--in-process", action="store_true", help="skip the tests that start another process"
    )


def pytest_configure(config: pytest.Config) -> None:
    # An example may take long on a busy machine.
    hypothesis.settings.register_profile("untimed", deadline=None, max_examples=EXAMPLES)
    hypothesis.settings.load_profile("untimed")
    if config.getoption("in_process"):
        config.pluginmanager.register(InProcess())
        # What a skipped test had opened is closed by nothing; a whole run looks after that.
        config.addinivalue_line("filterwarnings", "ignore::ResourceWarning")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Spare the garbage collector what lives as long as the process: modules and all the tests."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    long_ones_first(items)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> Scheduling | None:
    return Scheduling(config, log) if config.getvalue("dist") == "loadfile" else None


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    item.stash[_log_positions] = {server.pid: server.log_size() for server in LIVE}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
    call: pytest.CallInfo[None],
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    wanted = hasattr(report, "wasxfail") or (
        call.excinfo is not None and call.excinfo.errisinstance(StartsAProcess)
    )
    if report.skipped and under_ci() and not wanted:
        report.outcome = "failed"
        report.longrepr = f"skipped, which nothing may be under CI: {report.longrepr}"
    if report.failed:
        positions = item.stash.get(_log_positions, {})
        for server in LIVE:
            text = server.log_since(positions.get(server.pid, 0))
            report.sections.append(
                (f"log of {server.name} {server.pid} since the test began", text)
            )
    return report


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three brokers for the whole run; each test uses topics and groups of its own."""
    existing = given()
    if existing is not None:
        yield existing
        return
    log = tmp_path_factory.mktemp("cluster") / "fencepost.log"
    with serving(log, *configs(SETTINGS)) as started:
        yield started


@pytest.fixture(scope="session")
def kafka_wrote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaWrites]:
    """Log directories that a real Kafka wrote: of one that was killed, and of one shut down."""
    from tests.harness.kafka_writes import kafka_writes

    with kafka_writes(tmp_path_factory.mktemp("kafka-wrote")) as found:
        yield found
