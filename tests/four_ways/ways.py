"""The four ways to have a verb done. Each is given a row, and gives its answer as JSON.

HTTP and the command line are used as their users do, and not by what Python's methods are made of:
the four have little in common but the cluster.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx
import yaml

from fencepost.cli import main
from fencepost.testing import Cluster
from fencepost.verbs.catalogue import VERBS, Method, Shape
from fencepost.verbs.model import Model
from fencepost.verbs.remote import Refused
from tests.four_ways.meeting import (
    CLIENT_ID,
    GROUP,
    TOPIC,
    TRANSACTIONAL_ID,
    Json,
    join,
    list_offsets,
    produce,
    produce_key,
    transact,
)
from tests.four_ways.row import FAULT_ID, MEMBER, SINCE, WATCH, Given, Row, Step

_CLIENT: Final = {"topic": TOPIC, "client": CLIENT_ID}
_ACTIONS: Final[dict[str, Given]] = {
    "produce": {**_CLIENT, "version": 9, "records": ["a"], "acks": 1},
    "produce_key": {**_CLIENT, "version": 9, "records": [{"key": "k", "value": "a"}], "acks": 1},
    "list_offsets": {**_CLIENT, "version": 7},
    "join": {"group": GROUP, "member": CLIENT_ID, "topics": [TOPIC]},
    "begin_transaction": {"producer": TRANSACTIONAL_ID},
    "send_in_transaction": {"producer": TRANSACTIONAL_ID, "topic": TOPIC, "records": ["a"]},
}
"""What a client does before some rows, as steps of a scenario."""


class RefusedSo(Exception):
    """The cluster refused; the text is the code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cast:
    """The parts of a run: the cluster, an HTTP client of it, and a folder to write in."""

    cluster: Cluster
    http: httpx.Client
    folder: Path

    @property
    def broker(self) -> tuple[str, int]:
        """The address of broker 1."""
        host, _, port = self.cluster.bootstrap.split(",")[0].rpartition(":")
        return host, int(port)

    def prepare(self, steps: tuple[Step, ...]) -> dict[str, int | str]:
        """A fresh cluster, and what stands before a row; values of placeholders."""
        self.ask("reset", {})
        known: dict[str, int | str] = {}
        for name, given in steps:
            if name == WATCH[0]:
                known[SINCE] = self._watch() - 1
            elif name == "transact":
                transact(self.cluster.bootstrap)
            elif name == "join":
                known[MEMBER] = join(self.broker)
            elif name == "produce":
                assert produce(self.broker)["told"] == "NONE"
            elif name == "produce_key":
                assert produce_key(self.broker)["told"] == "NONE"
            elif name == "list_offsets":
                assert list_offsets(self.broker)["told"].startswith("NONE")
            else:
                answer = self.ask(name, given)
                if name in ("add_fault", "add_tier_fault"):
                    known[FAULT_ID] = answer["id"]
        return known

    def ask(self, name: str, given: Given) -> Json:
        """Have a verb done over HTTP. :raises RefusedSo: When it is refused."""
        verb = VERBS[name]
        path = verb.path.format_map({key: given[key] for key in verb.path_parameters})
        rest = {key: value for key, value in given.items() if key not in verb.path_parameters}
        if verb.method is Method.GET:
            answer = self.http.get(path, params=rest)
        else:
            answer = self.http.request(verb.method, path, json=rest or None)
        if answer.status_code != 200:
            assert 400 <= answer.status_code < 500, answer.text
            raise RefusedSo(answer.json()["error"])
        return answer.json()

    def stream(self, name: str, given: Given) -> Json:
        """The first event of a stream."""
        with self.http.stream("GET", VERBS[name].path, params=dict(given)) as answer:
            return next(_data(answer))

    def _watch(self) -> int:
        """The number of the event that a topic is created."""
        with self.http.stream("GET", VERBS["events"].path) as answer:
            events = _data(answer)
            self.ask("create_topic", {"name": TOPIC, "assignments": [[1, 2, 3]]})
            number: int = next(each for each in events if each["kind"] == "verb")["number"]
            return number


def _data(answer: httpx.Response) -> Iterator[Json]:
    for line in answer.iter_lines():
        if line.startswith("data: "):
            yield json.loads(line.removeprefix("data: "))


def by_http(cast: Cast, row: Row) -> Json:
    """A request, as any program sends it."""
    given = _filled(row.given, cast.prepare(row.before))
    if VERBS[row.verb].shape is Shape.STREAM:
        return cast.stream(row.verb, given)
    return cast.ask(row.verb, given)


def by_command_line(cast: Cast, row: Row) -> Json:
    """A command, as a person types it."""
    known = cast.prepare(row.before)
    words = [str(known.get(word, word)) for word in row.command.split()]
    code, printed, problem = _run(*words, "--control", cast.cluster.control, "--json")
    if code == 1:
        (refused,) = re.findall(r"\((\w+)\)$", problem.strip())
        raise RefusedSo(refused)
    assert (code, problem) == (0, "")
    return json.loads(printed)


def by_scenario(cast: Cast, row: Row) -> Json:
    """The last step of a scenario, which itself does what stands before."""
    cast.prepare(())  # before the scenario asks each broker whether it fits
    steps = [step for name, given in row.before for step in _steps(name, given)]
    (last,) = _steps(row.verb, row.given)
    if row.refused is not None:
        last["expect"] = {"refused": row.refused}
    cluster = {"brokers": 3, "clock": row.clock, "configs": dict(row.configs)}
    scenario = {"summary": row.command, "teaches": "It works.", "cluster": cluster}
    file = cast.folder / "row.yaml"
    file.write_text(yaml.safe_dump({**scenario, "steps": [*steps, last]}, sort_keys=False))
    command = ["scenario", "run", str(file), "--against", cast.cluster.control, "--reset", "--json"]
    code, printed, problem = _run(*command)
    assert code == 0, f"{printed}\n{problem}"
    if row.refused is not None:
        raise RefusedSo(row.refused)
    (played,) = json.loads(printed)
    answer = played["steps"][-1]["answer"]
    return answer[0] if VERBS[row.verb].shape is Shape.STREAM else answer


def by_python(cast: Cast, row: Row) -> Json:
    """A method of the fixture ``fencepost``."""
    given = _filled(row.given, cast.prepare(row.before))
    takes = VERBS[row.verb].request_model
    fields = {} if takes is None else takes.model_fields
    names = {each.json_name: name for name, each in fields.items()}
    try:
        answer = getattr(cast.cluster, row.verb)(
            **{names.get(name, name): value for name, value in given.items()}
        )
        if VERBS[row.verb].shape is Shape.STREAM:
            answer = next(answer)
    except Refused as refused:
        raise RefusedSo(refused.code) from None
    return _plain(answer)


WAYS: Final[dict[str, Callable[[Cast, Row], Json]]] = {
    "HTTP": by_http,
    "command line": by_command_line,
    "scenario": by_scenario,
    "Python": by_python,
}


def _run(*words: str) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a command."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(words)
    return code, out.getvalue(), err.getvalue()


def _steps(name: str, given: Given) -> list[dict[str, Json]]:
    if name == WATCH[0]:
        created = {"name": TOPIC, "assignments": [[1, 2, 3]]}
        return [{"events": {}, "as": "watched"}, {"create_topic": created}]
    if name == "transact":
        return [*_steps("begin_transaction", {}), *_steps("send_in_transaction", {})]
    known = {
        FAULT_ID: "$fault.id",
        MEMBER: "$member.member_id",
        SINCE: "$watched.0.number",
    }
    filled = _filled(_ACTIONS.get(name, given), known)
    step: dict[str, Json] = {name.removesuffix("_key"): filled}
    if name in ("add_fault", "add_tier_fault"):
        step["as"] = "fault"
    if name == "join":
        step["as"] = "member"
    return [step]


def _filled(given: Given, known: Mapping[str, int | str]) -> dict[str, Json]:
    return {
        name: known.get(value, value) if isinstance(value, str) else value
        for name, value in given.items()
    }


def _plain(answer: object) -> Json:
    if isinstance(answer, list):
        return [_plain(each) for each in answer]
    assert isinstance(answer, Model)
    return answer.model_dump(mode="json")
