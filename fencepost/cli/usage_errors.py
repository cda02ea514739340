"""Usage errors as one line: the error, the nearest name that exists, and the allowed values.

Typer's own messages take several lines, and none of its errors but one is public, so their texts
are made from the errors' attributes. Names that the cluster does not have are looked up in it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import typer

from fencepost.broker.faults.selectors import EVERY
from fencepost.cli.parameters import Parameter
from fencepost.protocol.lookup import (
    UnknownName,
    api_names,
    error_names,
    find_api,
    find_error,
    suggestion,
)
from fencepost.verbs.answers.faults import FaultState
from fencepost.verbs.answers.groups import GroupsState
from fencepost.verbs.answers.topics import TopicState
from fencepost.verbs.answers.transactions import TransactionsState
from fencepost.verbs.catalogue import VERBS
from fencepost.verbs.remote import ControlConnection, Refused, VerbError

WRONG_USE: Final = 2
"""The exit code."""
UsageError: Final[type[Exception]] = typer.BadParameter.__bases__[0]
"""Typer's error for all that is wrong with a command line."""


class InvalidUsage(Exception):
    """A command was given something that will not do. The text is one line."""


def parse_pairs(
    flag: str, metavar: str, given: Sequence[str] | None, *, may_repeat_names: bool = False
) -> dict[str, str]:
    """The values of an option that may be repeated, such as ``sep=;``, by their names.

    :raises InvalidUsage: When a text has no name, no sign of equality, or the name of another.
    """
    found: dict[str, str] = {}
    for text in given or ():
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise InvalidUsage(f"{flag}: {text!r} is not {metavar}")
        if name in found and not may_repeat_names:
            raise InvalidUsage(f"{flag}: {text!r} gives {name} a second time")
        found[name] = value
    return found


def explain(error: Exception, command: str) -> str:
    """One of typer's errors about the command line as one line.

    Nothing where a command was named that is many: its help has been shown then.

    :param command: What was asked for, where the error does not know.
    """
    if type(error).__name__ == "NoArgsIsHelpError":
        return ""
    context: typer.Context | None = getattr(error, "ctx", None)
    path = command if context is None else context.command_path
    return f"{path}: {' '.join(_explain(error, context).split())}\n"


def _explain(error: Exception, context: typer.Context | None) -> str:
    kind = type(error).__name__
    text = str(getattr(error, "message", ""))
    if context is not None and kind == "NoSuchOption":
        option = str(getattr(error, "option_name", ""))
        return f"there is no option {option}{suggestion(option, _options(context))}"
    if context is not None and kind == "MissingParameter":
        parameter = getattr(error, "param", None)
        return f"{_missing(parameter)} is missing; usage: {_usage(context)}"
    commands: Sequence[str] = tuple(getattr(getattr(context, "command", None), "commands", ()))
    if context is not None and commands and text.startswith("No such command"):
        name = text.split("'")[1]
        return f"there is no command {name}{suggestion(name, commands)}"
    if context is not None and "unexpected extra argument" in text:
        return f"{_lower(text).rstrip('.')}; usage: {_usage(context)}"
    return _lower(getattr(error, "format_message", lambda: text)()).rstrip(".")


def _options(context: typer.Context) -> list[str]:
    """Of a command, as they are written."""
    declared = [name for each in context.command.params for name in each.opts]
    return [name for name in declared if name.startswith("--")] + ["--help"]


def _missing(parameter: object) -> str:
    names: Sequence[str] = getattr(parameter, "opts", ())
    flags = [name for name in names if name.startswith("-")]
    return flags[0] if flags else str(getattr(parameter, "metavar", None) or "a parameter")


def _usage(context: typer.Context) -> str:
    """What has to be given, in one line."""
    words = [context.command_path]
    for each in context.command.params:
        shown = str(getattr(each, "metavar", None) or "")
        flags = [name for name in each.opts if name.startswith("-")]
        if each.required:
            words.append(f"{flags[0]} {shown}" if flags else shown)
    return " ".join([*words, "[OPTIONS]"])


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


def check_name(parameter: Parameter, value: object) -> None:
    """Refuse the name of an API or of an error that Kafka does not have. Numbers are let through.

    :raises InvalidUsage: With the nearest name.
    """
    if parameter.is_any_text or parameter.name not in _NAMED:
        return
    find, names, what = _NAMED[parameter.name]
    for each in value if isinstance(value, list) else (value,):
        if not isinstance(each, str) or each.removeprefix("-").isdigit() or each == EVERY:
            continue
        try:
            find(each)
        except UnknownName:
            raise InvalidUsage(
                f"{parameter.display_name}: there is no {what} {each}{suggestion(each, names())}"
            ) from None


_NAMED: Final[dict[str, tuple[Callable[[str], object], Callable[[], list[str]], str]]] = {
    "api": (find_api, api_names, "API"),
    "error": (find_error, error_names, "error"),
}
"""Parameters with names of Kafka's: how one is found, all of them, and what they are."""


def suggest_existing(
    error: Refused, line: ControlConnection, path: Mapping[str, object], given: Mapping[str, object]
) -> str:
    """What there is instead of that which the cluster does not have; the end of a message.

    :param path: What was asked about: the parameters in the path.
    :param given: The other fields.
    """
    try:
        match error.code:
            case "UNKNOWN_TOPIC_OR_PARTITION" if "topic" in (path or given):
                return _suggest_topic(error, line, path or given)
            case "GROUP_ID_NOT_FOUND":
                groups = line.call(VERBS["groups"], GroupsState, {}, {}).groups
                return suggestion(str(path.get("group")), [each.group for each in groups])
            case "TRANSACTIONAL_ID_NOT_FOUND":
                found = line.call(VERBS["transactions"], TransactionsState, {}, {}).transactions
                return suggestion(
                    str(path.get("transactional_id")), [each.transactional_id for each in found]
                )
            case "RESOURCE_NOT_FOUND" if "id" in path:
                faults = line.call_list(VERBS["faults"], FaultState, {}, {})
                return suggestion("", [str(each.id) for each in faults])
            case _:
                return ""
    except VerbError:
        return ""


def _suggest_topic(error: Refused, line: ControlConnection, asked: Mapping[str, object]) -> str:
    topics = line.call_list(VERBS["topics"], TopicState, {}, {})
    name = str(asked.get("topic"))
    for topic in topics:
        if topic.name == name:
            return f"; it has partitions 0 to {topic.partitions - 1}"
    said = "" if "no topic" in error.message else f"; there is no topic {name}"
    return f"{said}{suggestion(name, [topic.name for topic in topics])}"
