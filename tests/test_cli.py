"""The command line: what it accepts, what it says, and how it ends."""

import json
import os
import re
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Final

import pytest

from docs.generate import ROOT
from fencepost.cli import main
from fencepost.cli.serve_options import SERVE_OPTIONS
from fencepost.verbs.remote import default_url
from tests.cli.terminal import terminal
from tests.harness.run import Finished, run
from tests.harness.served_cluster import Cluster, serving

FENCEPOST: Final = (sys.executable, "-m", "fencepost")


def clean_environment(**more: str) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("FENCEPOST_")}
    return kept | more


def fencepost(*arguments: str, code: int | None = 0, **environment: str) -> Finished:
    return run([*FENCEPOST, *arguments], code=code, env=clean_environment(**environment))


# Help


def test_help_of_serve_shows_every_option_with_its_variable(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["serve", "--help"]) == 0
    text = capsys.readouterr().out
    for option in SERVE_OPTIONS:
        line = next(line for line in text.splitlines() if line.startswith(f"│ {option.flag} "))
        assert option.metavar in line
        assert f"[env var: {option.variable}]" in text


def test_the_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"fencepost {version('fencepost')}\n"
    assert main(["--help"]) == 0
    assert " --version " in capsys.readouterr().out


def test_help_shows_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    for command in ("serve", "healthcheck", "topics", "partition", "elect", "reset"):
        assert f" {command} " in text


def test_an_unknown_command_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["imitate"]) == 2
    assert capsys.readouterr().err == (
        "fencepost: there is no command imitate; did you mean simulate?\n"
    )


RARELY_NEEDED: Final = frozenset(
    {"typer", "rich", "h11", "pydantic", "cramjam", "obstore", "ssl", "_hashlib", "shutil"}
)
"""What a server that has just started has not imported: people, rare requests, or none need it."""


def test_serve_is_ready_before_what_is_rarely_needed_is_imported() -> None:
    code = (
        "import sys\n"
        "from fencepost.cli import main\n"
        "main(['serve', '--port', '0', '--control-port', '0', '--stop-with-stdin'])\n"
        "print(*{m.partition('.')[0] for m in sys.modules})\n"
        "import ssl\n"
        "print(ssl.create_default_context().verify_mode.name)\n"
    )
    done = run([sys.executable, "-c", code], env=clean_environment())
    ready, modules, real = done.out.splitlines()
    assert ready.startswith('{"bootstrap": "127.0.0.1:')
    assert "uvloop" in modules.split()
    assert RARELY_NEEDED.intersection(modules.split()) == set()
    assert real == "CERT_REQUIRED", "the process that has served can't import OpenSSL"


# A cluster that runs


def test_serve_refuses_in_one_line() -> None:
    done = fencepost("serve", "--brokers", "none", code=2)
    assert done.out == ""
    assert done.err == "fencepost serve: --brokers: 'none' is not a number from 1 to 1000\n"


@pytest.mark.parametrize("which", ["--port", "--control-port"])
def test_a_port_in_use_is_one_line_and_exit_code_2(which: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ports = {"--port": "0", "--control-port": "0"} | {which: str(port)}
        done = fencepost("serve", *(text for pair in ports.items() for text in pair), code=2)
    assert done.out == ""
    assert done.err == (
        f"fencepost serve: can't listen on 127.0.0.1:{port}: address already in use;"
        f" give another {which}, or {which} 0 for a free one\n"
    )


def test_so_is_a_port_of_a_listener() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listener = f"A://127.0.0.1:{taken.getsockname()[1]}"
        done = fencepost("serve", "--control-port", "0", "--listener", listener, code=2)
    advice = "give another port in --listener, or port 0 for a free one\n"
    assert done.err.endswith(f": address already in use; {advice}")


def test_a_terminal_is_told_what_to_do_with_the_real_addresses() -> None:
    """What `make serve` shows, with any ARGS."""
    with terminal("serve --brokers 2 --port 0 --control-port 0", columns=200, rows=30) as made:
        made.wait_for("Ctrl-C ends it.")
        ready = json.loads(made.plain.splitlines()[0])
        first = ready["bootstrap"].partition(",")[0]
        assert f"kcat -b {first} -L " in made.plain
        assert f"curl {ready['control']}/v1/cluster " in made.plain
        made.interrupt()
        assert made.finish() == 0


def test_make_serve_prints_no_addresses_of_its_own() -> None:
    recipe = (ROOT / "Makefile").read_text().partition("\nserve:")[2].partition("\n\n")[0]
    assert recipe.splitlines()[1:] == ["\t@exec $(BIN)/fencepost serve --brokers 3 $(ARGS)"]


def test_an_address_of_another_machine_is_one_line_as_well() -> None:
    ports = ("--port", "0", "--control-port", "0")
    done = fencepost("serve", "--host", "192.0.2.1", *ports, code=2)
    assert len(done.err.splitlines()) == 1
    assert "192.0.2.1" in done.err


def test_a_tier_that_cannot_be_written_to_is_one_line_too(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    url = f"file://{tmp_path}/file/tier"
    done = fencepost("serve", "--port", "0", "--control-port", "0", FENCEPOST_REMOTE=url, code=2)
    assert done.err == f"fencepost serve: can't write to the tier {url}: Not a directory\n"


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """A cluster of two brokers of this test's own; in the end SIGTERM must end it with 0."""
    for name in [name for name in os.environ if name.startswith("FENCEPOST_")]:
        monkeypatch.delenv(name)
    with serving(tmp_path / "log", "--topic", "first:2:2", brokers=2) as cluster:
        yield cluster


def test_the_ready_line_says_where_everything_listens(served: Cluster) -> None:
    assert len(served.addresses) == 2
    for address in served.addresses:
        socket.create_connection(address, timeout=10).close()
    assert served.control is not None
    fencepost("healthcheck", FENCEPOST_CONTROL=served.control)


def test_healthcheck_waits_for_a_cluster_that_takes_its_time(served: Cluster) -> None:
    assert served.process is not None
    assert served.control is not None
    os.kill(served.process.pid, signal.SIGSTOP)
    goes_on = threading.Timer(4.0, os.kill, (served.process.pid, signal.SIGCONT))
    goes_on.start()
    try:
        fencepost("healthcheck", FENCEPOST_CONTROL=served.control)
        assert goes_on.finished.is_set()
    finally:
        goes_on.join()


def test_healthcheck_without_a_cluster_fails_in_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        free = server.getsockname()[1]
    done = fencepost("healthcheck", code=1, FENCEPOST_CONTROL_PORT=str(free))
    assert len(done.err.splitlines()) == 1
    assert f"127.0.0.1:{free}" in done.err


@pytest.mark.parametrize(
    ("environment", "url"),
    [
        ({}, "http://127.0.0.1:9644"),
        ({"FENCEPOST_CONTROL_PORT": "1"}, "http://127.0.0.1:1"),
        ({"FENCEPOST_CONTROL_PORT": "tcp://10.0.0.1:9644"}, "http://127.0.0.1:9644"),
        ({"FENCEPOST_HOST": "192.0.2.1"}, "http://127.0.0.1:9644"),
        ({"FENCEPOST_CONTROL_HOST": "0.0.0.0"}, "http://127.0.0.1:9644"),
        ({"FENCEPOST_CONTROL_HOST": "192.0.2.1"}, "http://192.0.2.1:9644"),
        ({"FENCEPOST_CONTROL_HOST": "::1"}, "http://[::1]:9644"),
        ({"FENCEPOST_CONTROL": "http://x:1", "FENCEPOST_CONTROL_PORT": "2"}, "http://x:1"),
    ],
)
def test_where_a_command_looks_for_its_cluster(environment: dict[str, str], url: str) -> None:
    assert default_url(environment) == url


def test_topics_partition_and_elect(cluster: Cluster) -> None:
    assert cluster.control is not None
    topic = cluster.create_topic("cli", partitions=2, replication_factor=3)
    control = ("--control", cluster.control)

    listed = json.loads(fencepost("topics", "--json", *control).out)
    mine = next(row for row in listed if row["name"] == topic)
    assert (mine["partitions"], mine["replication_factor"]) == (2, 3)
    table = fencepost("topics", *control, COLUMNS="160").out
    assert re.search(rf"^ *{topic} +2 +3 ", table, re.MULTILINE)

    before = json.loads(fencepost("partition", topic, "1", "--json", *control).out)
    other = next(each for each in before["isr"] if each != before["leader"])
    elected = fencepost("elect", topic, "1", "--leader", str(other), "--json", *control)
    after = json.loads(elected.out)
    assert (after["leader"], after["leader_epoch"]) == (other, before["leader_epoch"] + 1)
    shown = fencepost("partition", topic, "1", *control, COLUMNS="160").out
    assert f"{topic}-1: leader {other} in epoch {after['leader_epoch']}" in shown


def test_a_refusal_of_the_control_api_is_one_line(cluster: Cluster) -> None:
    assert cluster.control is not None
    done = fencepost("partition", "no-such-topic", "0", code=1, FENCEPOST_CONTROL=cluster.control)
    assert len(done.err.splitlines()) == 1
    assert "UNKNOWN_TOPIC_OR_PARTITION" in done.err


def test_reset_forgets_the_topics(served: Cluster) -> None:
    assert served.control is not None
    topic = served.create_topic("forgotten", replication_factor=1)
    assert topic in fencepost("topics", FENCEPOST_CONTROL=served.control).out
    fencepost("reset", FENCEPOST_CONTROL=served.control)
    assert topic not in fencepost("topics", FENCEPOST_CONTROL=served.control).out
