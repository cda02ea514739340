"""Models checked against what a file says, and their complaints as mistakes with a place."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from fencepost.scenario.document import (
    Data,
    Document,
    KeyPath,
    ScenarioFileError,
    list_allowed,
    parse_reference,
)
from fencepost.verbs.bodies import Body
from fencepost.verbs.model import Model
from fencepost.verbs.problems import InvalidModel, Problem, text_at

M = TypeVar("M", bound=Body)


def require_mapping(document: Document, data: Data, path: KeyPath, what: str) -> dict[str, Data]:
    """A value that is to be a mapping.

    :param what: It, for the message.
    :raises ScenarioFileError: When it is none.
    """
    if not isinstance(data, dict):
        raise document.error_at(path, f"{what} is to be a mapping")
    return data


def check_keys(
    document: Document, data: Mapping[str, Data], path: KeyPath, allowed: Iterable[str]
) -> None:
    """:raises ScenarioFileError: At the first key that is not among those allowed."""
    names = list(allowed)
    for name in data:
        if name not in names:
            raise document.error_at_key(
                (*path, name), f"there is no {name!r}{list_allowed(name, names)}"
            )


def validate(
    document: Document, model: type[M], data: dict[str, Data], path: KeyPath
) -> tuple[M | None, dict[str, Data]]:
    """What a file says as a model, and as data with all that is to be text as text.

    The model is None where references stand for some of it: then all the rest is checked.

    :raises ScenarioFileError: At the first thing that is wrong.
    """
    check_keys(document, data, path, field_names(model))
    problems = _problems(model, data)
    texts = [
        place
        for place in _paths_to_be_text(problems, data)
        if document.text((*path, *place)) is not None
    ]
    if texts:
        data = _with_texts(data, texts, lambda place: document.text((*path, *place)) or "")
        problems = _problems(model, data)
    serious = [each for each in problems if not _is_reference(data, each.place)]
    if serious:
        raise _mistake(document, serious[0], data, path)
    return (None if problems else model.model_validate(data)), data


def field_names(model: type[Model]) -> list[str]:
    """As a file has them."""
    return [field.json_name for field in model.model_fields.values()]


def _problems(model: type[Body], data: dict[str, Data]) -> Sequence[Problem]:
    try:
        model.model_validate(data)
    except InvalidModel as error:
        return error.problems
    return ()


def _mistake(
    document: Document, problem: Problem, data: dict[str, Data], path: KeyPath
) -> ScenarioFileError:
    left_out = problem.kind == "left_out"
    place = _in_data(data, problem.place[:-1] if left_out else problem.place)
    if left_out:
        name = ".".join(str(part) for part in problem.place)
        return document.error_at_key((*path, *place), f"{name} is left out")
    return document.error_at((*path, *place), text_at(place, problem.text))


def _in_data(data: Data, loc: Sequence[str | int]) -> KeyPath:
    """The part of an error's place that is in the data: some parts only name types."""
    found: list[str | int] = []
    value = data
    for part in loc:
        if isinstance(value, dict) and part in value:
            value = value[str(part)]
        elif isinstance(value, list) and isinstance(part, int) and part < len(value):
            value = value[part]
        else:
            continue
        found.append(part)
    return tuple(found)


def _value(data: Data, place: KeyPath) -> Data:
    value = data
    for part in place:
        value = value[part]  # type: ignore[index]  # as `_in_data` found it
    return value


def _is_reference(data: Data, loc: Sequence[str | int]) -> bool:
    place = _in_data(data, loc)
    return any(parse_reference(_value(data, place[:end])) for end in range(len(place) + 1))


def _paths_to_be_text(problems: Sequence[Problem], data: Data) -> list[KeyPath]:
    return [_in_data(data, each.place) for each in problems if each.kind == "not_text"]


def _with_texts(
    data: dict[str, Data], places: Sequence[KeyPath], text: Callable[[KeyPath], str]
) -> dict[str, Data]:
    def changed(value: Data, path: KeyPath) -> Data:
        if path in places:
            return text(path)
        if isinstance(value, dict):
            return {key: changed(each, (*path, key)) for key, each in value.items()}
        if isinstance(value, list):
            return [changed(each, (*path, at)) for at, each in enumerate(value)]
        return value

    return {key: changed(each, (key,)) for key, each in data.items()}
