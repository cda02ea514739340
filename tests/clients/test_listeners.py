"""Clients outside and inside of a network namespace: each reaches every broker by its listener."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pytest

from tests.harness.network_namespace import Namespace, namespace
from tests.harness.process import free_ports, start
from tests.harness.require import tool
from tests.harness.run import run

BROKERS: Final = 3
INSIDE: Final = 9092
OUTSIDE: Final = 9192
REFUSED: Final = "can't be reached: connection refused"
FENCEPOST: Final = (sys.executable, "-m", "fencepost")


@pytest.fixture(scope="module")
def ports() -> list[int]:
    """Of this machine, one for each broker."""
    return free_ports(BROKERS)


@pytest.fixture(scope="module")
def network(ports: list[int]) -> Iterator[Namespace]:
    """A namespace in which three brokers are served, with a topic that each leads a part of."""
    with TemporaryDirectory() as folder, ExitStack() as stack:
        made = stack.enter_context(namespace(Path(folder)))
        serve = made.command(*FENCEPOST, "serve", "--brokers", str(BROKERS))
        serve += ["--topic", "t:3:1", "--stop-with-stdin"]
        serve += ["--listener", f"INSIDE://127.0.0.1:{INSIDE}"]
        serve += ["--listener", f"OUTSIDE://:{OUTSIDE},advertised=localhost:{ports[0]}"]
        process = start("fencepost", serve, Path(folder) / "log")
        stack.callback(process.stop)
        process.first_line(60)
        yield made


def check(bootstrap: str) -> list[str]:
    return [*FENCEPOST, "check", "--bootstrap", bootstrap]


def use_every_broker(kcat: Sequence[str], value: str) -> None:
    """Produce to each partition, and so to each broker, and read it back."""
    run([*kcat, "-P", "-t", "t", "-K:"], stdin="".join(f"{key}:{value}\n" for key in range(9)))
    read = run([*kcat, "-C", "-t", "t", "-e", "-q", "-f", "%p %s\n"]).lines
    assert {line for line in read if line.endswith(value)} == {
        f"{partition} {value}" for partition in range(BROKERS)
    }


def test_clients_outside_and_inside_reach_every_broker(
    network: Namespace, ports: list[int]
) -> None:
    kcat = tool("kcat")
    mapping = {outer: OUTSIDE + n for n, outer in enumerate(ports)}
    with network.mapped(mapping):
        outside = f"localhost:{ports[0]}"
        use_every_broker([kcat, "-b", outside], "from outside")
        checked = run(check(outside)).lines
    assert checked == [
        f"bootstrap {outside} answers",
        *(
            f"broker {n + 1} is advertised as localhost:{port}, which answers"
            for n, port in enumerate(ports)
        ),
    ]
    inside = f"127.0.0.1:{INSIDE}"
    use_every_broker(network.command(kcat, "-b", inside), "from inside")
    assert run(network.command(*check(inside))).lines == [
        f"bootstrap {inside} answers",
        *(
            f"broker {n + 1} is advertised as 127.0.0.1:{INSIDE + n}, which answers"
            for n in range(BROKERS)
        ),
    ]


def test_check_says_which_advertised_address_is_wrong(network: Namespace, ports: list[int]) -> None:
    """The port of broker 2 leads to broker 3, and no port to broker 3."""
    with network.mapped({ports[0]: OUTSIDE, ports[1]: OUTSIDE + 2}):
        checked = run(check(f"localhost:{ports[0]}"), code=1).lines
    assert checked[1:4] == [
        f"broker 1 is advertised as localhost:{ports[0]}, which answers",
        f"broker 2 is advertised as localhost:{ports[1]}, which leads to another broker",
        f"broker 3 is advertised as localhost:{ports[2]}, which {REFUSED}",
    ]
    assert "--advertise" in checked[4]
