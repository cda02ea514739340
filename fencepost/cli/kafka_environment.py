"""Kafka's container variables as options of ``fencepost serve`` (``--kafka-env``).

``KAFKA_NUM_PARTITIONS`` is the config ``num.partitions``, as in the image apache/kafka (KIP-975): a
dot is ``_``, an underscore ``__``, a dash ``___``. Configs of the node's id, roles and addresses
become the options that say the same. So the compose file of a real broker works when its image is
changed.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct, field

from fencepost.cli.environment import without_service_variables
from fencepost.cli.option_values import OptionError, OptionText, parsed
from fencepost.protocol.listener_text import CONTROLLER, PLAINTEXT, parse_address

PREFIX: Final = "KAFKA_"
_BITNAMI: Final = "KAFKA_CFG_"
"""How names begin in the image bitnami/kafka."""
_OF_JVM: Final = re.compile(r"VERSION|HOME|DEBUG|MODE|(?:.*_)?OPTS|JMX_.*|(?:.*_)?LOG4J_.*")
"""Names without their prefix that are read by the scripts that start Kafka's JVM."""
_IDS: Final = ("node.id", "broker.id")
_ROLES: Final = "process.roles"
_LISTENERS: Final = "listeners"
_ADVERTISED: Final = "advertised.listeners"
_PROTOCOLS: Final = "listener.security.protocol.map"
_CONTROLLER_NAMES: Final = "controller.listener.names"
_VOTERS: Final = "controller.quorum.voters"
_TAKEN: Final = frozenset(
    {
        *_IDS,
        _ROLES,
        _LISTENERS,
        _ADVERTISED,
        _PROTOCOLS,
        _CONTROLLER_NAMES,
        _VOTERS,
        "controller.quorum.bootstrap.servers",
        "inter.broker.listener.name",
    }
)
"""Configs that say what an option says, or what a single process has no use for."""
_DEFAULT_LISTENERS: Final = "PLAINTEXT://:9092"
_ALONE: Final = (
    "it names {} controllers, and this process is a cluster of its own: --brokers says how many"
    " brokers it has"
)


class KafkaOptions(Struct):
    """What the variables say."""

    texts: dict[str, list[OptionText]] = field(default_factory=dict)
    """The texts of options, by their keys."""
    configs: dict[str, OptionText] = field(default_factory=dict)
    """Broker configs by name, each with its value."""
    ignored: dict[str, str] = field(default_factory=dict)
    """Variables without an effect, with the reason."""


def config_name(variable: str) -> str:
    """The config that a variable sets, by its name without the prefix."""
    return variable.lower().replace("_", ".").replace("...", "-").replace("..", "_")


def kafka_options(environment: Mapping[str, str]) -> KafkaOptions:
    """Read the variables; an empty one says nothing.

    :raises OptionError: When one is wrong, or needs what is not served.
    """
    given = dict(_configs(environment))
    found = KafkaOptions()
    _read_node(given, found)
    if _LISTENERS in given or _ADVERTISED in given:
        _read_listeners(given, found)
    others = {name: text for name, text in given.items() if name not in _TAKEN}
    if others:
        from fencepost.broker.configs.broker_configs import broker_configs, find_broker_config
        from fencepost.protocol.lookup import did_you_mean

        for name, text in others.items():
            if find_broker_config(name) is None:
                hint = did_you_mean(name, broker_configs())
                found.ignored[text.source] = f"Kafka has no broker config {name}{hint}"
            else:
                found.configs[name] = text
    return found


def _configs(environment: Mapping[str, str]) -> Iterator[tuple[str, OptionText]]:
    for variable, text in without_service_variables(environment, PREFIX).items():
        prefix = _BITNAMI if variable.startswith(_BITNAMI) else PREFIX
        name = variable.removeprefix(prefix)
        if text and not _OF_JVM.fullmatch(name):
            yield config_name(name), OptionText(text, variable)


def _read_node(given: Mapping[str, OptionText], found: KafkaOptions) -> None:
    roles = given.get(_ROLES)
    if roles is not None and "broker" not in _names(roles.text):
        roles.refuse("names no broker; the controller is part of fencepost's one process")
    for name in _IDS:
        if name in given:
            found.texts.setdefault("broker_ids", [given[name]])
    voters = given.get(_VOTERS)
    if voters is not None and len(_names(voters.text)) > 1:
        found.ignored[voters.source] = _ALONE.format(len(_names(voters.text)))


def _read_listeners(given: Mapping[str, OptionText], found: KafkaOptions) -> None:
    """The listeners of brokers and of the controller."""
    listeners = given.get(_LISTENERS, OptionText(_DEFAULT_LISTENERS, _LISTENERS))
    advertised = _addresses(given[_ADVERTISED]) if _ADVERTISED in given else {}
    names = given.get(_CONTROLLER_NAMES)
    controllers = {each.upper() for each in _names(names.text)} if names is not None else set()
    protocols = _read_protocols(given.get(_PROTOCOLS))
    for name, text in _addresses(listeners).items():
        protocol = protocols.get(name, PLAINTEXT)
        if protocol != PLAINTEXT:
            raise OptionError(
                f"{given[_PROTOCOLS].source}: the listener {name} has the security protocol"
                f" {protocol}, and only PLAINTEXT is served"
            )
        own = advertised.get(name)
        address = "" if own is None else f",advertised={own.text.partition('://')[2]}"
        shown = CONTROLLER if name in controllers else name
        listener = text._replace(text=f"{shown}://{text.text.partition('://')[2]}{address}")
        found.texts.setdefault("listener", []).append(listener)


def _addresses(given: OptionText) -> dict[str, OptionText]:
    """The elements of a list of listeners, by the names of these in upper case."""
    texts = [given._replace(text=each) for each in _names(given.text)]
    return {parsed(each, parse_address)[0]: each for each in texts}


def _read_protocols(given: OptionText | None) -> dict[str, str]:
    """The security protocols by listener name, both in upper case."""
    if given is None:
        return {}
    pairs = (each.partition(":") for each in _names(given.text))
    return {name.strip().upper(): protocol.strip().upper() for name, _, protocol in pairs}


def _names(text: str) -> list[str]:
    """The elements of a list as configs have it."""
    return [each.strip() for each in text.split(",") if each.strip()]
