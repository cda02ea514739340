"""A control API that needs a token, from the command line: every command has its way to it."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from unittest.mock import Mock

import pytest

from fencepost.broker.node.cluster import ClusterOptions
from fencepost.broker.server import run
from fencepost.broker.server.addresses import broker_addresses
from fencepost.broker.server.run import Ready
from fencepost.cli.option_values import OptionError
from fencepost.cli.serve import announce, parse_options
from fencepost.cli.verb_commands import BY_WORDS
from tests.cli.shell import REQUIRED, Shell
from tests.cli.terminal import terminal
from tests.harness.fake_control_api import FakeControlApi, refusal
from tests.harness.served_cluster import serving

TOKEN: Final = "a-token-of-ours"
HEARD: Final = f"Bearer {TOKEN}"


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    log = tmp_path_factory.mktemp("locked") / "log"
    with serving(log, "--control-token", TOKEN, brokers=1) as cluster:
        assert cluster.control is not None
        yield cluster.control


def test_without_the_token_a_command_is_refused(
    locked: str, shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FENCEPOST_CONTROL", locked)
    assert shell.text("healthcheck") == "ok\n"
    for line in ("topics", "reset", "watch", "events --count 1", "broker list"):
        assert "--control-token or FENCEPOST_CONTROL_TOKEN" in shell.refusal(line, 1)
    assert "is not the token" in shell.refusal("topics --control-token another-token", 1)
    assert shell.json(f"cluster --control-token {TOKEN}")["clock"]["mode"] == "real"
    monkeypatch.setenv("FENCEPOST_CONTROL_TOKEN", TOKEN)
    assert shell.json("cluster")["clock"]["mode"] == "real"
    monkeypatch.delenv("FENCEPOST_CONTROL_TOKEN")
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    monkeypatch.setenv("FENCEPOST_CONTROL_TOKEN_FILE", str(tmp_path / "token"))
    assert shell.json("broker list")[0]["id"] == 1
    with terminal("watch") as made:
        made.wait_for("broker 1 running")
        made.interrupt()
        assert made.finish() == 0


def test_a_scenario_is_played_against_a_cluster_with_a_token(
    locked: str, shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(
        "summary: a topic\ncluster: {brokers: 1}\nsteps:\n- create_topic: {name: t}\n- events: {}\n"
    )
    played = f"scenario run {file} --against {locked}"
    assert "--control-token" in shell.refusal(played, 1)
    assert "passed" in shell.text(f"{played} --control-token {TOKEN}")


@pytest.mark.parametrize("words", sorted(BY_WORDS))
def test_every_command_sends_it(
    words: str, stub: FakeControlApi, shell: Shell, capsys: pytest.CaptureFixture[str]
) -> None:
    stub.will(refusal(400, "INVALID_REQUEST", "no"))
    verb = BY_WORDS[words]
    path = " ".join("1" for _ in verb.path_parameters)
    shell.text(f"{words} {path} {REQUIRED.get(words, '')} --control-token {TOKEN}".rstrip(), 1)
    assert {each.authorization for each in stub.asked} == {HEARD}


@pytest.mark.parametrize("command", ["topics", "watch", "broker list"])
def test_a_token_that_no_header_can_carry_is_a_usage_error(
    command: str, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FENCEPOST_CONTROL_TOKEN", "hush hush")
    assert " the token is not 8 to 512 letters, digits and " in shell.refusal(command)


# -- what serve does ----------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "::1", "localhost"])
def test_on_the_loopback_there_is_no_token_unless_it_is_given(host: str) -> None:
    assert parse_options(["--control-host", host], {}).control_token is None
    given = parse_options(["--control-host", host, "--control-token", TOKEN], {})
    assert (given.control_token, given.control_token_drawn) == (TOKEN, False)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.7", "a.test", "localhost.test"])
def test_elsewhere_a_token_is_drawn_unless_it_is_given(host: str) -> None:
    environment = {"FENCEPOST_CONTROL_HOST": host}
    one, other = parse_options([], environment), parse_options([], environment)
    assert one.control_token_drawn
    assert one.control_token is not None
    assert one.control_token != other.control_token
    given = parse_options([], {**environment, "FENCEPOST_CONTROL_TOKEN": TOKEN})
    assert (given.control_token, given.control_token_drawn) == (TOKEN, False)


def test_brokers_on_every_interface_leave_the_control_api_on_the_loopback() -> None:
    assert parse_options(["--host", "0.0.0.0"], {}).control_host == "127.0.0.1"


@pytest.mark.parametrize(
    ("options", "url"),
    [
        ("--advertise kafka.test", "http://127.0.0.1:"),
        ("--control-host ::1", "http://[::1]:"),
        ("--control-host 10.0.0.7 --advertise kafka.test", "http://10.0.0.7:"),
        ("--control-host 0.0.0.0 --advertise kafka.test", "http://kafka.test:"),
        ("--control-host 0.0.0.0 --host 0.0.0.0", "http://127.0.0.1:"),
    ],
)
def test_the_ready_line_has_a_url_at_which_the_control_api_listens(options: str, url: str) -> None:
    given = parse_options(options.split(), {})
    with socket.create_server(("127.0.0.1", 0)) as sock:
        [addresses] = broker_addresses(given.listeners, given.ids, [sock])
        server = Mock(cluster=Mock(options=ClusterOptions(addresses=addresses)))
        ready = run._ready(server, given.control_host, sock)
        assert ready.control == f"{url}{sock.getsockname()[1]}"


def test_a_token_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "token").write_text(TOKEN)
    options = parse_options(["--control-token-file", str(tmp_path / "token")], {})
    assert options.control_token == TOKEN
    with pytest.raises(OptionError, match=r"^FENCEPOST_CONTROL_TOKEN_FILE: can't read "):
        parse_options([], {"FENCEPOST_CONTROL_TOKEN_FILE": str(tmp_path / "none")})


def test_a_wrong_token_is_refused_and_not_repeated() -> None:
    with pytest.raises(OptionError, match=r"^--control-token: the token is not 8 ") as error:
        parse_options(["--control-token", "hush hush"], {})
    assert "hush" not in str(error.value)


@pytest.mark.parametrize("drawn", [True, False])
def test_the_ready_line_has_a_token_that_was_drawn(
    drawn: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    given = () if drawn else ("--control-token", TOKEN)
    options = parse_options(["--control-host", "0.0.0.0", *given], {})
    announce(options, Ready(bootstrap="b", listeners={}, control="c", pid=1))
    line = json.loads(capsys.readouterr().out)
    assert line.get("control_token") == (options.control_token if drawn else None)
