"""The configs that a topic had, and when, by the events of a trace."""

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Final

from fencepost.broker.core.events import OTHER_RESOURCES, Kind
from fencepost.pipeline.audit.trace_event import FOREVER, TraceEvent


class ConfigHistory:
    """The configs that a topic had, and when."""

    def __init__(self, events: Iterable[TraceEvent]) -> None:
        self._layers: list[tuple[int, dict[str, Mapping[str, str | None]]]] = []
        """From which line on, and then by where they are set."""
        self.is_apache = False
        """Whether the cluster answers as Apache Kafka does, not as the KIPs say."""
        present: dict[str, Mapping[str, str | None]] = {}
        for event in events:
            self.is_apache |= event.details.get("conformance") == "apache"
            changed = _changed(event, present)
            if changed is not None:
                present = changed
                self._layers.append((event.line, present))

    def values(self, name: str, *, since: int = 0, until: int = FOREVER) -> frozenset[str]:
        """The values that a config had between two lines, the default left out.

        :param name: As of the topic; brokers may set it by the same name.
        """
        found = set()
        for (line, layers), (end, _) in pairwise([*self._layers, (FOREVER, {})]):
            if line <= until and end > since:
                found |= _values(layers, name)
        return frozenset(found)


_TOPIC: Final = "topic"
_STATIC: Final = "static"


def _changed(
    event: TraceEvent, present: Mapping[str, Mapping[str, str | None]]
) -> dict[str, Mapping[str, str | None]] | None:
    """What the configs are after an event; None where it is not about any."""
    details = event.details
    if event.kind == Kind.TRACE_STARTED:
        kept = {_TOPIC: present[_TOPIC]} if _TOPIC in present else {}
        dynamic = {f"broker {name}": each for name, each in details["dynamic_configs"].items()}
        return {**kept, **dynamic, _STATIC: details["configs"]}
    if event.kind in (Kind.TOPIC_CREATED, Kind.TOPIC_KNOWN):
        return {**present, _TOPIC: details.get("configs", {})}
    if event.kind == Kind.CONFIGS_CHANGED and not OTHER_RESOURCES & details.keys():
        broker = "" if event.broker is None else event.broker
        where = f"broker {broker}" if event.topic is None else _TOPIC
        return {**present, where: {**present.get(where, {}), **details["configs"]}}
    return None


def _values(layers: Mapping[str, Mapping[str, str | None]], name: str) -> set[str]:
    """What holds for one broker or another; what the topic says holds for all."""
    own = layers.get(_TOPIC, {}).get(name)
    if own is not None:
        return {own}
    return {text for each in layers.values() if (text := each.get(name)) is not None}
