"""What an option of ``serve`` was given: its text and its source, and configs and topics in it.

The table of configs is read only where there are some: start-up time counts.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple, NoReturn, TypeVar

from fencepost.broker.controller.topic_changes import NewTopic, topic_name_problem
from fencepost.protocol.topic_text import TOPIC_FORM, add_config, parse_topic

_T = TypeVar("_T")
_BROKER_CONFIG_FORM: Final = "ID:KEY=VALUE"


class OptionError(Exception):
    """An option is wrong. The text is one line, for the person who gave it."""


class OptionText(NamedTuple):
    """An option's text, and where it was read, for the message when it is wrong."""

    text: str
    source: str

    def refuse(self, why: str) -> NoReturn:
        """Say what is wrong with it, as the end of a sentence about the text.

        :raises OptionError: Always.
        """
        from fencepost.protocol.shown_text import without_user_info

        raise OptionError(f"{self.source}: {without_user_info(self.text)!r} {why}")

    def number(self, low: int, high: int | None = None) -> int:
        """A whole number from ``low`` to ``high``, both inclusive."""
        wanted = f"a number from {low} to {high}" if high is not None else f"a number from {low} on"
        try:
            value = int(self.text)
        except ValueError:
            self.refuse(f"is not {wanted}")
        if value < low or (high is not None and value > high):
            self.refuse(f"is not {wanted}")
        return value


def read_configs(given: Sequence[OptionText], *, on_disk: bool, strict: bool) -> dict[str, str]:
    """The static configs of the brokers.

    :raises OptionError: When they can't be.
    """
    configs: dict[str, str] = {}
    for each in given:
        parsed(each, partial(add_config, configs))
    if configs:
        from fencepost.broker.configs.broker_configs import validate_static_configs
        from fencepost.broker.configs.broker_rules import static_problem

        error = validate_static_configs(configs, on_disk=on_disk, strict=strict)
        error = error or static_problem(configs)
        if error is not None:
            raise OptionError(error.message)
    return configs


def read_features(
    given: Sequence[OptionText],
    configs: Mapping[str, str],
    node_configs: Mapping[int, Mapping[str, str]],
    *,
    broker_ids: Collection[int],
    controller_ids: Sequence[int],
) -> dict[str, int]:
    """The levels of features to start with, by name.

    :param configs: Those of all nodes.
    :param node_configs: Those of single ones, which take precedence, by node id.
    :param controller_ids: The active controller's first; empty where a broker is the controller.
    :raises OptionError: When they can't be.
    """
    if not given:
        return {}
    from fencepost.broker.configs.effective_configs import unstable_features
    from fencepost.broker.metadata.features import initial_levels_problem

    features: dict[str, int] = {}
    for each in given:
        name, _, level = each.text.partition("=")
        if not name or not level.isascii() or not level.isdecimal():
            each.refuse("is not NAME=LEVEL")
        if name in features:
            each.refuse(f"gives {name} a second time")
        features[name] = int(level)
    unstable = unstable_features(
        configs, node_configs, broker_ids=broker_ids, controller_ids=controller_ids
    )
    problem = initial_levels_problem(features, unstable=unstable.everywhere)
    if problem is not None:
        raise OptionError(f"{given[-1].source}: {problem}")
    return features


def read_broker_configs(
    given: Sequence[OptionText],
    configs: Mapping[str, str],
    ids: Collection[int],
    *,
    controller_ids: Sequence[int],
    on_disk: bool,
    strict: bool,
) -> dict[int, dict[str, str]]:
    """The static configs of single brokers, and of the active controller, by node id.

    :param configs: Those of all brokers, which the others take precedence over.
    :param ids: The ids of the brokers.
    :param controller_ids: Those of controllers that are no brokers, the active one first.
    :raises OptionError: When they can't be.
    """
    by_broker: dict[int, dict[str, str]] = {}
    for each in given:
        broker_id, colon, text = each.text.partition(":")
        if not colon or not broker_id.isascii() or not broker_id.isdecimal():
            each.refuse(f"is not {_BROKER_CONFIG_FORM}")
        if int(broker_id) not in (*ids, *controller_ids[:1]):
            brokers = ", ".join(map(str, ids))
            each.refuse(f"is of no broker of this cluster, whose ids are {brokers}")
        own = by_broker.setdefault(int(broker_id), {})
        try:
            add_config(own, text, _BROKER_CONFIG_FORM)
        except ValueError as error:
            each.refuse(str(error))
    for number, own in by_broker.items():
        from fencepost.broker.configs.broker_configs import validate_static_configs
        from fencepost.broker.configs.broker_rules import static_problem

        problem = validate_static_configs(own, on_disk=on_disk, strict=strict)
        problem = problem or static_problem({**configs, **own})
        if problem is not None:
            raise OptionError(f"broker {number}: {problem.message}")
    return by_broker


def read_topics(
    given: Sequence[OptionText], configs: Mapping[str, str], *, on_disk: bool, strict: bool
) -> tuple[NewTopic, ...]:
    """The topics of a start, for which these ``configs`` of the brokers hold.

    :raises OptionError: When one can't be.
    """
    topics = tuple(_topic(each, configs) for each in given)
    if any(topic.configs for topic in topics):
        from fencepost.broker.configs.config_layers import ConfigLayers
        from fencepost.broker.configs.effective_configs import settable_configs

        static = settable_configs(configs) | ({"log.dirs": "files"} if on_disk else {})
        layers = ConfigLayers(static=static, strict=strict)
        for option, topic in zip(given, topics, strict=True):
            problem = layers.topic_problem(dict(topic.configs)) if topic.configs else None
            if problem is not None:
                raise OptionError(f"{option.source}: topic {topic.name}: {problem.message}")
    return topics


def _topic(given: OptionText, configs: Mapping[str, str]) -> NewTopic:
    """What is left out is as the broker configs say, as for any topic."""
    topic = parsed(given, parse_topic)
    problem = topic_name_problem(topic.name)
    if problem is not None:
        given.refuse(f"does not name a topic: {problem}")
    defaults = (configs.get("num.partitions", "1"), configs.get("default.replication.factor", "1"))
    missing = map(int, defaults[len(topic.counts) :])
    partitions, replication_factor = (*topic.counts, *missing)
    if not partitions or not replication_factor:
        given.refuse(f"is not {TOPIC_FORM}")
    return NewTopic(
        name=topic.name,
        partitions=partitions,
        replication_factor=replication_factor,
        configs=topic.configs,
    )


def parsed(given: OptionText, parse: Callable[[str], _T]) -> _T:
    """What a text means.

    :param parse: Raises ValueError with what is wrong, as the end of a sentence about the text.
    :raises OptionError: When it does.
    """
    try:
        return parse(given.text)
    except ValueError as error:
        return given.refuse(str(error))
