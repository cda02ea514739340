"""A running cluster's control API, as the command line needs it."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPException, HTTPResponse
from typing import Final, TypedDict
from urllib.error import HTTPError, URLError
from urllib.parse import quote
from urllib.request import ProxyHandler, Request, build_opener

TIMEOUT_S: Final = 30.0
_EVERY_INTERFACE: Final = frozenset({"", "0.0.0.0", "::"})


class ControlError(Exception):
    """The cluster refused, or cannot be reached. The text is one line, for the person who asked."""


class Topic(TypedDict):
    """A row of the list of topics."""

    name: str
    topic_id: str
    partitions: int
    replication_factor: int


class EpochEntry(TypedDict):
    """Where a leader epoch begins in a log; the offset is inclusive."""

    epoch: int
    start_offset: int


class Replica(TypedDict):
    """One replica of a partition."""

    broker: int
    role: str
    state: str
    log_start_offset: int
    log_end_offset: int
    high_watermark: int
    epochs: list[EpochEntry]
    held: bool
    held_at: int | None


class Gate(TypedDict):
    """KIP-207's gate."""

    open: bool
    until_offset: int


class Partition(TypedDict):
    """The whole truth about a partition, as far as it is shown."""

    topic: str
    topic_id: str
    partition: int
    leader: int
    leader_epoch: int
    isr: list[int]
    offline: list[int]
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    gate: Gate
    replicas: list[Replica]


class Fetch(TypedDict):
    """What one request of a replica did."""

    api: str
    leader: int
    leader_epoch: int
    fetch_offset: int
    error: str | None
    appended: int
    truncated_to: int | None
    log_end_offset: int
    high_watermark: int


class Step(TypedDict):
    """What a replica did, one request after the other."""

    fetches: list[Fetch]


class Broker(TypedDict):
    """One broker."""

    id: int
    host: str
    port: int
    state: str
    fenced: bool
    isolated_from: list[int | str]


class Clock(TypedDict):
    """The cluster's time."""

    mode: str
    now_ms: int


class Event(TypedDict):
    """Something that happened."""

    number: int
    kind: str
    time_ms: int
    topic: str | None
    partition: int | None
    broker: int | None
    details: dict[str, object]


def default_url(environment: Mapping[str, str]) -> str:
    """Where ``fencepost serve`` with the same environment has its control API.

    ``FENCEPOST_CONTROL`` where it is set; else what ``FENCEPOST_HOST`` and
    ``FENCEPOST_CONTROL_PORT`` make of it.
    """
    given = environment.get("FENCEPOST_CONTROL")
    if given:
        return given
    host = environment.get("FENCEPOST_HOST", "")
    if host in _EVERY_INTERFACE:
        host = "127.0.0.1"
    if ":" in host:
        host = f"[{host}]"
    return f"http://{host}:{environment.get('FENCEPOST_CONTROL_PORT') or '9644'}"


class Control:
    """The control API at one URL. Every method :raises ControlError: When it does not succeed."""

    def __init__(self, url: str, *, timeout_s: float = TIMEOUT_S) -> None:
        if not url.startswith(("http://", "https://")):
            raise ControlError(f"{url!r} is not the URL of a control API")
        self.url = url.rstrip("/")
        self._timeout_s = timeout_s
        # A cluster for tests is near: a proxy in the environment is not meant for it.
        self._opener = build_opener(ProxyHandler({}))

    def check_health(self) -> None:
        """GET /healthz."""
        self._call("GET", "/healthz")

    def topics(self) -> list[Topic]:
        """Every topic."""
        topics: list[Topic] = json.loads(self._call("GET", "/v1/topics"))
        return topics

    def partition(self, topic: str, index: int) -> Partition:
        """The state of one partition."""
        state: Partition = json.loads(self._call("GET", _partition_path(topic, index)))
        return state

    def elect(self, topic: str, index: int, leader: int, *, unclean: bool = False) -> Partition:
        """Make a broker the leader."""
        body = {"leader": leader} | ({"unclean": True} if unclean else {})
        return self._on_partition(_partition_path(topic, index), "elect", body)

    def roll(self, topic: str, index: int) -> Partition:
        """Close the active segment."""
        return self._on_partition(_partition_path(topic, index), "roll")

    def hold(
        self, topic: str, index: int, broker: int, *, at: int | None, leave_isr: bool
    ) -> Partition:
        """Keep a replica from fetching, from an offset on or at once."""
        body = {"at": at, "leave_isr": leave_isr}
        return self._on_partition(_replica_path(topic, index, broker), "hold", body)

    def release(self, topic: str, index: int, broker: int) -> Partition:
        """Let a replica fetch again."""
        return self._on_partition(_replica_path(topic, index, broker), "release")

    def wipe(self, topic: str, index: int, broker: int) -> Partition:
        """Lose a replica's disk."""
        return self._on_partition(_replica_path(topic, index, broker), "wipe")

    def step(self, topic: str, index: int, broker: int, *, fetches: int) -> Step:
        """Let a replica fetch, and what it did."""
        path = f"{_replica_path(topic, index, broker)}/step"
        state: Step = json.loads(self._call("POST", path, {"fetches": fetches}))
        return state

    def brokers(self) -> list[Broker]:
        """Every broker."""
        brokers: list[Broker] = json.loads(self._call("GET", "/v1/cluster"))["brokers"]
        return brokers

    def on_broker(self, broker: int, verb: str, body: Mapping[str, object] | None = None) -> Broker:
        """Do something to a broker, and its state after that."""
        path = f"/v1/brokers/{broker}/{verb}"
        state: Broker = json.loads(self._call("POST", path, body))
        return state

    def advance(self, ms: int) -> Clock:
        """Let time pass, and what time it is then."""
        clock: Clock = json.loads(self._call("POST", "/v1/clock/advance", {"ms": ms}))
        return clock

    def events(self, since: int | None) -> Iterator[Event]:
        """What happens, until the cluster ends.

        :param since: Begin with those that are kept and have a higher number.
        """
        query = "" if since is None else f"?since={since}"
        with self._asked("GET", f"/v1/events{query}") as stream:
            for line in stream:
                field, _, value = line.partition(b": ")
                if field == b"data":
                    event: Event = json.loads(value)
                    yield event

    def reset(self) -> None:
        """Forget every topic, group and record; ports stay as they are."""
        self._call("POST", "/v1/reset")

    def _on_partition(
        self, path: str, verb: str, body: Mapping[str, object] | None = None
    ) -> Partition:
        state: Partition = json.loads(self._call("POST", f"{path}/{verb}", body))
        return state

    def _call(self, method: str, path: str, body: Mapping[str, object] | None = None) -> bytes:
        with self._asked(method, path, body) as answer:
            return answer.read()

    @contextmanager
    def _asked(
        self, method: str, path: str, body: Mapping[str, object] | None = None
    ) -> Iterator[HTTPResponse]:
        request = Request(  # noqa: S310  # the scheme was checked: no file: URL comes here
            self.url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={} if body is None else {"Content-Type": "application/json"},
        )
        try:
            with self._opener.open(request, timeout=self._timeout_s) as answer:
                yield answer
        except HTTPError as error:
            raise ControlError(_refusal(error)) from error
        except (URLError, OSError, HTTPException) as error:
            reason = error.reason if isinstance(error, URLError) else error
            raise ControlError(f"no control API answers at {self.url}: {reason}") from error


def _partition_path(topic: str, index: int) -> str:
    return f"/v1/topics/{quote(topic, safe='')}/partitions/{index}"


def _replica_path(topic: str, index: int, broker: int) -> str:
    return f"{_partition_path(topic, index)}/replicas/{broker}"


def _refusal(error: HTTPError) -> str:
    """The message of an error answer, which is ``{"error": CODE, "message": TEXT}``."""
    content = error.read()
    try:
        answer = json.loads(content)
        return f"{answer['message']} ({answer['error']})"
    except (ValueError, KeyError, TypeError):
        return f"{error.url} answered {error.code} {error.reason}"
