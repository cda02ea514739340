"""Topics and configs as a person writes them: ``NAME[:PARTITIONS[:RF]][,KEY=VALUE...]``.

``serve`` reads its options with this before anything is imported that takes long, and so are the
topics and configs of a test and of a scenario read.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

TOPIC_FORM: Final = "NAME[:PARTITIONS[:RF]][,KEY=VALUE...]"
CONFIG_FORM: Final = "KEY=VALUE"
_MOST_COUNTS: Final = 2


class TopicText(NamedTuple):
    """A topic as it is written. Whether its name and configs are right is not known yet."""

    name: str
    counts: tuple[int, ...]
    """Partitions, and the replication factor, as far as they are given."""
    configs: dict[str, str]


def parse_topic(text: str) -> TopicText:
    """Read a topic. Commas may stand in the value of a config too, which may be a list.

    :raises ValueError: With what is wrong, as the end of a sentence about the text.
    """
    counted, *pieces = text.split(",")
    name, *counts = counted.split(":")
    is_right = len(counts) <= _MOST_COUNTS and all(
        count.isascii() and count.isdigit() for count in counts
    )
    if not is_right or (pieces and "=" not in pieces[0]):
        raise ValueError(f"is not {TOPIC_FORM}")
    texts: list[str] = []
    for piece in pieces:
        if "=" in piece:
            texts.append(piece)
        else:
            texts[-1] += f",{piece}"
    configs: dict[str, str] = {}
    for each in texts:
        add_config(configs, each, TOPIC_FORM)
    return TopicText(name, tuple(map(int, counts)), configs)


def topic_fields(text: str) -> dict[str, object]:
    """A topic as ``create_topic`` takes it.

    :raises ValueError: With the text and what is wrong with it.
    """
    try:
        name, counts, configs = parse_topic(text)
    except ValueError as error:
        raise ValueError(f"{text!r} {error}") from None
    names = ("partitions", "replication_factor")
    return {"name": name, "configs": configs, **dict(zip(names, counts, strict=False))}


def config_pairs(given: object) -> object:
    """Configs by name of a list of ``KEY=VALUE``; all else as it is, for a model to judge.

    :raises ValueError: With the text that is no ``KEY=VALUE``.
    """
    if not isinstance(given, list | tuple):
        return given
    configs: dict[str, str] = {}
    for each in given:
        try:
            add_config(configs, str(each))
        except ValueError as error:
            raise ValueError(f"{each!r} {error}") from None
    return configs


def config_texts(given: object) -> object:
    """The same, with the numbers and switches of a program as text: ``True`` is ``true``."""
    configs = config_pairs(given)
    if not isinstance(configs, Mapping):
        return configs
    return {name: _config_text(value) for name, value in configs.items()}


def _config_text(value: object) -> object:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


def add_config(configs: dict[str, str], text: str, form: str = CONFIG_FORM) -> None:
    """Add what ``KEY=VALUE`` says to some configs.

    :param form: Of the whole that the text is a part of.
    :raises ValueError: With what is wrong, as the end of a sentence about the text.
    """
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise ValueError(f"is not {form}")
    if key in configs:
        raise ValueError(f"gives {key} a second time")
    configs[key] = value
