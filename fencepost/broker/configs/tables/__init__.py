"""Kafka's configs as data, and how the data is read.

A row is a line with the name, the type, the default (``-`` for none, ``""`` for an empty one) and
any of these words, followed by an indented line of documentation:

====================================  =======================================================
``>=1``, ``0..1``, ``1..9|-1``        bounds, inclusive; the last takes -1 as well
``one-of:a,b``, ``any-case:A,B``      the values, or a list's entries
``non-empty``, ``throttled-replicas`` further checks of texts and lists
``format-version``                    a release of Kafka
``per-broker``, ``cluster-wide``      how a broker config may change at run time; else it may not
``hidden``                            shown only where it is set
``acts``                              it has its effect here
``inert:why``, ``fixed:why``          it has none; `effects` has the reasons by key
``on-disk:why``                       it has its effect where logs are kept in files, else none
``also:false``                        a second text that an inert config takes
====================================  =======================================================

The defaults, types and bounds are those of Apache Kafka 4.3.1; the words are ours.
"""

from typing import Final

from fencepost.broker.configs.config_def import (
    ConfigDef,
    ConfigType,
    Effect,
    Table,
    UpdateMode,
    Valid,
)

_INDENT: Final = "    "
_MODES: Final = {"per-broker": UpdateMode.PER_BROKER, "cluster-wide": UpdateMode.CLUSTER_WIDE}
_EFFECTS: Final = {
    "acts": Effect.ACTS,
    "inert": Effect.INERT,
    "fixed": Effect.FIXED,
    "on-disk": Effect.ON_DISK,
}


def read(*texts: str) -> Table:
    """Every config of some tables, by name and in the order of the names."""
    found = {}
    for text in texts:
        lines = iter(text.splitlines())
        for row, doc in zip(lines, lines, strict=True):
            config = _config(row, doc)
            found[config.name] = config
    return dict(sorted(found.items()))


def _config(row: str, doc: str) -> ConfigDef:
    name, kind, default, *words = row.split()
    if not doc.startswith(_INDENT):
        raise ValueError(f"{name} has no documentation")
    valid: Valid | None = None
    mode, effect, reason, also, hidden = UpdateMode.READ_ONLY, None, "", None, False
    for word in words:
        key, _, rest = word.partition(":")
        if key in _EFFECTS:
            effect, reason = _EFFECTS[key], rest
        elif key in _MODES:
            mode = _MODES[key]
        elif key == "hidden":
            hidden = True
        elif key == "also":
            also = rest
        else:
            valid = _valid(word, key, rest)
    if effect is None:
        raise ValueError(f"{name} does not say whether it acts")
    return ConfigDef(
        name=name,
        type=ConfigType[kind],
        default=None if default == "-" else default.replace('""', ""),
        doc=doc.strip(),
        valid=valid,
        mode=mode,
        hidden=hidden,
        effect=effect,
        reason=reason,
        also=also,
    )


def _valid(word: str, key: str, rest: str) -> Valid:
    if key in {"one-of", "any-case"}:
        return Valid(one_of=tuple(rest.split(",")), any_case=key == "any-case")
    if word == "non-empty":
        return Valid(non_empty=True)
    if word == "throttled-replicas":
        return Valid(throttled_replicas=True)
    if word == "format-version":
        return Valid(format_version=True)
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
