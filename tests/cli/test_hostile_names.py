"""Nothing that a client names acts on a terminal, or forges a row of what is printed.

What is shown is derived: every verb's command, with answers whose every text is hostile; whatever
prints, by reading the source; and recordings of the commands on a terminal, of a served cluster.
"""

from __future__ import annotations

import ast
import io
import json
import re
import unicodedata
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from rich.console import Console

import fencepost.cli
from fencepost.broker.server import logs
from fencepost.cli import main, rich_output, tables
from fencepost.cli.output import Text, complain, line, plain_lines, show_json, show_text
from fencepost.cli.verb_commands import BY_WORDS, print_answer
from fencepost.testing.report import as_text
from fencepost.verbs.answers import Answer
from fencepost.verbs.answers.cluster import ExchangeState, TimelineState
from fencepost.verbs.catalogue import CATALOGUE, Shape, Verb
from fencepost.verbs.model_schema import model_schema
from fencepost.verbs.timeline_text import timeline_text
from tests.cli.shell import REQUIRED, Json, Shell
from tests.cli.terminal import shown, terminal
from tests.harness.fake_control_api import FakeControlApi, Reply, ok, refusal, stream
from tests.harness.wire import ZERO_UUID, Connection

HOSTILE: Final = "evil\x1b]0;title\x07\x1b[2J\x9b31m\r\nforged  row\u2028\u202e\x7f"
"""A title, a cleared screen, CSI of C1, a forged row, a separator of lines, text to the left."""
SHOWN: Final = "evil\\x1b]0;title\\x07\\x1b[2J\\x9b31m\\r\\nforged  row\\u2028\\u202e\\x7f"
_ACTS: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_OURS: Final = re.compile(r"\x1b\[\d*(;\d+)*[mHK]|\x1b\[[012]?J|\x1b\[\?(25|1049)[hl]|\r?\n")
"""Colours, moves, the screen of its own and the cursor, and ends of lines."""


def acting(text: str) -> set[str]:
    """What is left that acts on a terminal, without what rich writes of its own."""
    return {each for each in _OURS.sub("", text) if unicodedata.category(each) in _ACTS}


# -- answers whose every text is hostile --------------------------------------------------------


def hostile(schema: Mapping[str, Any], root: Mapping[str, Any], text: str) -> Json:
    """A value of a JSON schema, whose texts are what is given."""
    if "$ref" in schema:
        return hostile(root["$defs"][schema["$ref"].rpartition("/")[2]], root, text)
    choices = [each for each in schema.get("anyOf", ()) if each.get("type") != "null"]
    if choices:
        return hostile(choices[-1], root, text)
    if "const" in schema or "enum" in schema:
        return schema.get("const") or schema["enum"][0]
    if schema.get("type") == "object":
        return hostile_object(schema, root, text)
    if "prefixItems" in schema:
        return [hostile(each, root, text) for each in schema["prefixItems"]]
    if schema.get("type") == "array":
        return [hostile(schema.get("items", {}), root, text)]
    numbers = {"integer": 1, "number": 1, "boolean": True}
    return numbers.get(schema.get("type", ""), text)


def hostile_object(schema: Mapping[str, Any], root: Mapping[str, Any], text: str) -> Json:
    fields = schema.get("properties", {})
    if fields:
        return {name: hostile(each, root, text) for name, each in fields.items()}
    values = schema.get("additionalProperties")
    return {text: hostile(values if isinstance(values, Mapping) else {}, root, text)}


KINDS: Final = list(dict.fromkeys(verb.response_model for verb in CATALOGUE))


def answer(kind: type[Answer], text: str = HOSTILE) -> Answer:
    schema = model_schema(kind)
    return kind.model_validate_json(json.dumps(hostile(schema, schema, text)))


def content(verb: Verb) -> bytes:
    one = answer(verb.response_model).model_dump_json()
    return (f"[{one},{one}]" if verb.shape is Shape.LIST else one).encode()


def test_answers_of_verbs_have_hostile_texts() -> None:
    """Otherwise the tests below would show nothing."""
    hold = [verb.name for verb in CATALOGUE if b"title" in content(verb)]
    assert set(hold) >= {"topics", "faults", "trace", "events", "partition", "cluster", "tier"}


@pytest.mark.parametrize("verb", CATALOGUE, ids=lambda verb: verb.name)
def test_a_command_prints_lines_of_its_own_alone(
    verb: Verb, capsys: pytest.CaptureFixture[str]
) -> None:
    print_answer(verb, content(verb), as_json=False)
    hostile_text = capsys.readouterr().out
    assert acting(hostile_text) == set()
    # With a harmless name of one line there are as many lines.
    harmless = answer(verb.response_model, "x").model_dump_json()
    print_answer(
        verb,
        (f"[{harmless},{harmless}]" if verb.shape is Shape.LIST else harmless).encode(),
        as_json=False,
    )
    assert hostile_text.count("\n") == capsys.readouterr().out.count("\n")
    assert hostile_text.splitlines() == hostile_text.split("\n")[:-1]


@pytest.mark.parametrize("width", [40, 100, 400])
@pytest.mark.parametrize(
    "kind", {verb.response_model for verb in CATALOGUE}, ids=lambda k: k.__name__
)
def test_what_rich_draws_acts_by_its_own_codes_alone(kind: type[Answer], width: int) -> None:
    one = answer(kind)
    console = Console(file=io.StringIO(), force_terminal=True, width=width, highlight=False)
    for block in (*tables.one(one), tables.short(one), tables.many(kind, [one, one])):
        console.print(rich_output.to_renderable(block, width))
        assert all(acting(text) == set() and "\n" not in text for text in plain_lines(block))
    assert isinstance(console.file, io.StringIO)
    drawn = console.file.getvalue()
    assert acting(drawn) == set()
    assert "\x1b]" not in drawn


@pytest.mark.parametrize(
    "words", [each for each in BY_WORDS if BY_WORDS[each].path_parameters == ()]
)
def test_an_error_is_one_line(words: str, stub: FakeControlApi, shell: Shell) -> None:
    stub.will(refusal(400, HOSTILE, HOSTILE))
    printed = shell.refusal(f"{words} {REQUIRED.get(words, '')}".rstrip(), 1)
    assert SHOWN in printed
    assert acting(printed) == set()


def test_json_stays_json_and_is_as_it_came_in_a_pipe(stub: FakeControlApi, shell: Shell) -> None:
    state = answer(ExchangeState).model_dump(mode="json")
    stub.will(ok([state]))
    assert shell.json("trace") == [state]
    stub.will(stream(f"data: {answer(BY_WORDS['events'].response_model).model_dump_json()}"))
    assert shell.json("events")["topic"] == HOSTILE


def test_json_on_a_terminal_says_the_same(stub: FakeControlApi) -> None:
    state = answer(ExchangeState).model_dump(mode="json")
    stub.will(Reply(content=json.dumps([state], ensure_ascii=False).encode()))
    written = shown("trace --json", columns=1000)
    assert acting(written) == set()
    assert json.loads(written) == [state]


@pytest.mark.parametrize("options", ["--json", ""])
def test_an_interrupt_cuts_nothing_that_is_written_to_a_terminal(
    options: str, stub: FakeControlApi
) -> None:
    """A terminal keeps less than this, so that the command still writes when Ctrl-C comes."""
    state = answer(ExchangeState).model_dump(mode="json")
    stub.will(ok([state] * 1000), ok([state] * 1000))
    whole = shown(f"trace {options}", columns=400)
    with terminal(f"trace {options}", columns=400, rows=40, PYTHONUNBUFFERED="1") as made:
        made.read()
        made.interrupt()
        assert made.finish() != 0
        assert made.written.replace("\r\n", "\n").startswith(whole)


# -- everything that prints ---------------------------------------------------------------------

PRINTING: Final = {"output.py", "serve.py"}
"""The module that writes plain text, and the ready line, which is JSON in ASCII."""
DRAWING: Final = {"rich_output.py", "watch_screen.py"}


def calls(path: Path) -> Iterator[str]:
    """Names of what a module calls."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func)


def test_nothing_else_writes_to_standard_output_or_error() -> None:
    for path in Path(fencepost.cli.__file__).parent.glob("*.py"):
        names = set(calls(path))
        if path.name not in PRINTING:
            assert not names & {"print", "typer.echo", "typer.secho", "sys.stdout.write"}, path
        if path.name not in DRAWING:
            assert "Console" not in names, path


def test_rich_is_given_text_by_one_function_alone() -> None:
    """`rich_output.rich` escapes; a `Rich` made of a text elsewhere would not be."""
    folder = Path(fencepost.cli.__file__).parent
    makes = {path.name: list(calls(path)).count("Rich") for path in map(folder.joinpath, DRAWING)}
    assert makes == {"rich_output.py": 1, "watch_screen.py": 1}  # there, an empty line


def test_what_is_printed_by_hand_is_escaped(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    show_text(f"one\ntwo {HOSTILE}")
    complain(HOSTILE)
    printed = capsys.readouterr()
    assert acting(printed.out) == acting(printed.err) == set()
    assert printed.err == f"{SHOWN}\n"
    assert list(plain_lines(line(HOSTILE, Text(HOSTILE, "bold")))) == [SHOWN * 2]
    show_json(json.dumps(HOSTILE, ensure_ascii=False))
    assert json.loads(capsys.readouterr().out) == HOSTILE


def test_a_failing_tests_report_is_of_its_own_lines_alone() -> None:
    state = answer(TimelineState)
    assert isinstance(state, TimelineState)
    text = as_text(timeline_text(state))
    assert SHOWN in text
    assert acting(text) == set()
    assert text.count("\n") == len(list(timeline_text(state)))


def test_the_log_on_a_terminal_is_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    class Screen(io.StringIO):
        def isatty(self) -> bool:
            return True

    screen = Screen()
    monkeypatch.setattr("sys.stderr", screen)
    logs._configured.cache_clear()
    try:
        logs.logger(client_id=HOSTILE).warning("bad_request", detail="\x1b]0;title\x07")
    finally:
        logs._configured.cache_clear()
    assert "detail" in screen.getvalue()
    assert screen.getvalue().count("x1b]0;title") == 2
    assert acting(screen.getvalue()) == set()


# -- the user of a URL --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ("topics --control http://me:secret@127.0.0.1:1", 1),
        ("topics --control http://me:se/cret@there", 1),
        ("topics --control me:secret@there:1", 1),
        ("watch --control http://me:secret@127.0.0.1:1", 1),
        ("topics http://me:secret@there", 2),
        ("topics --controll=http://me:secret@there", 2),
        ("scenario run http://me:secret@there/x.yaml", 2),
        ("serve --advertise http://me:secret@there:x/ --brokers 0", 2),
        ("serve --remote ftp://me:secret@there", 2),
        ("serve --remote http://me:se/cret@there", 2),
        ("serve --topic http://me:secret@there", 2),
        ("serve http://me:secret@there", 2),
    ],
)
def test_no_error_has_the_user_of_a_url(
    arguments: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments.split()) == code
    printed = capsys.readouterr()
    assert printed.err
    assert "cret" not in printed.err + printed.out


# -- recordings of a served cluster -------------------------------------------------------------


@pytest.fixture
def attacked(control: str, shell: Shell) -> int:
    """A cluster whose journal, faults and events have hostile names; the port of its broker 1."""
    port: int = shell.json("broker list")[0]["port"]
    for selector in ("--client-id", "--group", "--transactional-id"):
        add = ["fault", "add", "FindCoordinator", "--drop", selector, HOSTILE, "--json"]
        assert main(add) == 0
    assert (
        main(["fault", "add", "Metadata", "--error", "UNKNOWN_SERVER_ERROR", "--count", "always"])
        == 0
    )
    ask_for_hostile_names(port)
    return port


def ask_for_hostile_names(port: int) -> None:
    """A hostile topic, by a client with a hostile name, which is hit by a fault."""
    topics = [{"TopicId": ZERO_UUID, "Name": HOSTILE}]
    with Connection(("127.0.0.1", port), client_id=HOSTILE) as connection:
        connection.call("Metadata", 12, {"Topics": topics, "AllowAutoTopicCreation": False})


COMMANDS: Final = sorted(
    words
    for words, verb in BY_WORDS.items()
    if verb.method == "GET" and verb.shape is not Shape.STREAM and not verb.path_parameters
    if words != "trace wait"
)


@pytest.mark.parametrize("columns", [60, 200])
def test_a_recording_of_every_table_has_our_control_bytes_alone(
    attacked: int, columns: int, shell: Shell, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    fault = shell.json("fault list")[0]["id"]
    for words in (*COMMANDS, f"fault show {fault}", "broker list", "partition t 0"):
        written = shown(words, columns=columns)
        assert acting(written) == set(), words
        if words in ("trace list", "fault list", f"fault show {fault}"):
            assert "\\x1b]0;title" in re.sub(r"\s|\x1b\[[\d;]*m", "", written), words


@pytest.mark.parametrize(("columns", "rows"), [(60, 30), (200, 50)])
def test_a_recording_of_watch_has_our_control_bytes_alone(
    attacked: int, columns: int, rows: int
) -> None:
    with terminal("watch", columns=columns, rows=rows) as made:
        seen = made.wait_for("\\x1b]0;title")
        ask_for_hostile_names(attacked)
        made.wait_for("fault_hit", seen)
        made.wait_for("fault_hit", seen)
        made.interrupt()
        assert made.finish() == 0
        assert acting(made.written) == set()
