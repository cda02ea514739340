"""``fencepost serve``: its options, read and checked, and the process that serves.

``fencepost serve``: read the options, run the cluster, say when it is ready.
"""

import argparse
import json
import os
import re
import sys
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

from fencepost.broker.controller import MAX_BROKER_ID, MAX_BROKERS
from fencepost.broker.core.errors import ControllerError, DataDirUnusable
from fencepost.broker.node.cluster import Conformance
from fencepost.broker.server.listener import PortUnavailable, is_loopback
from fencepost.broker.server.logs import LEVELS
from fencepost.broker.server.remote_urls import RemoteUnavailable, is_in_memory, remote_problem
from fencepost.broker.server.resources import TooFewDescriptors
from fencepost.broker.server.run import NO_LIMIT, ClockMode, Ready, ServeOptions, run
from fencepost.broker.server.trace_file import TraceUnavailable
from fencepost.cli.environment import PREFIX, without_service_variables
from fencepost.cli.listener_options import (
    check_ports,
    read_controller_listener,
    read_host,
    read_listeners,
)
from fencepost.cli.option_values import (
    OptionError,
    OptionText,
    read_broker_configs,
    read_configs,
    read_features,
    read_topics,
)
from fencepost.cli.serve_options import SERVE_OPTIONS, Option
from fencepost.cli.unknown_variables import unknown_variables
from fencepost.control import lazy_app
from fencepost.protocol.apis import (
    FIRST_METADATA_WITH_TOPIC_IDS,
    ceilings_without_topic_ids,
    find_release,
    release_ceilings,
)
from fencepost.protocol.listener_text import MAX_PORT
from fencepost.protocol.lookup import parse_api_ceiling

if TYPE_CHECKING:
    from fencepost.protocol.codec.drafts import Draft

TIER_CONFIG: Final = "remote.log.storage.system.enable"
MAX_LOG_DIRS: Final = 64
_SIZE: Final = re.compile(r"(?P<number>[0-9]{1,18})(?P<unit>[kmgt]?)(i?b)?")
_SHIFTS: Final = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}


# Without a width it imports shutil with all archive formats, for the terminal's. Help is typer's.
_FORMATTER: Final = partial(argparse.HelpFormatter, width=80)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise OptionError(f"{message}; see fencepost serve --help")


def parse_options(arguments: Sequence[str], environment: Mapping[str, str]) -> ServeOptions:
    """The options of ``fencepost serve``. An argument beats its environment variable.

    :raises OptionError: When an option is unknown, its value is no good, or two contradict.
    """
    parser = _Parser(
        prog="fencepost serve", add_help=False, allow_abbrev=False, formatter_class=_FORMATTER
    )
    for option in SERVE_OPTIONS:
        value, alone = ("?", "true") if option.switch else (None, None)
        parser.add_argument(option.flag, action="append", dest=option.key, nargs=value, const=alone)
    given: dict[str, list[str] | None] = vars(parser.parse_args(arguments))
    on_command_line = {key for key, texts in given.items() if texts}
    own = without_service_variables(environment, PREFIX)
    found = {option.key: _texts(option, given, own) for option in SERVE_OPTIONS}
    ignored = dict(unknown_variables(name for name, text in own.items() if text))
    if _switch(_last_text(found, "kafka_env")):
        ignored |= _add_kafka_options(found, environment, on_command_line)
    on_disk, strict = bool(found["data_dir"]), _switch(_last_text(found, "strict_configs"))
    configs = read_configs(found["config"], on_disk=on_disk, strict=strict)
    remote = _remote(_last_text(found, "remote"), configs) if found["remote"] else None
    control_host = read_host(_last_text(found, "control_host"))
    token, is_token_drawn = _control_token(found, control_host)
    broker_ids = _node_ids(found["broker_ids"])
    brokers = _brokers(found["brokers"], broker_ids)
    ids = sorted(broker_ids) or range(1, brokers + 1)
    controller_ids = _node_ids(found["controller_ids"])
    broker_configs = read_broker_configs(
        found["broker_config"],
        configs,
        ids,
        controller_ids=controller_ids,
        on_disk=on_disk,
        strict=strict,
    )
    listeners = read_listeners(found, on_command_line)
    options = ServeOptions(
        brokers=brokers,
        broker_ids=tuple(sorted(broker_ids)),
        controller_ids=controller_ids,
        listeners=listeners,
        controller=read_controller_listener(found, listeners[0], on_command_line),
        control_port=_last_text(found, "control_port").number(0, MAX_PORT),
        control_host=control_host,
        control_token=token,
        control_token_drawn=is_token_drawn,
        max_memory=_memory(_last_text(found, "max_memory")) if found["max_memory"] else None,
        data_dir=_directory(_last_text(found, "data_dir")) if found["data_dir"] else None,
        fsync=_switch(_last_text(found, "fsync")),
        accept_data_loss=_switch(_last_text(found, "accept_data_loss")),
        remote=remote,
        topics=read_topics(found["topic"], configs, on_disk=on_disk, strict=strict),
        configs=configs,
        broker_configs=broker_configs,
        features=read_features(
            found["feature"],
            configs,
            broker_configs,
            broker_ids=ids,
            controller_ids=controller_ids,
        ),
        strict_configs=strict,
        racks=_racks(_last_text(found, "racks")) if found["racks"] else (),
        log_dirs=_last_text(found, "log_dirs").number(1, MAX_LOG_DIRS),
        api_max=_ceilings(found["like_kafka"], found["api_max"]),
        trace=Path(_last_text(found, "trace").text) if found["trace"] else None,
        trace_files=_last_text(found, "trace_files").number(1) if found["trace_files"] else None,
        clock=_clock(_last_text(found, "clock")),
        conformance=_conformance(_last_text(found, "conformance")),
        dialect=_dialect(_last_text(found, "dialect")) if found["dialect"] else None,
        seed=_last_text(found, "seed").number(0) if found["seed"] else _random_seed(),
        ignored_variables=ignored,
        log_level=_log_level(_last_text(found, "log_level")),
        stop_with_stdin=_switch(_last_text(found, "stop_with_stdin")),
    )
    _check_trace(options)
    _check_fsync(options)
    _check_seed(options, is_given=bool(found["seed"]))
    check_ports(options)
    _check_racks(options)
    _check_topics(options)
    return options


def _last_text(found: Mapping[str, list[OptionText]], key: str) -> OptionText:
    return found[key][-1]


def _texts(
    option: Option, given: Mapping[str, list[str] | None], environment: Mapping[str, str]
) -> list[OptionText]:
    """The argument if there is one, else the environment variable, else the default."""
    texts = given.get(option.key)
    if texts:
        return [OptionText(text, option.flag) for text in texts]
    variable = environment.get(option.variable, "")
    if variable:
        parts = variable.split() if option.repeated else [variable]
        return [OptionText(text, option.variable) for text in parts]
    return [OptionText(option.default, option.flag)] if option.default is not None else []


def _add_kafka_options(
    found: dict[str, list[OptionText]],
    environment: Mapping[str, str],
    on_command_line: Collection[str],
) -> dict[str, str]:
    """Add what Kafka's variables say where the options say nothing; the variables without effect.

    :raises OptionError: When a variable is wrong, or needs what is not served.
    """
    from fencepost.cli.kafka_environment import kafka_options

    kafka = kafka_options(environment)
    if found["brokers"]:
        kafka.texts.pop("broker_ids", None)
    if found["listener"] or not {"host", "port"}.isdisjoint(on_command_line):
        kafka.texts.pop("listener", None)
    for key, texts in kafka.texts.items():
        found[key] = found[key] or texts
    given = {each.text.partition("=")[0] for each in found["config"]}
    found["config"] += [
        value._replace(text=f"{name}={value.text}")
        for name, value in kafka.configs.items()
        if name not in given
    ]
    return kafka.ignored


def _brokers(given: Sequence[OptionText], broker_ids: Sequence[int]) -> int:
    """How many there are."""
    if not given:
        return len(broker_ids) or 1
    brokers = given[-1].number(1, MAX_BROKERS)
    if broker_ids and brokers != len(broker_ids):
        given[-1].refuse(f"is not the number of the --broker-ids, {len(broker_ids)}")
    return brokers


def _node_ids(given: Sequence[OptionText]) -> tuple[int, ...]:
    """Ids as ``node.id`` allows, each once; none where the option is not given."""
    if not given:
        return ()
    ids: list[int] = []
    for text in given[-1].text.split(","):
        each = given[-1]._replace(text=text.strip())
        ids.append(each.number(0, MAX_BROKER_ID))
        if ids[-1] in ids[:-1]:
            each.refuse("is given a second time")
    if len(ids) > MAX_BROKERS:
        raise OptionError(f"{given[-1].source}: {len(ids)} ids are more than {MAX_BROKERS}")
    return tuple(ids)


def _control_token(found: Mapping[str, list[OptionText]], host: str) -> tuple[str | None, bool]:
    """The token of the control API, None where it needs none; and whether it was drawn.

    No message repeats one that is given.
    """
    text, file = found["control_token"], found["control_token_file"]
    if not text and not file and is_loopback(host):
        return None, False
    from fencepost.verbs.control_token import InvalidToken, checked, drawn, read

    try:
        if text:
            return checked(text[-1].text), False
        return (read(Path(file[-1].text)), False) if file else (drawn(), True)
    except InvalidToken as error:
        raise OptionError(f"{(text or file)[-1].source}: {error}") from None


def _memory(given: OptionText) -> int:
    """Bytes, or `NO_LIMIT`."""
    if given.text == "none":
        return NO_LIMIT
    found = _SIZE.fullmatch(given.text.lower())
    size = 0 if found is None else int(found["number"]) << _SHIFTS[found["unit"]]
    if not size:
        given.refuse("is not a size in bytes or with k, m or g, such as 512m, nor none")
    return size


def _directory(given: OptionText) -> Path:
    if not given.text:  # it would be the directory that the process happens to be in
        given.refuse("is not the path of a directory; . is the present one")
    return Path(given.text).absolute()


def _remote(given: OptionText, configs: dict[str, str]) -> str:
    """The URL of the tier. It also sets the config that enables it."""
    problem = remote_problem(given.text)
    if problem is not None:
        # The query may hold secrets.
        given._replace(text=given.text.partition("?")[0]).refuse(problem)
    if configs.get(TIER_CONFIG) == "false":
        raise OptionError(f"{given.source}: {TIER_CONFIG}=false says that there is no tier")
    configs[TIER_CONFIG] = "true"
    return given.text


def _racks(given: OptionText) -> tuple[str, ...]:
    racks = tuple(rack.strip() for rack in given.text.split(","))
    if not all(racks):
        given.refuse("is not a list of racks, such as east,west")
    return racks


def _ceilings(like_kafka: Sequence[OptionText], given: Sequence[OptionText]) -> dict[str, int]:
    """By API name. A ceiling of one API takes precedence over the release."""
    ceilings = _release(like_kafka[-1]) if like_kafka else {}
    own: dict[str, OptionText] = {}
    for each in given:
        name, version = _ceiling(each)
        if name in own:
            each.refuse(f"gives {name} a second time")
        own[name] = each
        ceilings[name] = version
    lowered = ceilings_without_topic_ids(ceilings)
    for each in (each for name, each in own.items() if name in lowered):
        each.refuse(
            "needs the ids of topics, which clients learn from Metadata "
            f"{FIRST_METADATA_WITH_TOPIC_IDS} on, and that is served up to {ceilings['metadata']}"
        )
    return ceilings


def _release(given: OptionText) -> dict[str, int]:
    try:
        return release_ceilings(find_release(given.text))
    except ValueError as error:
        return given.refuse(str(error))


def _ceiling(given: OptionText) -> tuple[str, int]:
    try:
        return parse_api_ceiling(given.text)
    except ValueError as error:
        return given.refuse(str(error))


def _log_level(given: OptionText) -> str:
    if given.text not in LEVELS:
        given.refuse(f"is not {' or '.join(LEVELS)}")
    return given.text


def _switch(given: OptionText) -> bool:
    if given.text not in ("true", "false"):
        given.refuse("is not true or false")
    return given.text == "true"


def _clock(given: OptionText) -> ClockMode:
    try:
        return ClockMode(given.text)
    except ValueError:
        return given.refuse(f"is not {' or '.join(ClockMode)}")


def _conformance(given: OptionText) -> Conformance:
    try:
        return Conformance(given.text)
    except ValueError:
        return given.refuse(f"is not {' or '.join(Conformance)}")


def _dialect(given: OptionText) -> "Draft":
    from fencepost.protocol.codec.drafts import DRAFTS

    if given.text not in DRAFTS:
        given.refuse(f"is not {' or '.join(DRAFTS)}")
    return DRAFTS[given.text]


def _random_seed() -> int:
    return int.from_bytes(os.urandom(4))


def _check_seed(options: ServeOptions, *, is_given: bool) -> None:
    """A second run would draw the ids of the first one's topics, and own their tier."""
    lasts = options.remote is not None and not is_in_memory(options.remote)
    if is_given and lasts and options.data_dir is None:
        raise OptionError(
            "--seed with a --remote that lasts draws the same topic ids again, and with them what "
            "an earlier run left there; add --data-dir, which remembers what was drawn, or leave "
            "--seed out"
        )


def _check_trace(options: ServeOptions) -> None:
    if options.trace_files is not None and options.trace is None:
        raise OptionError("--trace-files: there is no --trace to have files")


def _check_fsync(options: ServeOptions) -> None:
    if options.fsync and options.data_dir is None:
        raise OptionError("--fsync: there is no --data-dir to have files that it could force")
    if options.accept_data_loss and options.data_dir is None:
        raise OptionError("--accept-data-loss: there is no --data-dir that could miss records")


def _check_racks(options: ServeOptions) -> None:
    if len(options.racks) > options.brokers:
        raise OptionError(f"{len(options.racks)} racks are too many for {options.brokers} brokers")


def _check_topics(options: ServeOptions) -> None:
    seen = set()
    for topic in options.topics:
        if topic.name in seen:
            raise OptionError(f"topic {topic.name} is given twice")
        seen.add(topic.name)
        if topic.replication_factor > options.brokers:
            raise OptionError(
                f"topic {topic.name}: replication factor {topic.replication_factor}"
                f" is larger than the number of brokers, {options.brokers}"
            )


CANNOT_START: Final = 2
_STANDARD: Final = range(3)
"""Input, output and error."""


def serve(arguments: Sequence[str]) -> int:
    """Serve until SIGTERM or SIGINT.

    :returns: 0 after a clean stop, 2 with one line on standard error when it cannot start.
    """
    _fill_standard_streams()
    try:
        options = parse_options(arguments, os.environ)
        plane = partial(
            lazy_app.serve,
            host=options.control_host,
            token=options.control_token,
            log_token=options.control_token_drawn,
        )
        run(options, plane, partial(announce, options), lazy_app.trace_lines)
    except (
        OptionError,
        PortUnavailable,
        TraceUnavailable,
        TooFewDescriptors,
        DataDirUnusable,
        RemoteUnavailable,
        ControllerError,
    ) as error:
        from fencepost.cli.output import complain

        complain(f"fencepost serve: {error}")
        return CANNOT_START
    return 0


def announce(options: ServeOptions, ready: Ready) -> None:
    """Print one line of JSON for the parent process: where everything listens.

    A token is in it if it was drawn: its owner has it from here.
    """
    line = {
        "bootstrap": ready.bootstrap,
        "listeners": dict(ready.listeners),
        **({"controller": ready.controller} if ready.controller is not None else {}),
        "control": ready.control,
        "pid": ready.pid,
        "seed": options.seed,
        **({"control_token": options.control_token} if options.control_token_drawn else {}),
    }
    print(json.dumps(line), flush=True)  # noqa: T201  # ASCII; nothing is imported for it
    if sys.stdout.isatty():
        print(_HINTS.format(**line, first=ready.bootstrap.partition(",")[0]), file=sys.stderr)  # noqa: T201  # likewise


_HINTS: Final = """\
In another terminal:
  kcat -b {first} -L                                  # its brokers and topics
  echo hello | kcat -b {first} -P -t greetings        # produce
  kcat -b {first} -C -t greetings -o beginning -e     # consume
  kcat -b {first} -Q -t greetings:0:-1                # the next offset
  curl {control}/v1/cluster                    # steer; the page for a browser is at {control}
Ctrl-C ends it."""
"""What a person at a terminal sees after the ready line: what to do with the real addresses."""


def _fill_standard_streams() -> None:
    """Open the standard streams that the parent process closed, or a listener would take their
    numbers.
    """
    for descriptor in _STANDARD:
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w")
