"""A running cluster's control API, as the command line needs it."""

import json
from collections.abc import Mapping
from http.client import HTTPException
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


class Partition(TypedDict):
    """The whole truth about a partition, as far as it is shown."""

    topic: str
    topic_id: str
    partition: int
    leader: int
    leader_epoch: int
    isr: list[int]
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    replicas: list[Replica]


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

    def elect(self, topic: str, index: int, leader: int) -> Partition:
        """Make a broker of the ISR the leader, and its state after that."""
        path = f"{_partition_path(topic, index)}/elect"
        state: Partition = json.loads(self._call("POST", path, {"leader": leader}))
        return state

    def reset(self) -> None:
        """Forget every topic, group and record; ports stay as they are."""
        self._call("POST", "/v1/reset")

    def _call(self, method: str, path: str, body: Mapping[str, object] | None = None) -> bytes:
        request = Request(  # noqa: S310  # the scheme was checked: no file: URL comes here
            self.url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={} if body is None else {"Content-Type": "application/json"},
        )
        try:
            with self._opener.open(request, timeout=self._timeout_s) as answer:
                content: bytes = answer.read()
        except HTTPError as error:
            raise ControlError(_refusal(error)) from error
        except (URLError, OSError, HTTPException) as error:
            reason = error.reason if isinstance(error, URLError) else error
            raise ControlError(f"no control API answers at {self.url}: {reason}") from error
        return content


def _partition_path(topic: str, index: int) -> str:
    return f"/v1/topics/{quote(topic, safe='')}/partitions/{index}"


def _refusal(error: HTTPError) -> str:
    """The message of an error answer, which is ``{"error": CODE, "message": TEXT}``."""
    content = error.read()
    try:
        answer = json.loads(content)
        return f"{answer['message']} ({answer['error']})"
    except (ValueError, KeyError, TypeError):
        return f"{error.url} answered {error.code} {error.reason}"
