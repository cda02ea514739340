"""Steps that run the user's own processes: what these know, what is waited for, and their end."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from fencepost.broker.server.server import Server
from fencepost.scenario.document import ScenarioFileError
from fencepost.scenario.processes import Processes, RunBody
from fencepost.scenario.runner import run
from fencepost.verbs.catalogue import VERBS
from tests.harness.process import free_ports
from tests.scenario.scenarios import Told, fails, passes, played, scenario

PYTHON = f"{sys.executable} -c"
"""Each program below is one that a user could have written."""
WAITS = """import signal, sys; print('up', flush=True); signal.pause()"""


async def test_a_process_knows_the_cluster_and_its_output_is_the_answer(
    url: str, server: Server
) -> None:
    first = server.cluster.addresses[1][0]
    address = f"{first.host}:{first.port}"
    shows = "import os, sys; print(*sys.argv[1:]); print(os.environ['{name}'], file=sys.stderr)"
    await passes(
        url,
        f"""\
        - run:
            command:
              - {sys.executable}
              - -c
              - {shows.format(name="FENCEPOST_BOOTSTRAP")}
              - at {{bootstrap}}
          expect:
            exit_code: 0
            output: {{matches: '^at {address},.*\\n{address},'}}
        - run:
            command: [{sys.executable}, -c, "{shows.format(name="OWN")}"]
            env: {{OWN: "{{control}}/healthz"}}
          expect: {{output: {{contains: "{url}/healthz"}}}}
        """,
    )


async def test_one_that_fails_fails_the_scenario_unless_it_is_expected(url: str) -> None:
    ends = f"{PYTHON} \"print('no'); print('room'); raise SystemExit(3)\""
    await passes(url, f"- {{run: '{_quoted(ends)}', expect: {{exit_code: 3}}}}")
    report = await fails(url, f"- run: '{_quoted(ends)}'")
    assert "  exit_code: expected 0, came 3" in report
    assert report[5:8] == ["    output:", "    | no", "    | room"]


async def test_one_in_the_background_goes_on_until_it_is_killed(url: str) -> None:
    await passes(
        url,
        f"""\
        - run: {{command: [{sys.executable}, -c, "{WAITS}"], ready: {{output: up}}}}
          background: shop
        - expect: {{pending: shop}}
        - {{kill: {{process: shop, signal: STOP}}, expect: {{running: true}}}}
        - {{kill: shop, expect: {{running: false, exit_code: -9}}}}
        - {{process: shop, expect: {{output: {{contains: up}}}}}}
        """,
    )


async def test_its_output_and_its_exit_are_waited_for(url: str) -> None:
    program = "import time; time.sleep(0.05); print('paid'); time.sleep(0.05)"
    await passes(
        url,
        f"""\
        - run: [{sys.executable}, -c, "{program}"]
          background: shop
        - process: shop
          until: {{output: {{contains: paid}}}}
        - {{await: shop, expect: {{exit_code: 0}}}}
        """.replace("run: [", "run: {command: [").replace('0.05)"]', '0.05)"]}'),
    )


async def test_a_port_shows_that_it_is_ready(url: str) -> None:
    (port,) = free_ports(1)
    program = (
        "import socket, time; time.sleep(0.05); "
        f"listener = socket.create_server(('127.0.0.1', {port})); time.sleep(60)"
    )
    await passes(
        url,
        f"""\
        - run: {{command: [{sys.executable}, -c, "{program}"], ready: {{port: {port}}}}}
          background: shop
        """,
    )
    with pytest.raises(OSError, match="refused"):  # it was killed with the scenario's end
        await asyncio.open_connection("127.0.0.1", port)


async def test_one_that_is_never_ready_fails_with_its_output(url: str) -> None:
    report = await fails(
        url,
        f"""\
        - run: {{command: "{sys.executable} -c 'print(7)'", ready: {{output: up}}}}
          background: shop
        """,
    )
    assert '  expected it ready, came "it exited with 0 before it was ready"' in report
    assert "The process shop:" in report
    assert "  | 7" in report
    report = await fails(
        url,
        f"""\
        - run: {{command: [{sys.executable}, -c, "{WAITS}"], ready: {{output: down}}}}
          background: shop
          within_ms: 50
        """,
    )
    assert '  expected it ready, came "it was not ready within 0.05 s"' in report


async def test_an_exit_that_does_not_come_fails(url: str) -> None:
    report = await fails(url, f'- {{run: [{sys.executable}, -c, "{WAITS}"], within_ms: 400}}')
    assert '  expected its exit, came "no exit within 400 ms"' in report


async def test_a_program_that_is_not_there_is_told(url: str) -> None:
    report = await fails(url, "- run: /no/such/program")
    assert "  /no/such/program cannot be run: No such file or directory" in report
    report = await fails(url, "- run: {command: x, directory: no-such}")
    assert report[1].startswith("  there is no directory ")


async def test_what_a_process_has_started_ends_with_the_scenario(url: str) -> None:
    gone = asyncio.Event()

    async def wait_for_end(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        gone.set()
        writer.close()

    listener = await asyncio.start_server(wait_for_end, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    child = (
        f"import socket, signal; there = socket.create_connection(('127.0.0.1', {port})); "
        "print('connected', flush=True); signal.pause()"
    )
    parent = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]])"
    async with listener:
        await passes(
            url,
            f"""\
            - run:
                command: [{sys.executable}, -c, "{parent}", "{child}"]
                ready: {{output: connected}}
              background: shop
            """,
        )
        await asyncio.wait_for(gone.wait(), 10)


async def test_the_last_output_is_kept(url: str) -> None:
    outcome = await played(
        url, f"- run: [{sys.executable}, -c, \"print('a' * 100000); print('end')\"]"
    )
    answer = outcome.steps[0].answer
    assert isinstance(answer, dict)
    assert isinstance(answer["output"], str)
    assert len(answer["output"]) == 64 << 10
    assert answer["output"].endswith("a\nend\n")


async def test_it_is_given_the_token_and_runs_beside_the_file(tmp_path: Path) -> None:
    folder = str(tmp_path / "shop")
    processes = Processes({"bootstrap": "b:1", "control": "http://c"}, "secret", tmp_path)
    (tmp_path / "shop").mkdir()
    program = "import os; print(os.environ['FENCEPOST_CONTROL_TOKEN'], os.getcwd())"
    body = RunBody(command=(sys.executable, "-c", program), directory="shop")
    process = await processes.start(body)
    assert await process.wait(10)
    assert process.answer().output == f"secret {folder}\n"
    await processes.close()


@pytest.mark.parametrize("step", ["{run: x}", "{together: [{run: x}]}"])
def test_a_scenario_starts_no_process_unless_it_may(step: str) -> None:
    told = Told()
    with pytest.raises(ScenarioFileError) as caught:
        run(scenario(f"- {step}"), told)
    assert str(caught.value) == (
        "test.yaml:7:5: this step starts a process on this machine, which --allow-run allows"
    )
    assert told.lines == []


def test_no_verb_runs_a_process() -> None:
    assert VERBS.keys().isdisjoint(("run", "process", "kill"))


@pytest.mark.parametrize(
    ("step", "told"),
    [
        ("{run: ''}", "f:7:11: command: there is no program in it"),
        ("{run: {}}", "f:7:6: command is left out"),
        ("{run: x, until: {outpt: y}}", "f:7:22: the answer has no field 'outpt'"),
        ("{run: {command: x, ready: {}}, background: y}", "f:7:31: ready: output or port"),
        ("{run: {command: x, ready: {output: '('}}, background: y}", "f:7:40: ready.output: no"),
        (
            "{run: {command: x, ready: {port: 80}}}",
            "f:7:24: only a process in the background is waited for until it is ready",
        ),
        ("{run: {command: x, env: [y]}}", "f:7:29: env: 'y' is not KEY=VALUE"),
        ("{kill: shop}", "f:7:12: no process 'shop' is in the background"),
        ("{process: {process: shop}}", "f:7:25: no process 'shop' is in the background"),
    ],
)
def test_mistakes(step: str, told: str) -> None:
    with pytest.raises(ScenarioFileError) as caught:
        scenario(f"- {step}")
    assert str(caught.value).replace("test.yaml", "f").startswith(told)


def _quoted(text: str) -> str:
    """As it stands between single quotes in YAML."""
    return text.replace("'", "''")
