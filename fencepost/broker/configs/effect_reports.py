"""Reports of configs that are set and change nothing here: one event for each, and no more.

What Kafka takes is taken, so that an application starts; that a setting does nothing is told, so
that no test believes in it.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, TypeAlias

from fencepost.broker.configs.broker_configs import find_broker_config, unknown_name_reason
from fencepost.broker.configs.client_metrics_configs import client_metrics_configs
from fencepost.broker.configs.config_def import ConfigDef, InvalidConfig, has_no_effect, parse
from fencepost.broker.configs.group_configs import group_configs
from fencepost.broker.configs.topic_configs import topic_configs
from fencepost.broker.core.events import CLIENT_METRICS, GROUP, Events, Kind
from fencepost.broker.core.log_levels import KAFKA_LOGGER, Level
from fencepost.broker.metadata.image import ClusterImage

TOPIC: Final = "topic"
BROKER: Final = "broker"
_LOGGER: Final = "logger"
_FIND: Final[Mapping[str, Callable[[str], ConfigDef | None]]] = {
    TOPIC: lambda name: topic_configs().get(name),
    BROKER: find_broker_config,
    GROUP: lambda name: group_configs().get(name),
    CLIENT_METRICS: lambda name: client_metrics_configs().get(name),
}
"""The configs of each kind of resource, by what an event calls it."""
_Configs: TypeAlias = Mapping[Any, Mapping[str, str]]
"""Dynamic configs by resource; None is every broker."""


class EffectReports:
    """What a cluster tells of its configs without effect.

    :param on_disk: Whether logs are kept in files.
    """

    def __init__(self, events: Events, *, on_disk: bool) -> None:
        self._events = events
        self._on_disk = on_disk
        self._reported: set[tuple[str, str]] = set()
        """By kind of resource and name."""

    def reset(self) -> None:
        """Report again what is set from now on."""
        self._reported.clear()

    def report_static(
        self, configs: Mapping[str, str], own: Mapping[int, Mapping[str, str]]
    ) -> None:
        """Report what brokers were started with: all of them, and single ones by broker id."""
        self._report(BROKER, {None: configs, **own}, (None, *own))

    def report_logger(self, name: str, level: Level) -> None:
        """Report the level of a logger that writes nothing; it is one of all brokers."""
        if (_LOGGER, name) not in self._reported:
            self._reported.add((_LOGGER, name))
            self._events.emit(
                Kind.CONFIG_WITHOUT_EFFECT, config=name, value=level.name, reason=KAFKA_LOGGER
            )

    def report_changes(
        self, before: ClusterImage, after: ClusterImage, changed: frozenset[str]
    ) -> None:
        """Report the dynamic configs of a new image.

        :param changed: Names of topics that are new, gone or different in it.
        """
        if after.topic_configs is not before.topic_configs:
            self._report(TOPIC, after.topic_configs, changed)
        for kind, old, new in (
            (BROKER, before.broker_configs, after.broker_configs),
            (GROUP, before.group_configs, after.group_configs),
            (CLIENT_METRICS, before.client_metrics_configs, after.client_metrics_configs),
        ):
            if new is not old:
                self._report(kind, new, new)

    def _report(self, kind: str, configs: _Configs, resources: Collection[Any]) -> None:
        for resource in resources:
            for name, text in configs.get(resource, {}).items():
                if (kind, name) not in self._reported:
                    self._report_one(kind, resource, name, text)

    def _report_one(self, kind: str, resource: str | int | None, name: str, text: str) -> None:
        config = _FIND[kind](name)
        if config is None or config.name != name:
            reason = unknown_name_reason(name)
        elif self._acts(config, text):
            return
        else:
            reason = config.reason
        self._reported.add((kind, name))
        where: dict[str, Any] = {kind: resource}
        shown = None if config is None or config.sensitive else text
        self._events.emit(
            Kind.CONFIG_WITHOUT_EFFECT, **where, config=name, value=shown, reason=reason
        )

    def _acts(self, config: ConfigDef, text: str) -> bool:
        try:
            value = parse(config, text)
        except InvalidConfig:  # from files of a Kafka that took it
            return True
        return not has_no_effect(config, text, value, on_disk=self._on_disk)
