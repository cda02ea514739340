"""Write the generated tables of README.md and docs/: ``python -m docs.generate``.

A table stands between ``<!-- generated: NAME -->`` and ``<!-- end -->``. tests/test_readme.py fails
when one is not what this would write.
"""

import ast
import inspect
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import fields
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Final

from docs import api_table
from docs.limits import LIMITS
from docs.statements import Proposal, Statement, proposals
from fencepost.broker.configs.broker_configs import broker_configs
from fencepost.broker.configs.config_def import ConfigDef, Effect, Table, UpdateMode
from fencepost.broker.configs.config_table import config_tables
from fencepost.broker.configs.topic_configs import topic_configs
from fencepost.broker.node.cluster import DEFAULTS
from fencepost.cli.parameters import usage
from fencepost.cli.serve_options import SERVE_OPTIONS
from fencepost.client.consumer.config import ConsumerConfig
from fencepost.protocol.apis import APIS
from fencepost.scenario.actions.context import ActionAnswer, ActionBody
from fencepost.scenario.actions.executor import ACTIONS
from fencepost.scenario.loader import read, shipped
from fencepost.verbs.bodies import Body
from fencepost.verbs.catalogue import CATALOGUE
from fencepost.verbs.model import Model
from tests.clients.tools.session import FOLDER, PROGRAMS, sessions
from tests.clients.tools.tools import NOT_RUN
from tests.oracle.random_requests.bounds import BOUNDS
from tests.oracle.random_requests.reasons import REASONS

ROOT: Final = Path(__file__).resolve().parent.parent
PAGES: Final = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))

_BLOCK: Final = re.compile(
    r"^<!-- generated: (?P<name>[a-z0-9-]+) -->\n(?P<table>.*?)^<!-- end -->$",
    re.MULTILINE | re.DOTALL,
)
_MODES: Final = {
    UpdateMode.READ_ONLY: "no",
    UpdateMode.PER_BROKER: "per broker",
    UpdateMode.CLUSTER_WIDE: "per broker or for all",
}


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table, one line a row."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def apis() -> str:
    """Every API that is served."""
    return table(
        ("key", "API", "versions served", "advertised from"),
        (
            (
                str(api.key),
                api.title,
                api_table.versions(api.min_version, api.max_version),
                str(api.advertised_min),
            )
            for api in APIS
        ),
    )


def all_apis() -> str:
    """Every API of 4.3.1."""
    return table(("key", "API", "versions here", "in 4.3.1", "note"), api_table.rows())


def random_reasons() -> str:
    """Why answers may differ from a real Kafka's."""
    return table(
        ("API", "field", "why it may differ"),
        ((f"`{_cell(each.api)}`", f"`{_cell(each.path)}`", each.why) for each in REASONS),
    )


def random_bounds() -> str:
    """What random requests leave out."""
    return table(("field", "why"), ((f"`{name}`", why) for name, why in sorted(BOUNDS.items())))


def serve_options() -> str:
    """The options of ``fencepost serve``."""
    return table(
        ("option", "environment", "default", "what it does"),
        (
            (
                f"`{f'{option.flag} {option.metavar}'.strip()}`".replace("|", "\\|"),
                f"`{option.variable}`",
                f"`{option.default}`" if option.default is not None else option.unset or "",
                option.help,
            )
            for option in SERVE_OPTIONS
        ),
    )


def broker_table() -> str:
    """The broker configs that have an effect."""
    return table(
        ("broker config", "type", "default", "changes while running", "what it does"),
        (
            (
                f"`{each.name}`",
                each.type.name.lower(),
                _default(each),
                _MODES[each.mode],
                _does(each),
            )
            for each in _acting(broker_configs())
        ),
    )


def topic_table() -> str:
    """The topic configs that have an effect."""
    return table(
        ("topic config", "type", "default", "default comes from", "what it does"),
        (
            (
                f"`{each.name}`",
                each.type.name.lower(),
                _default(each),
                f"`{each.synonym}`" if each.synonym else "",
                _does(each),
            )
            for each in _acting(topic_configs())
        ),
    )


def _acting(configs: Table) -> list[ConfigDef]:
    return [each for each in configs.values() if each.effect in (Effect.ACTS, Effect.ON_DISK)]


def _does(config: ConfigDef) -> str:
    needs = " Needs `--data-dir`." if config.effect is Effect.ON_DISK else ""
    return _cell(config.doc) + needs


def _default(config: ConfigDef) -> str:
    if config.name in DEFAULTS:
        shipped = DEFAULTS[config.name]
        return f"`{shipped}`, as in the file that Kafka ships; `{config.default}` in its code"
    if config.default is None:
        return ""
    return f"`{config.default}`" if config.default else "(empty)"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def without_effect() -> str:
    """Kafka's configs that do nothing here, by reason."""
    names: dict[str, set[str]] = {}
    for each in (*broker_configs().values(), *topic_configs().values()):
        if each.effect is not Effect.ACTS and not each.hidden:
            names.setdefault(each.reason, set()).add(each.name)
    return table(
        ("why", "configs"),
        (
            (reason, ", ".join(f"`{name}`" for name in sorted(names[reason])))
            for reason in config_tables().reasons.values()
            if reason in names
        ),
    )


def control_api() -> str:
    """Every verb, in HTTP, on the command line, and by its name in scenarios and Python."""
    return table(
        ("HTTP", "path", "body or query", "command line", "name", "what it does"),
        (
            (
                verb.method,
                f"`{verb.path}`",
                _fields(verb.request_model),
                ", ".join(f"`{words}`" for words in verb.commands),
                f"`{verb.name}`",
                _cell(verb.summary),
            )
            for verb in CATALOGUE
        ),
    )


def commands() -> str:
    """Every verb as one types it."""
    return table(
        ("command", "request"),
        ((f"`{_cell(usage(verb))}`", f"`{verb.method} {verb.path}`") for verb in CATALOGUE),
    )


def _fields(model: type[Body] | None) -> str:
    """What a body or a query consists of; what may be left out in brackets."""
    if model is None:
        return ""
    fields = (
        field.json_name if field.is_required() else f"[{field.json_name}]"
        for field in model.model_fields.values()
    )
    return f"`{', '.join(fields)}`"


def scenarios() -> str:
    """The scenarios that ship."""
    return table(
        ("name", "what it shows"),
        ((f"`{name}`", _cell(read(name).summary)) for name in shipped()),
    )


def actions() -> str:
    """What the clients of a scenario can do."""
    common = ActionBody.model_fields.keys()
    common_answers = ActionAnswer.model_fields.keys()
    return table(
        ("action", "takes", "answers", "what it does"),
        (
            (
                f"`{each.name}`",
                _only(each.request_model, common),
                _only(each.response_model, common_answers),
                each.summary,
            )
            for each in ACTIONS.values()
        ),
    )


def _only(model: type[Model], common: Collection[str]) -> str:
    """The fields of a model besides those that all have; what may be left out in brackets."""
    fields = (
        name if field.is_required() else f"[{name}]"
        for name, field in model.model_fields.items()
        if name not in common
    )
    listed = ", ".join(fields)
    return f"`{listed}`" if listed else ""


def limits(section: str) -> str:
    """What clients are limited to, of one section of docs/security.md."""
    return table(
        ("limit", "set by", "default", "beyond it"),
        (
            (
                limit.name,
                f"`{limit.set_by}`" if limit.set_by else "fixed",
                limit.shown_default(),
                limit.error,
            )
            for limit in LIMITS[section]
        ),
    )


def played(folder: Path) -> str:
    """Kafka's command-line tools, or other programs, by the sessions that tests play."""
    return table(
        ("tool", "run with", "prints what it prints at a real 4.3.1"),
        (
            (
                f"`{session.tool}`",
                ", ".join(f"`{option}`" for option in session.options),
                f"comes with {session.later}" if session.later else "yes",
            )
            for session in sessions(folder)
        ),
    )


def classes_not_run() -> str:
    """The main classes that no session runs, by reason."""
    names: dict[str, list[str]] = {}
    for name, reason in NOT_RUN.items():
        names.setdefault(reason, []).append(f"`{name.rpartition('.')[2]}`")
    return table(
        ("main class", "what it does"),
        ((", ".join(sorted(names[reason])), reason) for reason in sorted(names)),
    )


def consumer_parameters() -> str:
    """The parameters of `Consumer`, each with the docstring below its field."""
    (config,) = ast.parse(inspect.getsource(ConsumerConfig)).body
    assert isinstance(config, ast.ClassDef)
    documented = {
        field.target.id: str(doc.value.value)
        for field, doc in pairwise(config.body)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if isinstance(doc, ast.Expr) and isinstance(doc.value, ast.Constant)
    }
    return table(
        ("parameter", "default", "what it means"),
        (
            (f"`{each.name}`", f"`{each.default!r}`", documented[each.name].replace("``", "`"))
            for each in fields(ConsumerConfig)
            if each.init
        ),
    )


def proposal_table() -> str:
    """How many statements each proposal makes, and how many of them tests show."""
    return table(
        ("proposal", "is about", "statements", "shown by tests", "not applicable", "come later"),
        (
            (
                f"[{each.name}](statements.md#{each.key})",
                each.subject,
                str(len(each.statements)),
                str(sum(bool(statement.tests) for statement in each.statements)),
                str(sum(bool(statement.not_applicable) for statement in each.statements)),
                str(sum(bool(statement.comes_with) for statement in each.statements)),
            )
            for each in proposals()
        ),
    )


def statement_table(proposal: Proposal) -> str:
    """What a proposal says, and the tests that show it."""
    return table(
        ("id", "section", "statement", "shown by"),
        (
            (each.id.rpartition("-")[2], each.section, _cell(each.says), _shown_by(each))
            for each in proposal.statements
        ),
    )


def _shown_by(statement: Statement) -> str:
    if statement.not_applicable:
        return f"not applicable: {_cell(statement.not_applicable)}"
    if statement.comes_with:
        return f"comes with {statement.comes_with}"
    return "; ".join(map(_test_link, statement.tests))


def _test_link(node_id: str) -> str:
    path, _, name = node_id.partition("::")
    return f"[`{name}`](../{path})"


BLOCKS: Final[Mapping[str, Callable[[], str]]] = {
    "actions": actions,
    "all-apis": all_apis,
    "apis": apis,
    "commands": commands,
    "consumer-parameters": consumer_parameters,
    "control-api": control_api,
    **{f"limits-of-{section}": partial(limits, section) for section in LIMITS},
    "proposals": proposal_table,
    **{f"statements-of-{each.key}": partial(statement_table, each) for each in proposals()},
    "random-bounds": random_bounds,
    "random-reasons": random_reasons,
    "scenarios": scenarios,
    "serve-options": serve_options,
    "broker-configs": broker_table,
    "kafka-classes-not-run": classes_not_run,
    "kafka-tools": partial(played, FOLDER),
    "other-programs": partial(played, PROGRAMS),
    "topic-configs": topic_table,
    "configs-without-effect": without_effect,
}


def render(page: str) -> str:
    """A page with its generated tables as they should be.

    :raises KeyError: When the page names a table that is not in `BLOCKS`.
    """

    def fresh(block: re.Match[str]) -> str:
        return f"<!-- generated: {block['name']} -->\n{BLOCKS[block['name']]()}<!-- end -->"

    return _BLOCK.sub(fresh, page)


def main() -> None:
    """Rewrite the pages that are not as they should be."""
    for path in PAGES:
        text = path.read_text()
        fresh = render(text)
        if fresh != text:
            path.write_text(fresh)


if __name__ == "__main__":
    main()
