"""``fencepost serve`` as a child process, on free ports of the loopback.

The child holds the end of a pipe and stops when its other end closes (``--stop-with-stdin``), so
that it is gone when this process is, even where that one was killed.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector
from types import TracebackType
from typing import Annotated, Final, Literal, Self

from msgspec import Meta, Struct, field

from fencepost.broker.controller import MAX_BROKER_ID, MAX_BROKERS
from fencepost.protocol.listener_text import parse_advertised, parse_listener
from fencepost.protocol.topic_text import config_pairs
from fencepost.verbs.bodies import Body, Listed
from fencepost.verbs.model import After, Before, Model

READY_S: Final = 30.0
STOP_S: Final = 20.0
_LOG_BYTES: Final = 20_000
_VARIABLE_PREFIX: Final = "FENCEPOST_"
# -P: nothing in the current directory is to stand in for a module.
_COMMAND: Final = ("-P", "-m", "fencepost", "serve")
_ALWAYS: Final = ("--control-port=0", "--stop-with-stdin")
_FREE_PORTS: Final = "--port=0"

Configs = Annotated[dict[str, str], Before(config_pairs)]
NodeId = Annotated[int, Meta(ge=0, le=MAX_BROKER_ID)]


class CannotServe(Exception):
    """A cluster did not come up. The text begins with one line that says why."""


def _known_dialect(name: str) -> str:
    from fencepost.protocol.codec.drafts import find_draft

    return find_draft(name).name


def _checked_listener(text: str) -> str:
    _checked(text, parse_listener)
    return text


def _checked_advertised(text: str) -> str:
    _checked(text, parse_advertised)
    return text


def _checked(text: str, parse: Callable[[str], object]) -> None:
    try:
        parse(text)
    except ValueError as error:
        raise ValueError(f"{text!r} {error}") from None


class ClusterBody(Body):
    """The options of a cluster: those of ``fencepost serve``, by their names."""

    brokers: Annotated[int, Meta(ge=1, le=MAX_BROKERS)] = 1
    """How many; their ids are 1..N, or ``broker_ids``, whose number it is where it is left out."""
    broker_ids: Annotated[Listed[NodeId], Meta(max_length=MAX_BROKERS)] = ()
    """Their ids, such as ``[0, 1, 2]``, where they are not 1..N."""
    controller_ids: Annotated[Listed[NodeId], Meta(max_length=MAX_BROKERS)] = ()
    """The node ids of the quorum's controllers as clients are shown them, the active one first;
    empty: a broker is the only one."""
    listeners: Listed[Annotated[str, After(_checked_listener)]] = ()
    """Those of each broker, the bootstrap's first, such as
    ``"OUTSIDE://0.0.0.0:0,advertised=kafka.test:31192"``, and the controller's, ``CONTROLLER``;
    empty: one on free ports."""
    advertise: Annotated[str, After(_checked_advertised)] | None = None
    """The address that brokers name to clients, ``HOST[:PORT]``; null: the one they listen on."""
    controller_listener: bool = False
    """Whether the controller listens for tools, on a free port."""
    configs: Configs = field(default_factory=dict)
    """Broker configs by Kafka's names, or a list of ``KEY=VALUE``."""
    broker_configs: dict[NodeId, Configs] = field(default_factory=dict)
    """Configs of single brokers, by broker id, instead of those of all; also of the active one of
    ``controller_ids``."""
    features: dict[str, int] = field(default_factory=dict)
    """Levels of features to start with, such as ``metadata.version``, where not the highest."""
    racks: Listed[str] = ()
    """Of each broker in the order of ids, from the first again where there are fewer."""
    api_max: dict[str, int] = field(default_factory=dict)
    """The highest version of an API, by its name or key, that is served."""
    like_kafka: str | None = None
    """Serve the APIs and versions of this release of Kafka, such as ``2.0``, and no more."""
    clock: Literal["real", "manual"] = "real"
    """A manual clock stands still until it is advanced."""
    conformance: Literal["kip", "apache"] = "kip"
    """Which one to follow where a KIP's text and Apache Kafka's code differ."""
    dialect: Annotated[str, After(_known_dialect)] | None = None
    """A proposal whose schemas are served to clients that ask for them; null: none."""
    strict_configs: bool = False
    """Whether a config that has no effect, or that Kafka does not have, is refused."""
    seed: Annotated[int, Meta(ge=0)] | None = None
    """Of random choices; null: a new one every time."""
    max_memory: str | None = None
    """What logs in memory may take together, such as ``512m``, or ``none``."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """Single requests are logged at debug."""

    @classmethod
    def read_first(cls, given: object) -> object:
        """A number of ids is a number of brokers."""
        if isinstance(given, dict) and "brokers" not in given:
            ids = given.get("broker_ids")
            if isinstance(ids, list | tuple) and ids:
                return {**given, "brokers": len(ids)}
        return given

    def check(self) -> None:
        """Its ids agree with each other."""
        for name, ids in (("broker_ids", self.broker_ids), ("controller_ids", self.controller_ids)):
            if len(set(ids)) != len(ids):
                raise ValueError(f"{name} has an id twice")
        if self.broker_ids and len(self.broker_ids) != self.brokers:
            raise ValueError(
                f"brokers is {self.brokers}, and there are {len(self.broker_ids)} broker_ids"
            )
        for broker_id in self.broker_configs:
            if broker_id not in (*self.ids, *self.controller_ids[:1]):
                raise ValueError(f"broker_configs has {broker_id}, which is none of the brokers")

    @property
    def ids(self) -> tuple[int, ...]:
        """The ids of the brokers, in ascending order."""
        return tuple(sorted(self.broker_ids or range(1, self.brokers + 1)))

    def arguments(self) -> list[str]:
        """The options on the command line."""
        given = [
            ("brokers", self.brokers),
            ("broker-ids", ",".join(map(str, self.broker_ids)) or None),
            ("controller-ids", ",".join(map(str, self.controller_ids)) or None),
            ("advertise", self.advertise),
            *(("listener", listener) for listener in self.listeners),
            ("controller-port", 0 if self.controller_listener else None),
            ("racks", ",".join(self.racks) or None),
            ("like-kafka", self.like_kafka),
            ("clock", self.clock),
            ("conformance", self.conformance),
            ("dialect", self.dialect),
            ("strict-configs", "true" if self.strict_configs else None),
            ("seed", self.seed),
            ("max-memory", self.max_memory),
            ("log-level", self.log_level),
            *(("config", f"{key}={value}") for key, value in self.configs.items()),
            *(
                ("broker-config", f"{broker_id}:{key}={value}")
                for broker_id, configs in self.broker_configs.items()
                for key, value in configs.items()
            ),
            *(("feature", f"{name}={level}") for name, level in self.features.items()),
            *(("api-max", f"{api}={version}") for api, version in self.api_max.items()),
        ]
        return [f"--{name}={value}" for name, value in given if value is not None]


class _Ready(Model):
    """The line that ``fencepost serve`` prints when every listener accepts."""

    bootstrap: str
    listeners: dict[str, str]
    controller: str | None = None
    control: str
    control_token: str | None = None
    seed: int


class Serving(Struct, frozen=True, kw_only=True, eq=False):
    """A cluster that a child process serves. As a context it is stopped in the end."""

    child: subprocess.Popen[bytes]
    bootstrap: str
    """``host:port,...``"""
    listeners: Mapping[str, str]
    """The same of each listener, by name; `bootstrap` is the first one's."""
    controller: str | None
    """``host:port`` where the controller listens for tools; None where it does not."""
    control: str
    """The URL of its control API."""
    control_token: str | None
    """The token that it drew for its control API; None where it drew none."""
    seed: int
    """With the same one it makes the same random choices again."""
    log: Path
    """Its log, as JSON lines."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        """The child's process id."""
        return self.child.pid

    @property
    def is_running(self) -> bool:
        """Whether the child has not ended yet."""
        return self.child.poll() is None

    def log_size(self) -> int:
        """Bytes that are logged so far."""
        return self.log.stat().st_size

    def log_since(self, position: int, limit: int = _LOG_BYTES) -> str:
        """What was logged from byte ``position`` on; its last ``limit`` bytes where it is more."""
        with self.log.open("rb") as file:
            file.seek(max(position, self.log_size() - limit))
            return file.read().decode(errors="replace")

    def reset(self) -> None:
        """Forget everything, as the verb does; but it waits for no control API to be imported.

        :raises CannotServe: When it has ended, or does not answer. It is of no use any more.
        """
        assert self.child.stdin is not None
        with suppress(BrokenPipeError):  # it has ended, and there will be no line either
            os.write(self.child.stdin.fileno(), b"reset\n")
        _read_ready(self.child, self.log, READY_S)

    def stop(self) -> int:
        """Stop it in order, or kill it where it does not stop in time; its exit code."""
        self.child.terminate()
        return _wait_for_exit(self.child)


def start(
    wanted: ClusterBody | Sequence[str],
    log: Path,
    *,
    ready_s: float = READY_S,
    meanwhile: Callable[[], None] | None = None,
) -> Serving:
    """Serve a cluster; answers when every listener accepts.

    The environment variables of ``serve`` do not reach it: it is as it is described here.

    :param wanted: What it is to be like, or options of ``fencepost serve``.
    :param log: The file that it logs to, which is truncated first.
    :param ready_s: How long it may take.
    :param meanwhile: Called while it comes up: imports that are only needed then.
    :raises CannotServe: When it ends instead, or takes longer.
    """
    options = wanted.arguments() if isinstance(wanted, ClusterBody) else list(wanted)
    if not any(option.startswith("--listener") for option in options):
        options.insert(0, _FREE_PORTS)
    with log.open("wb") as stderr:
        child = subprocess.Popen(  # noqa: S603  # options, and no shell to read them
            [sys.executable, *_COMMAND, *_ALWAYS, *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            env={
                name: text
                for name, text in os.environ.items()
                if not name.startswith(_VARIABLE_PREFIX)
            },
            start_new_session=True,  # Ctrl-C is for this process, which then stops its child
        )
    try:
        if meanwhile is not None:
            meanwhile()
        ready = _read_ready(child, log, ready_s)
    except BaseException:
        child.kill()
        _wait_for_exit(child)
        raise
    return Serving(
        child=child,
        bootstrap=ready.bootstrap,
        listeners=ready.listeners,
        controller=ready.controller,
        control=ready.control,
        control_token=ready.control_token,
        seed=ready.seed,
        log=log,
    )


def _read_ready(child: subprocess.Popen[bytes], log: Path, ready_s: float) -> _Ready:
    """:raises CannotServe: When there is no ready line in time."""
    assert child.stdout is not None
    with DefaultSelector() as selector:
        selector.register(child.stdout, EVENT_READ)
        if not selector.select(ready_s):
            said = log.read_text(errors="replace")
            late = f"fencepost serve was not ready in {ready_s:g} s\n{said}"
            raise CannotServe(late.strip())
    line = child.stdout.readline()
    if not line:
        said = log.read_text(errors="replace").strip()
        raise CannotServe(said or f"fencepost serve ended with {child.wait()}")
    return _Ready.model_validate_json(line)


def _wait_for_exit(child: subprocess.Popen[bytes]) -> int:
    """Wait for its end; the exit code."""
    try:
        return child.wait(STOP_S)
    except subprocess.TimeoutExpired:
        child.kill()
        return child.wait()
    finally:
        for pipe in (child.stdin, child.stdout):
            assert pipe is not None
            pipe.close()
