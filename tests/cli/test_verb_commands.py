"""Every verb has a command, which asks what the catalogue says; what answers look like."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Final

import pytest

from fencepost.cli import main
from fencepost.cli.parameters import Parameter, parameters
from fencepost.cli.verb_commands import BY_WORDS
from fencepost.verbs.catalogue import CATALOGUE, PATH_TYPES, Method, Shape, Verb
from tests.cli.shell import Shell
from tests.harness.fake_control_api import FakeControlApi, Reply, ok, stream

each_verb = pytest.mark.parametrize("verb", CATALOGUE, ids=lambda verb: verb.name)


def least(verb: Verb) -> list[str]:
    """A command line of what the verb cannot do without."""
    words = verb.commands[0].split()
    for each in parameters(verb):
        if each.is_required:
            words += [_value(each)] if each.is_argument else [each.flags[0], _value(each)]
    return [*words, *_ONE_OF.get(verb.name, ())]


_ONE_OF: Final = {
    "add_fault": ("--drop",),
    "add_tier_fault": ("--error", "no"),
    "produce_records": ("--value", "7"),
    "verify": ("--count", "7"),
}
"""What cannot be left out altogether."""


def _value(parameter: Parameter) -> str:
    if parameter.is_argument and parameter.choices:
        return parameter.choices[0]
    return {"api": "Produce", "offsets": "t:0:7"}.get(parameter.name, "7")


@each_verb
def test_every_verb_has_a_command_that_asks_for_it(
    verb: Verb, stub: FakeControlApi, shell: Shell
) -> None:
    is_stream = verb.shape is Shape.STREAM
    stub.will(stream('data: {"number": 1}') if is_stream else ok({"an": "answer"}))
    if verb.shape is Shape.STREAM:
        main([*least(verb), "--count", "0"])
    else:
        assert shell.json(" ".join(least(verb))) == {"an": "answer"}
        (asked,) = stub.asked
        path = verb.path.format_map(dict.fromkeys(PATH_TYPES, 7))
        assert (asked.method, asked.target) == (verb.method, path)


@each_verb
def test_the_help_of_a_command_shows_all_that_its_verb_takes(
    verb: Verb, monkeypatch: pytest.MonkeyPatch, shell: Shell
) -> None:
    monkeypatch.setenv("COLUMNS", "250")
    text = shell.text(f"{verb.commands[0]} --help")
    assert [verb.summary, *verb.subcommands.values()][bool(verb.subcommands)] in text
    for each in parameters(verb):
        line = next(line for line in text.splitlines() if f" {each.display_name}" in line)
        assert each.kind.is_flag or each.metavar in line
    for flag in ("--control", "--json", "--help"):
        assert f" {flag} " in text


def test_help_says_what_the_models_say() -> None:
    """In a process of its own: once the fields are described, they stay so."""
    command = [sys.executable, "-m", "fencepost", "fault", "add", "--help"]
    environment = {**os.environ, "COLUMNS": "250"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    lines = {line.split()[1]: line for line in done.stdout.splitlines() if len(line.split()) > 2}
    assert "How many matching requests pass before the first hit." in lines["--after"]
    assert "[default: 0]" in lines["--after"]
    assert "Kafka's name of an error, or its code." in lines["--error"]
    assert "always: all, always." in lines["--count"]


EVERY_SELECTOR: Final = (
    "fault add Fetch --drop --versions 4-8 --broker 2 --client-id c --topic t --partition 0"
    " --group g --transactional-id x --count 3 --after 2 --probability 0.5"
)
BODIES: Final = [
    ("elect t 0 --leader 2", {"leader": 2}),
    ("elect t 0 --leader 2 --unclean", {"leader": 2, "unclean": True}),
    ("hold t 0 1", {}),
    ("hold t 0 1 --at 17 --leave-isr", {"at": 17, "leave_isr": True}),
    ("step t 0 1 --fetches=3", {"fetches": 3}),
    ("broker kill 1 --fence never", {"fence": "never"}),
    ("broker isolate 1 --from controller", {"from": "controller"}),
    ("broker isolate 1 --from 2 --from 3", {"from": [2, 3]}),
    ("broker isolate 1 --from 2,3 --fence timeout", {"from": [2, 3], "fence": "timeout"}),
    ("tier upload t 0", {"action": "upload"}),
    ("tier delete-local t 0", {"action": "delete-local"}),
    (
        "tier add-fault upload --error NO_SUCH_ERROR",
        {"operation": "upload", "error": "NO_SUCH_ERROR"},
    ),
    (
        "tier add-fault fetch --delay-ms 200 --count always",
        {"operation": "fetch", "delay_ms": 200, "count": None},
    ),
    ("clock advance 500", {"ms": 500}),
    ("topic create t", {"name": "t"}),
    (
        "topic create t --partitions 2 --replication-factor 3 --config a.b=c=d --config e=",
        {
            "name": "t",
            "partitions": 2,
            "replication_factor": 3,
            "configs": {"a.b": "c=d", "e": ""},
        },
    ),
    (
        "topic create t --assignment 1,2 --assignments 3,1",
        {"name": "t", "assignments": [[1, 2], [3, 1]]},
    ),
    ("fault add Produce --error 7", {"api": "Produce", "action": {"error": 7}}),
    ("fault add 0 --error NETWORK_EXCEPTION", {"api": 0, "action": {"error": "NETWORK_EXCEPTION"}}),
    ("fault add Fetch --delay 200", {"api": "Fetch", "action": {"delay": 200}}),
    ("fault add Fetch --delay 0", {"api": "Fetch", "action": {"delay": 0}}),
    ("fault add Fetch --disconnect after", {"api": "Fetch", "action": {"disconnect": "after"}}),
    ("fault add Fetch --throttle 9", {"api": "Fetch", "action": {"throttle": 9}}),
    ("fault add Fetch --drop", {"api": "Fetch", "action": {"drop": True}}),
    ("fault add Fetch --corrupt", {"api": "Fetch", "action": {"corrupt": True}}),
    ("fault add Metadata --stale-metadata 4", {"api": "Metadata", "action": {"stale_metadata": 4}}),
    (
        "fault add Produce,1 --sequence drop,delay=5 --sequence error=56",
        {
            "api": ["Produce", 1],
            "sequence": [{"drop": True}, {"delay": 5}, {"error": 56}],
        },
    ),
    (
        "fault add * --key k --header a=b=c --observe",
        {
            "api": "*",
            "record": {"key": "k", "header": ["a", "b=c"]},
            "action": {"observe": True},
        },
    ),
    (
        "fault add Produce --header a --pass",
        {"api": "Produce", "record": {"header": ["a", None]}, "action": {"pass": True}},
    ),
    (
        EVERY_SELECTOR,
        {
            "api": "Fetch",
            "versions": "4-8",
            "broker": 2,
            "client_id": "c",
            "topic": "t",
            "partition": 0,
            "group": "g",
            "transactional_id": "x",
            "count": 3,
            "after": 2,
            "probability": 0.5,
            "action": {"drop": True},
        },
    ),
    (
        "fault add Fetch --drop --count always --versions -8",
        {"api": "Fetch", "versions": -8, "count": None, "action": {"drop": True}},
    ),
]


@pytest.mark.parametrize(("line", "body"), BODIES, ids=[line for line, _ in BODIES])
def test_what_is_given_is_what_is_asked(
    line: str, body: dict[str, object], stub: FakeControlApi, shell: Shell
) -> None:
    shell.json(line)
    asked = stub.asked[0].body
    # An action of None is none, as one that is not there.
    asked["action"] = _told(asked.get("action", {}))
    assert asked == {"action": {}, **body}


def _told(action: object) -> object:
    if isinstance(action, dict):
        return {name: value for name, value in action.items() if value is not None}
    return action


@pytest.mark.parametrize(
    ("line", "query"),
    [
        ("fault wait 3 --hits 2 --timeout-ms 50", "/v1/faults/3/wait?hits=2&timeout_ms=50"),
        ("trace list", "/v1/trace"),
        ("trace", "/v1/trace"),
        ("trace --api Fetch --since 4", "/v1/trace?api=Fetch&since=4"),
        ("trace list --client-id c --topic t", "/v1/trace?client_id=c&topic=t"),
        ("trace wait --api 1 --timeout-ms 5", "/v1/trace/wait?api=1&timeout_ms=5"),
        ("partition a/b 3", "/v1/topics/a%2Fb/partitions/3"),
    ],
)
def test_what_is_seen_is_asked_for_in_the_path(
    line: str, query: str, stub: FakeControlApi, shell: Shell
) -> None:
    shell.json(line)
    (asked,) = stub.asked
    assert (asked.method, asked.target, asked.content) == (Method.GET, query, b"")


def test_json_is_printed_as_it_came(stub: FakeControlApi, shell: Shell) -> None:
    content = b'[{"name":"t","told":"by a newer cluster"}]'
    stub.will(Reply(content=content))
    assert shell.text("topics --json") == f"{content.decode()}\n"


def test_no_proxy_comes_between(
    stub: FakeControlApi, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    shell.json("topics")


def test_where_the_cluster_is_may_be_told(
    stub: FakeControlApi, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FENCEPOST_CONTROL", "http://127.0.0.1:9")
    shell.json(f"topics --control {stub.url}")


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (400, b'{"error": "INVALID_REQUEST", "message": "no"}', "fencepost: no (INVALID_REQUEST)"),
        (404, b'{"detail": "x"}', "/v1/reset answered 404"),
        (500, b"<html>", "/v1/reset answered 500"),
        (200, b"<html>", "/v1/reset answered something else than Done"),
    ],
)
def test_an_answer_that_will_not_do_is_one_line_and_exit_code_1(
    stub: FakeControlApi, status: int, body: bytes, message: str, shell: Shell
) -> None:
    stub.will(Reply(status=status, content=body))
    assert message in shell.refusal("reset", 1)


def test_a_control_url_must_be_one(shell: Shell) -> None:
    refusal = shell.refusal("reset --control file:///etc/passwd", 1)
    assert "is not the URL of a control API" in refusal


def test_the_words_of_commands_are_their_own() -> None:
    assert len(BY_WORDS) == sum(len(verb.commands) for verb in CATALOGUE)


def test_a_command_that_asks_imports_no_server_and_no_terminal(stub: FakeControlApi) -> None:
    stub.will(ok([]))
    code = (
        "import sys; from fencepost.cli import main; main(['topics'])\n"
        "names = {'h11', 'uvloop', 'asyncio', 'kio', 'rich', 'structlog'}\n"
        "names |= {'fencepost.control', 'fencepost.broker.server'}\n"
        "names |= {'fencepost.broker.node.broker'}\n"
        "print(*names & set(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr.strip()) == (
        "topic  partitions  replicas  configs  topic id\n",
        "",
    )
