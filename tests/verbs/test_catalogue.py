"""The catalogue is whole: all of the contract is in it, and each verb says all that it needs to."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator
from typing import Final, get_args, get_type_hints

import pytest

from fencepost.control.app import ROUTES
from fencepost.control.routing import OPERATIONS
from fencepost.verbs import bodies, fault_bodies
from fencepost.verbs.answers import Answer, Health
from fencepost.verbs.bodies import Body
from fencepost.verbs.catalogue import CATALOGUE, PATH_TYPES, VERBS, Method, Shape, Verb
from fencepost.verbs.derived import Derived
from fencepost.verbs.descriptions import field_description
from fencepost.verbs.model import Model

PARTITION: Final = "/v1/topics/{t}/partitions/{p}"
REPLICA: Final = f"{PARTITION}/replicas/{{b}}"
BROKER: Final = "/v1/brokers/{b}"
GROUP: Final = "/v1/groups/{g}"

CONTRACT: Final = {
    ("GET", "/healthz"): "",
    ("GET", "/v1/cluster"): "",
    ("GET", "/v1/topics"): "",
    ("POST", "/v1/topics"): "name partitions replication_factor assignments configs",
    ("DELETE", "/v1/topics/{t}"): "",
    ("GET", PARTITION): "",
    ("POST", "/v1/topics/{t}/records"): "partition records encoding",
    ("GET", f"{PARTITION}/records"): "from to limit encoding isolation",
    ("POST", "/v1/topics/{t}/records/expect"): "key value headers count timeout_ms",
    ("POST", f"{PARTITION}/elect"): "leader unclean",
    ("POST", f"{REPLICA}/hold"): "at",
    ("POST", f"{REPLICA}/release"): "",
    ("POST", f"{REPLICA}/step"): "fetches",
    ("POST", f"{REPLICA}/wipe"): "",
    ("POST", f"{PARTITION}/roll"): "",
    ("POST", f"{PARTITION}/tier"): "action",
    ("GET", "/v1/groups"): "",
    ("GET", GROUP): "",
    ("POST", f"{GROUP}/wait"): "state members timeout_ms",
    ("POST", f"{GROUP}/coordinator"): "broker",
    ("POST", f"{GROUP}/rebalance"): "",
    ("POST", f"{GROUP}/members/{{member}}/remove"): "",
    ("POST", f"{GROUP}/offsets"): "offsets",
    ("POST", f"{GROUP}/offsets/delete"): "topics",
    ("POST", f"{BROKER}/stop"): "",
    ("POST", f"{BROKER}/start"): "",
    ("POST", f"{BROKER}/kill"): "",
    ("POST", f"{BROKER}/isolate"): "from",
    ("POST", f"{BROKER}/rejoin"): "",
    ("GET", "/v1/faults"): "",
    ("POST", "/v1/faults"): (
        "api versions broker client_id topic partition group transactional_id count after "
        "probability action record sequence"
    ),
    ("DELETE", "/v1/faults"): "",
    ("GET", "/v1/faults/{id}"): "",
    ("DELETE", "/v1/faults/{id}"): "",
    ("GET", "/v1/faults/{id}/wait"): "hits timeout_ms",
    ("POST", "/v1/trace/verify"): (
        "api versions broker client_id topic partition group transactional_id record count"
    ),
    ("POST", "/v1/tier/faults"): "operation error delay_ms count",
    ("POST", "/v1/clock/advance"): "ms",
    ("POST", "/v1/reset"): "",
    ("GET", "/v1/events"): "",
    ("GET", "/v1/trace"): "api client_id topic since",
    ("GET", "/v1/trace/wait"): "api client_id topic since",
}
"""What other programs rely on: each request, and the names of its fields."""
ACTIONS: Final = frozenset(
    "error delay disconnect throttle drop corrupt stale_metadata bandwidth pieces silent refuse "
    "observe".split()
)
"""What a fault does."""
TIER_ACTIONS: Final = {"upload", "delete-local", "expire", "forget"}
"""What may be done about a partition's tier."""
TIER_OPERATIONS: Final = {"upload", "fetch", "delete"}
"""What a tier fault may hit."""
COMMANDS: Final = (
    "topics partition elect hold release step broker fault tier records groups group verify".split()
)
"""What the command line begins with."""

each_verb = pytest.mark.parametrize("verb", CATALOGUE, ids=[verb.name for verb in CATALOGUE])


def fields(verb: Verb) -> dict[str, str]:
    """What a verb takes besides its path: names in JSON, and in Python."""
    found = {} if verb.request_model is None else verb.request_model.model_fields
    return {field.json_name: name for name, field in found.items()}


def short(path: str) -> str:
    """A path with its parameters named as the contract names them."""
    return re.sub(r"{(topic|partition|broker|group)}", lambda found: f"{{{found[1][0]}}}", path)


def test_all_of_the_contract_is_there() -> None:
    served = {(verb.method.value, short(verb.path)): verb for verb in CATALOGUE}
    assert CONTRACT.keys() - served.keys() == set()
    for place, names in CONTRACT.items():
        assert set(names.split()) <= fields(served[place]).keys(), place


def test_every_action_of_a_fault_is_there() -> None:
    assert fault_bodies.FaultAction.model_fields.keys() >= ACTIONS


def choices(model: type[Body], name: str) -> set[object]:
    """What a field may be."""
    return set(get_args(model.model_fields[name].kind))


def test_all_that_may_be_done_about_a_tier_is_there() -> None:
    assert choices(bodies.TierBody, "action") >= TIER_ACTIONS
    assert choices(bodies.TierFaultBody, "operation") >= TIER_OPERATIONS


def test_every_command_of_the_contract_is_there() -> None:
    assert set(COMMANDS) <= {verb.command.split()[0] for verb in CATALOGUE}


def test_no_two_are_alike() -> None:
    for names in (
        [verb.name for verb in CATALOGUE],
        [command for verb in CATALOGUE for command in verb.commands],
        [f"{verb.method} {verb.path}" for verb in CATALOGUE],
        [verb.summary for verb in CATALOGUE],
    ):
        assert len(set(names)) == len(names)
    assert list(VERBS.values()) == list(CATALOGUE)
    assert list(VERBS) == [verb.name for verb in CATALOGUE]


def test_no_command_is_the_beginning_of_another() -> None:
    """``fault`` alone could not be told from the group that ``fault list`` is in."""
    words = [command.split() for verb in CATALOGUE for command in verb.commands]
    for each in words:
        assert not [other for other in words if other != each and other[: len(each)] == each]


@each_verb
def test_the_parameters_of_a_path_have_types(verb: Verb) -> None:
    assert set(verb.path_parameters) <= PATH_TYPES.keys()
    assert verb.path.format_map(dict.fromkeys(PATH_TYPES, "x")).count("{") == 0
    assert not set(verb.path_parameters) & fields(verb).keys()


@each_verb
def test_what_stands_without_its_name_on_the_command_line_is_required(verb: Verb) -> None:
    for name in verb.positional:
        assert verb.request_model is not None
        assert verb.request_model.model_fields[name].is_required()


@each_verb
def test_all_that_the_last_word_of_a_command_may_be_is_explained(verb: Verb) -> None:
    if verb.subcommand_field:
        assert verb.request_model is not None
        assert list(verb.subcommands) == list(
            get_args(verb.request_model.model_fields[verb.subcommand_field].kind)
        )
    for does in verb.subcommands.values():
        assert re.fullmatch(r"[A-Z][^\n]{10,100}\.", does)


@each_verb
def test_what_is_taken_can_stand_where_http_has_a_place_for_it(verb: Verb) -> None:
    assert verb.request_model is None or verb.method is not Method.DELETE
    if verb.request_model is not None and verb.method is Method.GET:
        # Of a query all values are text.
        assert verb.request_model.is_query
        assert not [
            name for name, each in verb.request_model.model_fields.items() if each.is_required()
        ]


@each_verb
def test_what_it_does_is_one_sentence(verb: Verb) -> None:
    assert re.fullmatch(r"[A-Z][^\n]{10,100}\.", verb.summary)
    assert verb.name.isidentifier()
    assert verb.name == verb.name.lower()


@each_verb
def test_only_what_is_seen_is_a_list_or_a_stream(verb: Verb) -> None:
    assert verb.shape is Shape.ONE or verb.method is Method.GET


@each_verb
def test_every_field_is_explained_where_its_name_is_not_enough(verb: Verb) -> None:
    """Help, OpenAPI and the docs show these sentences."""
    plain = {
        "api", "broker", "client_id", "configs", "fetches", "leader", "ms", "name", "topic",
        "transactional_id", "action",
    }  # fmt: skip
    found = {} if verb.request_model is None else verb.request_model.model_fields
    unexplained = {name for name, each in found.items() if not field_description(each)}
    assert unexplained <= plain


def all_models() -> Iterator[type[Model]]:
    """Those of the verbs, and what they are made of."""
    for verb in CATALOGUE:
        _ = verb.request_model, verb.response_model  # which imports their modules
    for made in (*_subclasses(bodies.Body), *_subclasses(Answer)):
        is_whole = not issubclass(made, Derived) or made.documented_in is not None
        if is_whole and made.__module__.startswith("fencepost.verbs."):
            yield made


def _subclasses(model: type[Model]) -> Iterator[type[Model]]:
    yield model
    for each in model.__subclasses__():
        yield from _subclasses(each)


MODELS: Final = list(all_models())


@pytest.mark.parametrize("model", MODELS, ids=[model.__name__ for model in MODELS])
def test_every_example_is_what_it_is_an_example_of(model: type[Model]) -> None:
    assert model.__doc__
    for example in model.examples:
        made = model.model_validate_json(json.dumps(example))
        # An answer says everything, a body what is not the default.
        is_whole = issubclass(model, Answer)
        assert made.model_dump(mode="json", exclude_unset=not is_whole) == example


@each_verb
def test_what_cannot_be_guessed_has_an_example(verb: Verb) -> None:
    """A query's fields may all be left out, and what says nothing needs no example."""
    shown = [
        verb.response_model,
        *([verb.request_model] if verb.request_model and verb.method is Method.POST else []),
    ]
    for model in shown:
        if model.model_fields and model is not Health:
            assert model.examples, model.__name__


# -- routes -------------------------------------------------------------------------------------


def test_every_verb_has_a_route_that_carries_it_out() -> None:
    assert ROUTES
    assert OPERATIONS.keys() == VERBS.keys()


@each_verb
def test_a_route_has_the_parameters_of_its_verb(verb: Verb) -> None:
    hints = get_type_hints(OPERATIONS[verb.name].function)
    for name in verb.path_parameters:
        assert hints[name] is PATH_TYPES[name]
    bodies_of = [_body(hint) for hint in hints.values()]
    assert [each for each in bodies_of if each is not None] == (
        [verb.request_model] if verb.request_model else []
    )


def _body(hint: object) -> type[Body] | None:
    """The body that a parameter is, also where it may be left out."""
    for each in (hint, *get_args(hint)):
        if inspect.isclass(each) and issubclass(each, Body):
            return each
    return None
