"""Kafka's configs and fencepost's own: the data files beside this module, and how they are read.

A section, ``[broker]``, ``[topic]``, ``[group]`` or ``[client-metrics]``, has one row for each
config: a line with the name, the type, the default (``-`` for none, ``""`` for an empty one) and
any of these words, followed by an indented line of documentation:

====================================  =======================================================
``>=1``, ``0..1``, ``1..9|-1``        bounds, inclusive; the last takes -1 as well
``one-of:a,b``, ``any-case:A,B``      the values, or a list's entries
``non-empty``, ``throttled-replicas`` further checks of texts and lists
``format-version``                    a release of Kafka
``per-broker``, ``cluster-wide``      how a broker config may change at run time; else it may not
``by-listener``                       it may change with a listener's prefix only
``hidden``                            shown only where it is set
``acts``                              it has its effect here
``inert:why``, ``fixed:why``          it has none; section ``[reasons]`` has the reasons by key
``on-disk:why``                       it has its effect where logs are kept in files, else none
``also:false``                        a second text that an inert config takes
====================================  =======================================================

A config of a topic or a group that takes its default from a broker config has ``synonym:NAME`` in
place of type and default. It is what that broker config is, but for the words of its row (there
``default:7`` may be one of them) and its own line of documentation, where it has one.

The rows of ``[group]`` are in the order in which Kafka defines them: of several texts that it
refuses it names the first. Of the others the order means nothing.

``[synonyms]`` has the broker configs that say the same in other units, one line for each set: the
first that has a text holds. ``NAME*60000`` is one whose unit is 60000 ms.

The defaults, types and bounds are those of Apache Kafka 4.3.1.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from functools import cache
from pkgutil import get_data
from typing import Any, Final, TypeAlias

from msgspec import Struct, field

from fencepost.broker.configs.config_def import (
    ConfigDef,
    ConfigType,
    Effect,
    Table,
    UpdateMode,
    Valid,
)

KAFKA_CONFIGS: Final = "kafka_configs.txt"
FENCEPOST_CONFIGS: Final = "fencepost_configs.txt"
_INDENT: Final = "    "
_SYNONYM: Final = "synonym:"
_FIELDS: Final = tuple(each.name for each in fields(ConfigDef) if each.init)
_FLAGS: Final[Mapping[str, tuple[str, object]]] = {
    "acts": ("effect", Effect.ACTS),
    "per-broker": ("mode", UpdateMode.PER_BROKER),
    "cluster-wide": ("mode", UpdateMode.CLUSTER_WIDE),
    "by-listener": ("by_listener", True),
    "hidden": ("hidden", True),
    "non-empty": ("valid", Valid(non_empty=True)),
    "throttled-replicas": ("valid", Valid(throttled_replicas=True)),
    "format-version": ("valid", Valid(format_version=True)),
}
_EFFECTS: Final = {"inert": Effect.INERT, "fixed": Effect.FIXED, "on-disk": Effect.ON_DISK}

Rows: TypeAlias = dict[str, tuple[str, str]]
"""The lines of a section by the first word of each, with the indented text below it."""


def read_sections(text: str) -> dict[str, Rows]:
    """The rows of each section of a data file. Lines that begin with # are comments."""
    sections = {}
    for section in f"\n{text}".split("\n[")[1:]:
        title, _, body = section.partition("]\n")
        rows = sections[title] = Rows()
        name = row = ""
        for line in body.splitlines():
            if line.startswith(_INDENT):
                rows[name] = row, line.strip()
            elif line and not line.startswith("#"):
                name, row = line.partition(" ")[0], line
                rows[name] = row, ""
    return sections


class ConfigTable(Mapping[str, ConfigDef]):
    """Configs by name, in the order of the names.

    A row is parsed when its config is first looked up: a start needs a third of them.

    :param reasons: Why configs have no effect, by key.
    :param synonyms: The broker configs, for configs that take their defaults from those.
    """

    def __init__(
        self, rows: Rows, reasons: Mapping[str, str], synonyms: Table | None = None
    ) -> None:
        self._rows = dict(sorted(rows.items()))
        self._reasons = reasons
        self._synonyms = synonyms or {}
        self._parsed: dict[str, ConfigDef] = {}

    def __getitem__(self, name: str) -> ConfigDef:
        config = self._parsed.get(name)
        if config is None:
            row, doc = self._rows[name]
            config = self._parsed[name] = _config(row, doc, self._reasons, self._synonyms)
        return config

    def __contains__(self, name: object) -> bool:
        return name in self._rows

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)


class ConfigTables(Struct, frozen=True, kw_only=True):
    """The configs of every kind of resource."""

    broker: Table
    topic: Table
    group: Table
    group_order: tuple[str, ...]
    """Group configs in the order in which Kafka defines, and reads, them."""
    client_metrics: Table
    reasons: Mapping[str, str]
    """Why a config has no effect here, by key."""
    unit_synonyms: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Broker configs that say the same in other units, by each name of them: milliseconds a unit
    by name. The first that has a text holds."""


def parse_tables(*texts: str) -> ConfigTables:
    """The configs of some data files together."""
    sections: dict[str, Rows] = {}
    for text in texts:
        for title, rows in read_sections(text).items():
            sections.setdefault(title, {}).update(rows)
    reasons = {key: text for key, (_, text) in sections.get("reasons", {}).items()}
    broker = ConfigTable(sections.get("broker", {}), reasons)
    return ConfigTables(
        broker=broker,
        topic=ConfigTable(sections.get("topic", {}), reasons, broker),
        group=ConfigTable(sections.get("group", {}), reasons, broker),
        group_order=tuple(sections.get("group", {})),
        client_metrics=ConfigTable(sections.get("client-metrics", {}), reasons),
        reasons=reasons,
        unit_synonyms=_unit_synonyms(sections.get("synonyms", {})),
    )


@cache
def config_tables() -> ConfigTables:
    """Every config of Apache Kafka 4.3.1, and fencepost's own."""
    return parse_tables(data_file(KAFKA_CONFIGS), data_file(FENCEPOST_CONFIGS))


@cache
def own_configs() -> frozenset[str]:
    """The names of fencepost's own configs, whatever they are of."""
    sections = read_sections(data_file(FENCEPOST_CONFIGS))
    return frozenset(name for rows in sections.values() for name in rows)


def data_file(name: str) -> str:
    """The text of a data file of this package, which may be imported from a zip file."""
    data = get_data(__package__, name)
    assert data is not None, "the package was imported without a loader"
    return data.decode()


def _unit_synonyms(rows: Rows) -> dict[str, Mapping[str, int]]:
    by_name: dict[str, Mapping[str, int]] = {}
    for row, _ in rows.values():
        units = {}
        for word in row.split():
            name, _, factor = word.partition("*")
            units[name] = int(factor or 1)
        by_name.update(dict.fromkeys(units, units))
    return by_name


def _config(row: str, doc: str, reasons: Mapping[str, str], synonyms: Table) -> ConfigDef:
    name, kind, *words = row.split()
    given: dict[str, Any]
    if kind.startswith(_SYNONYM):
        synonym = synonyms[kind.removeprefix(_SYNONYM)]
        given = {each: getattr(synonym, each) for each in _FIELDS}
        given |= {"synonym": synonym.name, "mode": UpdateMode.READ_ONLY}
    else:
        default, *words = words
        given = {"type": ConfigType[kind], "default": _default(default)}
    given["name"] = name
    if doc:
        given["doc"] = doc
    for word in words:
        given.update(_parse_word(word, reasons))
    if "effect" not in given:
        raise ValueError(f"{name} does not say whether it acts")
    if "doc" not in given:
        raise ValueError(f"{name} has no documentation")
    return ConfigDef(**given)


def _default(text: str) -> str | None:
    return None if text == "-" else text.replace('""', "")


def _parse_word(word: str, reasons: Mapping[str, str]) -> dict[str, object]:
    """What a word of a row says of its config."""
    if word in _FLAGS:
        return dict([_FLAGS[word]])
    key, _, text = word.partition(":")
    if key in _EFFECTS:
        return {"effect": _EFFECTS[key], "reason": reasons[text]}
    named = _NAMED.get(key)
    return {"valid": _bounds(word)} if named is None else named(text)


_NAMED: Final[Mapping[str, Callable[[str], dict[str, object]]]] = {
    "default": lambda text: {"default": _default(text)},
    "also": lambda text: {"also": text},
    "one-of": lambda text: {"valid": Valid(one_of=tuple(text.split(",")))},
    "any-case": lambda text: {"valid": Valid(one_of=tuple(text.split(",")), any_case=True)},
}


def _bounds(word: str) -> Valid:
    if word.startswith(">="):
        return Valid(at_least=_number(word[2:]))
    bounds, _, extra = word.partition("|")
    low, _, high = bounds.partition("..")
    return Valid(
        at_least=_number(low), at_most=_number(high), or_else=int(extra) if extra else None
    )


def _number(text: str) -> float:
    """An int where it is one, so that messages show it as Kafka does."""
    try:
        return int(text)
    except ValueError:
        return float(text)
