"""The image: it serves without arguments and without privileges, to clients on both sides."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from fencepost.cli import main
from tests.harness.container import ROOT, Container, Engine
from tests.harness.java import jars, java
from tests.harness.process import free_ports
from tests.harness.require import tool
from tests.harness.run import run

pytestmark = pytest.mark.timeout(600)
JAVA: Final = Path(__file__).parent / "java"
MIB: Final = 1 << 20
UNPRIVILEGED: Final = ("--read-only", "--cap-drop", "all", "--security-opt", "no-new-privileges")
INSIDE: Final = 9092
OUTSIDE: Final = 19092
BROKERS: Final = 3


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    return Engine(tmp_path_factory.mktemp("engine"))


@pytest.fixture(scope="module")
def network(engine: Engine) -> Iterator[str]:
    with engine.network() as name:
        yield name


@pytest.fixture(scope="module")
def ports() -> list[int]:
    return free_ports(BROKERS)


@pytest.fixture(scope="module")
def kafka(engine: Engine, network: str, ports: list[int]) -> Iterator[Container]:
    """Three brokers for the host and for other containers, as docker-compose.yml has them."""
    published = f"127.0.0.1:{ports[0]}-{ports[-1]}:{OUTSIDE}-{OUTSIDE + BROKERS - 1}"
    listeners = (
        f"INSIDE://:{INSIDE},advertised=kafka:{INSIDE}",
        f"OUTSIDE://:{OUTSIDE},advertised=127.0.0.1:{ports[0]}",
    )
    env = {"FENCEPOST_LISTENER": " ".join(listeners), "FENCEPOST_TOPIC": "t:3:1"}
    options = ["--network", network, "--name", f"kafka-{network}", "--network-alias", "kafka"]
    with engine.running(
        *options, "-p", published, *UNPRIVILEGED, arguments=["serve", "--brokers", "3"], env=env
    ) as container:
        yield container


def test_without_arguments_it_serves_a_broker_and_says_where(engine: Engine) -> None:
    with engine.running() as container:
        bootstrap = container.ready["bootstrap"]
        assert bootstrap.endswith(f":{INSIDE}")
        token = container.ready["control_token"]
        assert (
            container.execute("fencepost", "check", "--bootstrap", bootstrap)
            .lines[-1]
            .endswith(f":{INSIDE}, which answers")
        )
        listed = container.execute("fencepost", "topics", "--json", "--control-token", token)
        assert json.loads(listed.out) == []


def test_it_is_small(engine: Engine) -> None:
    assert engine.size(engine.image) - engine.size(engine.base) < 150 * MIB


def test_it_has_no_privileges_and_is_healthy(engine: Engine, kafka: Container) -> None:
    assert kafka.execute("id", "-u").out == "10001\n"
    assert kafka.execute("touch", "/opt/app/x", code=None).code != 0
    engine.podman("healthcheck", "run", kafka.id)


def test_kcat_on_the_host_reaches_every_broker(kafka: Container, ports: list[int]) -> None:
    kcat = [tool("kcat"), "-b", f"127.0.0.1:{ports[0]}", "-t", "t"]
    run([*kcat, "-P", "-K:"], stdin="".join(f"{key}:value\n" for key in range(9)))
    read = run([*kcat, "-C", "-e", "-q", "-f", "%p\n"]).lines
    assert set(read) == {"0", "1", "2"}


def test_a_java_client_on_the_host_reaches_every_broker(kafka: Container, ports: list[int]) -> None:
    tool_class = "org.apache.kafka.tools.GetOffsetShell"
    found = java(tool_class, "--bootstrap-server", f"127.0.0.1:{ports[0]}", "--topic", "t").lines
    assert [line.rpartition(":")[0] for line in found] == ["t:0", "t:1", "t:2"]


def test_a_client_in_another_container_reaches_every_broker(
    engine: Engine, network: str, kafka: Container
) -> None:
    check = ["check", "--bootstrap", f"kafka:{INSIDE}"]
    lines = engine.podman("run", "--rm", "--network", network, engine.image, *check).out
    assert [line.rpartition(" ")[2] for line in lines.splitlines()] == ["answers"] * (1 + BROKERS)


def test_check_on_the_host_says_which_published_port_is_missing(
    engine: Engine, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = free_ports(2)
    env = {"FENCEPOST_BROKERS": "2", "FENCEPOST_ADVERTISE": f"127.0.0.1:{first}"}
    with engine.running("-p", f"127.0.0.1:{first}:{INSIDE}", env=env):
        assert main(["check", "--bootstrap", f"127.0.0.1:{first}"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].endswith(f"127.0.0.1:{first}, which answers")
    assert lines[2].endswith(f"127.0.0.1:{second}, which can't be reached: connection refused")


def test_the_variables_of_a_real_broker_do(engine: Engine, network: str) -> None:
    [port] = free_ports(1)
    env = {
        "KAFKA_NODE_ID": "7",
        "KAFKA_PROCESS_ROLES": "broker,controller",
        "KAFKA_LISTENERS": "CONTROLLER://:29093,HOST://:9092,PLAINTEXT://:19092",
        "KAFKA_ADVERTISED_LISTENERS": f"HOST://localhost:{port},PLAINTEXT://broker:19092",
        "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": (
            "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,HOST:PLAINTEXT"
        ),
        "KAFKA_CONTROLLER_QUORUM_VOTERS": "7@broker:29093",
        "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
        "KAFKA_INTER_BROKER_LISTENER_NAME": "PLAINTEXT",
        "KAFKA_NUM_PARTITIONS": "4",
        "KAFKA_HEAP_OPTS": "-Xmx256m",
    }
    options = ["--network", network, "-p", f"127.0.0.1:{port}:9092"]
    with engine.running(*options, env=env):
        run([tool("kcat"), "-b", f"localhost:{port}", "-P", "-t", "new"], stdin="x\n")
        listed = run([tool("kcat"), "-b", f"localhost:{port}", "-L", "-J"]).out
    found = json.loads(listed)
    assert found["brokers"] == [{"id": 7, "name": f"localhost:{port}"}]
    assert {each["topic"]: len(each["partitions"]) for each in found["topics"]} == {"new": 4}


def test_testcontainers_runs_it_as_the_page_shows(engine: Engine, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "containers.md").read_text()
    example = re.search(r"```java\n(.*?)```", page, re.DOTALL)
    assert example is not None
    source = (JAVA / "Containers.java").read_text().replace("// EXAMPLE", example[1])
    program = tmp_path / "Containers.java"
    program.write_text(source.replace("IMAGE", engine.image))
    first, *_ = free_ports(BROKERS)
    check = [sys.executable, "-m", "fencepost", "check", "--bootstrap", f"localhost:{first}"]
    command = [tool("java"), "-cp", f"{jars(JAVA / 'pom.xml')}/*", str(program), str(first)]
    with engine.service() as url:
        # Ryuk, which removes what a test that was killed has left, is an image of a registry.
        env = {**os.environ, "DOCKER_HOST": url, "TESTCONTAINERS_RYUK_DISABLED": "true"}
        lines = run([*command, *check], env=env, timeout_s=120).lines
    assert lines[0].startswith("http://localhost:")
    assert [line.rpartition(" ")[2] for line in lines[1:]] == ["answers"] * (1 + BROKERS)


def test_sigterm_ends_it_with_0(engine: Engine) -> None:
    with engine.running(*UNPRIVILEGED) as container:
        engine.podman("stop", "--time", "20", container.id)
        assert container.state["ExitCode"] == 0
        assert '"stopping"' in container.log()
