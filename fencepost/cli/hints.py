"""What to do instead, where a name is not one of Kafka's, or the cluster does not have it."""

from collections.abc import Mapping

from fencepost.cli.mistakes import Mistake, suggestion
from fencepost.cli.parameters import Parameter
from fencepost.verbs.answers.faults import FaultState
from fencepost.verbs.answers.topics import TopicState
from fencepost.verbs.catalogue import VERBS
from fencepost.verbs.remote import Line, Refused, VerbError


def check_name(parameter: Parameter, value: object) -> None:
    """Refuse the name of an API or of an error that Kafka does not have. Numbers are let through.

    :raises Mistake: With the nearest name.
    """
    if not isinstance(value, str) or value.removeprefix("-").isdigit() or parameter.is_any_text:
        return
    if parameter.name == "api":
        known, what = api_names(), "API"
    elif parameter.name == "error":
        known, what = error_names(), "error"
    else:
        return
    if _letters(value) not in map(_letters, known):
        raise Mistake(f"{parameter.shown}: there is no {what} {value}{suggestion(value, known)}")


def api_names() -> list[str]:
    """By Kafka's own names, all that a cluster of this version serves."""
    from fencepost.protocol.apis import APIS

    return [api.title for api in APIS]


def error_names() -> list[str]:
    """Kafka's own."""
    from fencepost.protocol.errors import ErrorCode

    return [code.name for code in ErrorCode if code]


def _letters(name: str) -> str:
    return name.replace("_", "").casefold()


def hint(
    error: Refused, line: Line, path: Mapping[str, object], given: Mapping[str, object]
) -> str:
    """What there is instead of that which the cluster does not have; the end of a message.

    :param path: What was asked about: the parameters in the path.
    :param given: The other fields.
    """
    try:
        match error.code:
            case "UNKNOWN_TOPIC_OR_PARTITION":
                return _about_topic(error, line, path or given)
            case "RESOURCE_NOT_FOUND" if "id" in path:
                faults = line.call_list(VERBS["faults"], FaultState, {}, {})
                return suggestion("", [str(each.id) for each in faults])
            case _:
                return ""
    except VerbError:
        return ""


def _about_topic(error: Refused, line: Line, asked: Mapping[str, object]) -> str:
    topics = line.call_list(VERBS["topics"], TopicState, {}, {})
    name = str(asked.get("topic"))
    for topic in topics:
        if topic.name == name:
            return f"; it has partitions 0 to {topic.partitions - 1}"
    said = "" if "no topic" in error.message else f"; there is no topic {name}"
    return f"{said}{suggestion(name, [topic.name for topic in topics])}"
