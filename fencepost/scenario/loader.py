"""A file read as a scenario: everything in it is checked before anything is done.

Steps are checked in their order, because later ones may refer to earlier ones. The scenarios that
ship are found by their names, and files by their paths.
"""

from collections.abc import Iterator
from pathlib import Path
from pathlib import Path as FilePath
from typing import Final

from fencepost.scenario.actions.context import Action
from fencepost.scenario.actions.executor import ACTIONS
from fencepost.scenario.document import (
    Data,
    Document,
    KeyPath,
    find_references,
    list_allowed,
    parse_reference,
)
from fencepost.scenario.expectations import NO_ANSWER, Subject, list_of, read_expectation
from fencepost.scenario.model import (
    WITHIN_MS,
    ActionCall,
    Await,
    Expectation,
    Operation,
    Parallel,
    ProcessCall,
    Scenario,
    Step,
    VerbCall,
)
from fencepost.scenario.processes import PROCESS_STEPS, ProcessAnswer, ProcessStep
from fencepost.scenario.validation import check_keys, field_names, require_mapping, validate
from fencepost.verbs.bodies import NewTopicBody
from fencepost.verbs.catalogue import CATALOGUE, PATH_TYPES, Shape, Verb
from fencepost.verbs.serving import ClusterBody

STEP_VERBS: Final = {each.name: each for each in CATALOGUE}
MODIFIERS: Final = (
    "say",
    "as",
    "expect",
    "until",
    "within_ms",
    "background",
    "repeat",
)
_AWAIT: Final = "await"
_TOGETHER: Final = "together"
OPERATIONS: Final = (*STEP_VERBS, *ACTIONS, *PROCESS_STEPS, _AWAIT, _TOGETHER)
PATH_DEFAULTS: Final[dict[str, Data]] = {"partition": 0}
_OF_PROCESS: Final = Subject(kind=ProcessAnswer, is_verb=False)
MAX_WITHIN_MS: Final = 600_000
MAX_REPEAT: Final = 10_000


class StepReader:
    """Reads steps, and keeps in mind what the ones before were.

    :raises ScenarioFileError: From every method, when something is wrong.
    """

    def __init__(self, document: Document) -> None:
        self._document = document
        self._named: dict[str, Subject] = {}
        self._background: dict[str, Subject] = {}
        self._processes: set[str] = set()
        self._last = NO_ANSWER

    def read_all(self, data: Data, path: KeyPath) -> tuple[Step, ...]:
        """A list of steps."""
        if not isinstance(data, list) or not data:
            raise self._document.error_at(path, f"{path[-1]} is to be a list of steps")
        return tuple(self._read(each, (*path, at)) for at, each in enumerate(data))

    def _read(self, data: Data, path: KeyPath) -> Step:
        given = self._as_mapping(data, path)
        deed = self._operation_name(given, path)
        do, subject = self._operation(deed, given, path)
        background = self._name(given, path, "background")
        about = self._last if do is None else subject
        if background is not None:
            self._check_background(given, path, do)
        step = Step(
            path=path,
            place=self._document.place(path),
            do=do,
            say=self._say(given, path),
            name=self._name(given, path, "as"),
            expect=self._expectation(given, path, "expect", about),
            until=self._expectation(given, path, "until", about),
            within_ms=self._number(given, path, "within_ms", WITHIN_MS, MAX_WITHIN_MS),
            background=background,
            repeat=self._number(given, path, "repeat", 1, MAX_REPEAT),
        )
        self._remember(step, about)
        return step

    def _as_mapping(self, data: Data, path: KeyPath) -> dict[str, Data]:
        if isinstance(data, str):  # a bare word
            return {data: {}}
        return require_mapping(self._document, data, path, "a step")

    def _remember(self, step: Step, about: Subject) -> None:
        if step.background is not None:
            self._background[step.background] = about
            if isinstance(step.do, ProcessCall):
                self._processes.add(step.background)
        else:
            self._last = about
        if step.name is not None:
            self._named[step.name] = about

    # -- what it does ---------------------------------------------------------------------------

    def _operation_name(self, given: dict[str, Data], path: KeyPath) -> str | None:
        """The one key that is no modifier."""
        deeds = [name for name in given if name not in MODIFIERS]
        for name in deeds:
            if name not in OPERATIONS:
                place = (*path, name)
                text = f"there is no step {name!r}{list_allowed(name, (*OPERATIONS, *MODIFIERS))}"
                raise self._document.error_at_key(place, text)
        if len(deeds) > 1:
            text = f"a step does one thing, and this one does {deeds[0]} already"
            raise self._document.error_at_key((*path, deeds[1]), text)
        if not deeds and not given.keys() & {"say", "expect", "until"}:
            raise self._document.error_at(
                path, "this step does nothing, expects nothing, says nothing"
            )
        return deeds[0] if deeds else None

    def _operation(
        self, name: str | None, given: dict[str, Data], path: KeyPath
    ) -> tuple[Operation | None, Subject]:
        if name is None:
            return None, NO_ANSWER
        place = (*path, name)
        if name == _AWAIT:
            return self._await(given[name], place)
        if name == _TOGETHER:
            return Parallel(steps=self.read_all(given[name], place)), NO_ANSWER
        if name in PROCESS_STEPS:
            return self._process(PROCESS_STEPS[name], given, place)
        parameters = require_mapping(self._document, given[name] or {}, place, name)
        self._check_references(parameters, place)
        if name in STEP_VERBS:
            return self._verb(STEP_VERBS[name], parameters, place)
        return self._action(ACTIONS[name], parameters, place)

    def _await(self, data: Data, path: KeyPath) -> tuple[Operation, Subject]:
        if not isinstance(data, str) or data not in self._background:
            hint = list_allowed(str(data), self._background) if self._background else ""
            text = f"no action {data!r} is in the background{hint}"
            raise self._document.error_at(path, text)
        return Await(name=data), self._background[data]

    def _verb(self, verb: Verb, given: dict[str, Data], path: KeyPath) -> tuple[Operation, Subject]:
        known = [
            *verb.path_parameters,
            *(field_names(verb.request_model) if verb.request_model else ()),
        ]
        check_keys(self._document, given, path, known)
        in_path = {name: self._in_path(name, given, path) for name in verb.path_parameters}
        body = {name: value for name, value in given.items() if name not in in_path}
        if verb.request_model is not None:
            _, body = validate(self._document, verb.request_model, body, path)
        kind = verb.response_model if verb.shape is Shape.ONE else list_of(verb.response_model)
        return VerbCall(verb=verb, arguments=in_path | body), Subject(kind=kind, is_verb=True)

    def _in_path(self, name: str, given: dict[str, Data], path: KeyPath) -> Data:
        value = given.get(name, PATH_DEFAULTS.get(name))
        if value is None:
            raise self._document.error_at_key(path, f"{name} is left out")
        if parse_reference(value) is not None:
            return value
        wanted = PATH_TYPES[name]
        text = self._document.text((*path, name))
        if wanted is str and text is not None:
            return text
        if not isinstance(value, wanted) or isinstance(value, bool):
            words = "text" if wanted is str else "a number"
            raise self._document.error_at((*path, name), f"{name} is to be {words}")
        return value

    def _action(
        self, action: Action, given: dict[str, Data], path: KeyPath
    ) -> tuple[Operation, Subject]:
        _, body = validate(self._document, action.request_model, given, path)
        return ActionCall(action=action, arguments=body), Subject(
            kind=action.response_model, is_verb=False
        )

    def _process(
        self, step: ProcessStep, given: dict[str, Data], path: KeyPath
    ) -> tuple[Operation, Subject]:
        data = given[step.name]
        spelled: dict[str, Data] = {step.field: data} if isinstance(data, str | list) else {}
        parameters = spelled or require_mapping(self._document, data, path, step.name)
        self._check_references(parameters, path)
        _, body = validate(self._document, step.request_model, parameters, path)
        if "ready" in body and "background" not in given:
            text = "only a process in the background is waited for until it is ready"
            raise self._document.error_at_key((*path, "ready"), text)
        named = body.get("process")
        if named is not None and named not in self._processes:
            hint = list_allowed(str(named), self._processes) if self._processes else ""
            where = path if spelled else (*path, "process")
            raise self._document.error_at(where, f"no process {named!r} is in the background{hint}")
        return ProcessCall(step=step, arguments=body), _OF_PROCESS

    def _check_references(self, data: dict[str, Data], path: KeyPath) -> None:
        for place, name in find_references(data, path):
            if name not in self._named:
                hint = list_allowed(name, self._named) if self._named else ""
                text = f"no step before is named {name!r} (as: {name}){hint}"
                raise self._document.error_at(place, text)

    # -- how it does it -------------------------------------------------------------------------

    def _check_background(
        self, given: dict[str, Data], path: KeyPath, do: Operation | None
    ) -> None:
        place = (*path, "background")
        starts_process = isinstance(do, ProcessCall) and do.starts_one
        if not isinstance(do, ActionCall) and not starts_process:
            text = "only a client acts in the background, or a process runs"
            raise self._document.error_at_key(place, text)
        for name in ("expect", "until", "repeat"):
            if name in given:
                text = (
                    f"in the background there is no answer for {name}; say it where it is awaited"
                )
                raise self._document.error_at_key((*path, name), text)

    def _expectation(
        self, given: dict[str, Data], path: KeyPath, name: str, about: Subject
    ) -> Expectation | None:
        if name not in given:
            return None
        place = (*path, name)
        self._check_references_in(given[name], place)
        return read_expectation(
            self._document,
            given[name],
            place,
            about,
            steps=self._named,
            background=self._background,
        )

    def _check_references_in(self, data: Data, path: KeyPath) -> None:
        if isinstance(data, dict):
            self._check_references(data, path)

    def _say(self, given: dict[str, Data], path: KeyPath) -> str | None:
        said = given.get("say")
        if said is not None and not isinstance(said, str):
            raise self._document.error_at((*path, "say"), "the value of say is to be text")
        return said

    def _name(self, given: dict[str, Data], path: KeyPath, key: str) -> str | None:
        name = given.get(key)
        if name is None:
            return None
        if not isinstance(name, str) or parse_reference(f"${name}") != (name, []):
            text = f"{key} is to be a name: letters, digits, - and _"
            raise self._document.error_at((*path, key), text)
        taken = self._background if key == "background" else {}
        if name in taken:
            raise self._document.error_at((*path, key), f"{name!r} is in the background already")
        return name

    def _number(
        self, given: dict[str, Data], path: KeyPath, key: str, default: int, limit: int
    ) -> int:
        value = given.get(key, default)
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= limit:
            raise self._document.error_at(
                (*path, key), f"{key} is to be a number from 1 to {limit}"
            )
        return value


_NO_STEP_YET: Final = "a reference stands here for the answer of a step, and no step comes before"
_KEYS: Final = ("summary", "teaches", "cluster", "topics", "steps")


def read_file(path: FilePath) -> Scenario:
    """The scenario in a file.

    :raises ScenarioFileError: When something in it is wrong.
    :raises OSError: When it cannot be read.
    :raises UnicodeDecodeError: When it is no text.
    """
    return read_text(path.read_text(encoding="utf-8"), file=str(path), name=path.stem)


def read_text(text: str, *, file: str, name: str) -> Scenario:
    """The scenario that a text is.

    :param file: For messages.
    :raises ScenarioFileError: When something in it is wrong.
    """
    document = Document(file, text)
    given = require_mapping(document, document.data, (), "a scenario")
    check_keys(document, given, (), _KEYS)
    for needed in ("summary", "steps"):
        if needed not in given:
            raise document.error_at((), f"{needed} is left out")
    body, _ = validate(
        document,
        ClusterBody,
        require_mapping(document, given.get("cluster", {}), ("cluster",), "cluster"),
        ("cluster",),
    )
    if body is None:
        raise document.error_at(("cluster",), _NO_STEP_YET)
    return Scenario(
        name=name,
        summary=_read_summary(document, given),
        teaches=_read_teaches(document, given),
        cluster=body,
        topics=tuple(_read_topics(document, given.get("topics", []))),
        steps=StepReader(document).read_all(given["steps"], ("steps",)),
        document=document,
    )


def _read_summary(document: Document, given: dict[str, Data]) -> str:
    summary = given["summary"]
    if not isinstance(summary, str) or not summary.strip() or "\n" in summary.strip():
        raise document.error_at(("summary",), "summary is to be one line of text")
    return summary.strip()


def _read_teaches(document: Document, given: dict[str, Data]) -> str:
    teaches = given.get("teaches", "")
    if not isinstance(teaches, str):
        raise document.error_at(("teaches",), "teaches is to be text")
    return teaches.strip()


def _read_topics(document: Document, given: Data) -> Iterator[NewTopicBody]:
    if not isinstance(given, list):
        raise document.error_at(("topics",), "topics is to be a list")
    for at, each in enumerate(given):
        path = ("topics", at)
        data: dict[str, Data] = {"name": each} if isinstance(each, str) else {}
        body, _ = validate(
            document, NewTopicBody, data or require_mapping(document, each, path, "a topic"), path
        )
        if body is None:
            raise document.error_at(path, _NO_STEP_YET)
        yield body


SHIPPED: Final = Path(__file__).parent / "shipped"
_SUFFIXES: Final = (".yaml", ".yml")


class ScenarioNotFound(Exception):
    """There is no scenario of that name and no such file. The text is one line."""


def shipped() -> dict[str, Path]:
    """The files of the shipped scenarios by their names, sorted."""
    return {path.stem: path for path in sorted(SHIPPED.glob("*.yaml"))}


def find(asked: str) -> Path:
    """The file of a scenario that is asked for by its name or by its path.

    :raises ScenarioNotFound: When there is none.
    """
    names = shipped()
    if asked in names:
        return names[asked]
    path = Path(asked)
    if path.is_file():
        return path
    if path.suffix in _SUFFIXES or len(path.parts) > 1:
        raise ScenarioNotFound(f"there is no file {asked}")
    raise ScenarioNotFound(f"there is no scenario {asked!r}{list_allowed(asked, names)}")


def read(asked: str) -> Scenario:
    """A scenario by its name or by its path.

    :raises ScenarioNotFound: When there is none, or it cannot be read.
    :raises ScenarioFileError: When something in it is wrong.
    """
    path = find(asked)
    try:
        return read_file(path)
    except (OSError, UnicodeDecodeError) as error:
        raise ScenarioNotFound(f"{path} cannot be read: {error}") from None
