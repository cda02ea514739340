"""Asks a served cluster to carry out verbs, over HTTP.

Only the standard library: a command is done before a larger HTTP client is imported. One connection
is kept for the next request, since tests ask often; every thread has its own.
"""

import json
import threading
from collections.abc import Iterator, Mapping
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Final, TypeVar
from urllib.parse import quote, urlencode, urlsplit

from pydantic import TypeAdapter, ValidationError

from fencepost.verbs.answers import Answer
from fencepost.verbs.bodies import Body
from fencepost.verbs.catalogue import Method, Shape, Verb
from fencepost.verbs.problems import problems

TIMEOUT_S: Final = 30.0
_EVERY_INTERFACE: Final = frozenset({"", "0.0.0.0", "::"})

A = TypeVar("A", bound=Answer)


class VerbError(Exception):
    """A verb that did not succeed; the text is one line, for a person."""


class Refused(VerbError):
    """The cluster refuses, and nothing was done; or what was given is wrong, and it was not asked.

    :param code: Kafka's name of the error where there is one.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{message} ({code})")
        self.code = code
        self.message = message


class Unreachable(VerbError):
    """No control API answers there."""


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


def check(verb: Verb, given: Mapping[str, object]) -> Body | None:
    """What is given to a verb besides its path, checked as the cluster would.

    :raises Refused: INVALID_REQUEST when it is wrong.
    """
    if verb.takes is None:
        return None
    try:
        return verb.takes.model_validate(given)
    except ValidationError as error:
        raise Refused("INVALID_REQUEST", problems(error)) from None


class Remote:
    """A control API. Its methods raise `Refused` or `Unreachable`.

    :param url: Such as ``http://127.0.0.1:9644``.
    :param timeout_s: Without a byte of an answer.
    """

    def __init__(self, url: str, *, timeout_s: float = TIMEOUT_S) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise Unreachable(f"{url!r} is not the URL of a control API")
        self.url = url.rstrip("/")
        self._base = parts.path.rstrip("/")
        self._make = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        self._address = (parts.hostname, parts.port)
        self._timeout_s = timeout_s
        self._own = threading.local()

    def ask(self, verb: Verb, path: Mapping[str, object], given: Body | None) -> bytes:
        """Carry out a verb, and its answer as it came.

        :param path: The parameters in its path, by name.
        """
        response = self._request(self._connection(), verb, path, given)
        content = response.read()
        self._check(verb, response, content)
        return content

    def call(
        self, verb: Verb, answers: type[A], path: Mapping[str, object], given: Mapping[str, object]
    ) -> A:
        """Carry out a verb that answers one thing.

        :param answers: ``verb.answers``, so that type checkers know it.
        """
        return answers.model_validate_json(self.ask(verb, path, check(verb, given)))

    def call_list(
        self, verb: Verb, answers: type[A], path: Mapping[str, object], given: Mapping[str, object]
    ) -> list[A]:
        """Carry out a verb that answers a list."""
        content = self.ask(verb, path, check(verb, given))
        return TypeAdapter(list[answers]).validate_json(content)  # type: ignore[valid-type]

    def call_stream(
        self, verb: Verb, answers: type[A], path: Mapping[str, object], given: Mapping[str, object]
    ) -> Iterator[A]:
        """Carry out a verb that answers a stream; it goes on until the cluster ends."""
        assert verb.shape is Shape.STREAM
        connection = self._connect()
        try:
            response = self._request(connection, verb, path, check(verb, given))
            if response.status != 200:
                self._check(verb, response, response.read())
            for line in response:
                field, _, value = line.partition(b": ")
                if field == b"data":
                    yield answers.model_validate_json(value)
        except (OSError, HTTPException) as error:
            raise self._unreachable(error) from error
        finally:
            connection.close()

    def close(self) -> None:
        """Close this thread's connection; the next request opens another."""
        connection: HTTPConnection | None = getattr(self._own, "connection", None)
        if connection is not None:
            connection.close()
            self._own.connection = None

    # -- HTTP -----------------------------------------------------------------------------------

    def _connect(self) -> HTTPConnection:
        host, port = self._address
        return self._make(host, port, timeout=self._timeout_s)

    def _connection(self) -> HTTPConnection:
        connection: HTTPConnection | None = getattr(self._own, "connection", None)
        if connection is None:
            connection = self._own.connection = self._connect()
        return connection

    def _request(
        self,
        connection: HTTPConnection,
        verb: Verb,
        path: Mapping[str, object],
        given: Body | None,
    ) -> HTTPResponse:
        target, body = self._target(verb, path, given)
        headers = {} if body is None else {"Content-Type": "application/json"}
        limit_s = self._timeout_s + getattr(given, "timeout_ms", 0) / 1000
        connection.timeout = limit_s
        kept = connection.sock is not None
        if kept:
            connection.sock.settimeout(limit_s)
        while True:
            try:
                connection.request(verb.method, target, body, headers)
                return connection.getresponse()
            except (OSError, HTTPException) as error:
                connection.close()
                # A kept connection may have been closed by the other side: then once more.
                if not (kept and isinstance(error, ConnectionError)):
                    raise self._unreachable(error) from error
                kept = False

    def _target(
        self, verb: Verb, path: Mapping[str, object], given: Body | None
    ) -> tuple[str, str | None]:
        """Path and query of a request, and its body."""
        place = {name: quote(str(value), safe="") for name, value in path.items()}
        target = self._base + verb.path.format_map(place)
        if given is None:
            return target, None
        fields = given.model_dump(mode="json", by_alias=True, exclude_defaults=True)
        if verb.method is Method.GET:
            return f"{target}?{urlencode(fields)}" if fields else target, None
        return target, json.dumps(fields)

    def _unreachable(self, error: Exception) -> Unreachable:
        reason = str(error) or type(error).__name__
        return Unreachable(f"no control API answers at {self.url}: {reason}")

    def _check(self, verb: Verb, response: HTTPResponse, content: bytes) -> None:
        """:raises Refused: Unless it is a success."""
        if response.status == 200:
            return
        try:
            answer = json.loads(content)
            raise Refused(answer["error"], answer["message"])
        except (ValueError, KeyError, TypeError):
            asked = f"{verb.method} {self.url}{verb.path}"
            raise Unreachable(f"{asked} answered {response.status} {response.reason}") from None
