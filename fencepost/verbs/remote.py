"""Sends verbs to a served cluster, over HTTP.

Only the standard library: a command is done before a larger HTTP client is imported. A connection
is kept for the next request, since tests ask often.
"""

import json
import socket
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from functools import partial, wraps
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Final, ParamSpec, TypeVar
from urllib.parse import quote, urlencode, urlsplit

from fencepost.protocol.shown_text import without_user_info
from fencepost.verbs.answers import Answer
from fencepost.verbs.bodies import Body
from fencepost.verbs.catalogue import Method, Shape, Verb
from fencepost.verbs.control_token import checked
from fencepost.verbs.model import decode
from fencepost.verbs.problems import InvalidModel

TIMEOUT_S: Final = 30.0
_EVERY_INTERFACE: Final = frozenset({"", "0.0.0.0", "::"})

__tracebackhide__ = True  # pytest shows the line of the test, and none of this module
A = TypeVar("A", bound=Answer)
P = ParamSpec("P")
R = TypeVar("R")


def without_frames(function: Callable[P, R]) -> Callable[P, R]:
    """Let a `VerbError` begin here: what is beneath says nothing to the author of a test."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except VerbError as error:
            raise error.with_traceback(None) from None

    return call


class VerbError(Exception):
    """A verb that did not succeed; the text is one line, for a person."""


class Refused(VerbError):
    """The cluster refuses, without any effect; or the arguments are invalid, and nothing is sent.

    :param code: Kafka's name of the error where there is one.
    :param details: What else the cluster answered, such as the records nearest to an expectation.
    """

    def __init__(
        self, code: str, message: str, details: Mapping[str, object] | None = None
    ) -> None:
        super().__init__(f"{message} ({code})")
        self.code = code
        self.message = message
        self.details: Mapping[str, object] = details or {}


class Unreachable(VerbError):
    """No control API answers there."""


def default_url(environment: Mapping[str, str]) -> str:
    """The URL of the control API of ``fencepost serve`` with the same environment.

    ``FENCEPOST_CONTROL`` where it is set; else what ``FENCEPOST_CONTROL_HOST`` and
    ``FENCEPOST_CONTROL_PORT`` make of it.
    """
    given = environment.get("FENCEPOST_CONTROL")
    if given:
        return given
    host = environment.get("FENCEPOST_CONTROL_HOST", "")
    if host in _EVERY_INTERFACE:
        host = "127.0.0.1"
    if ":" in host:
        host = f"[{host}]"
    port = environment.get("FENCEPOST_CONTROL_PORT", "")
    if not port or "://" in port:  # which Kubernetes makes for a service named fencepost-control
        port = "9644"
    return f"http://{host}:{port}"


def validate_body(verb: Verb, given: Mapping[str, object]) -> Body | None:
    """A verb's arguments besides its path, validated as the cluster does.

    :param given: By their names in JSON. ``...`` stands for one that is left out.
    :raises Refused: INVALID_REQUEST when it is wrong.
    """
    if verb.request_model is None:
        return None
    try:
        return verb.request_model.model_validate(
            {name: value for name, value in given.items() if value is not ...}
        )
    except InvalidModel as error:
        raise Refused("INVALID_REQUEST", str(error)) from None


class Remote:
    """A control API. Several threads may call it at the same time, each on its own connection.

    Its methods raise `Refused` or `Unreachable`.

    :param url: Such as ``http://127.0.0.1:9644``.
    :param timeout_s: Without a byte of an answer.
    :param token: Sent with each request, where the control API needs one.
    :raises Unreachable: When the URL is none of a control API.
    :raises InvalidToken: When no header could carry the token, such as one with a line break.
    """

    def __init__(self, url: str, *, timeout_s: float = TIMEOUT_S, token: str | None = None) -> None:
        self._connect = partial(ControlConnection, url, timeout_s=timeout_s, token=token)
        first = self._connect()
        self.url = first.url
        self._idle = [first]

    @without_frames
    def call_raw(self, verb: Verb, path: Mapping[str, object], given: Body | None) -> bytes:
        """Carry out a verb, and its answer as it came.

        :param path: The parameters in its path, by name.
        """
        with self._idle_connection() as connection:
            return connection.call_raw(verb, path, given)

    @without_frames
    def call(
        self, verb: Verb, answers: type[A], path: Mapping[str, object], given: Mapping[str, object]
    ) -> A:
        """Carry out a verb that answers one thing.

        :param answers: ``verb.response_model``, so that type checkers know it.
        """
        with self._idle_connection() as connection:
            return connection.call(verb, answers, path, given)

    @without_frames
    def call_list(
        self, verb: Verb, answers: type[A], path: Mapping[str, object], given: Mapping[str, object]
    ) -> list[A]:
        """Carry out a verb that answers a list."""
        with self._idle_connection() as connection:
            return connection.call_list(verb, answers, path, given)

    @without_frames
    def call_stream(
        self, verb: Verb, answers: type[A], path: Mapping[str, object], given: Mapping[str, object]
    ) -> Iterator[A]:
        """Carry out a verb that answers a stream; it goes on until the cluster ends.

        The stream is open when this returns: it tells what happens from then on.
        """
        connection = self._connect()
        return connection.call_stream(verb, answers, path, given)

    def close(self) -> None:
        """Close the connections that are idle; the next request opens another."""
        while self._idle:
            self._idle.pop().close()

    @contextmanager
    def _idle_connection(self) -> Iterator["ControlConnection"]:
        """A connection that no other thread uses."""
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self._connect()
        try:
            yield connection
        finally:
            self._idle.append(connection)


class ControlConnection:
    """One connection to a control API, opened when it is needed; one request at a time.

    Its methods and parameters are those of `Remote`. A user and a password in its URL are ignored,
    and no message has them.
    """

    def __init__(self, url: str, *, timeout_s: float = TIMEOUT_S, token: str | None = None) -> None:
        try:
            parts = urlsplit(url)
            host, port = parts.hostname, parts.port
        except ValueError:  # such as of a port that is no number
            host = port = None
        if not host or parts.scheme not in ("http", "https"):
            raise Unreachable(f"{without_user_info(url)!r} is not the URL of a control API")
        self.url = without_user_info(url).rstrip("/")
        self.token = None if token is None else checked(token)
        self._base = parts.path.rstrip("/")
        make = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        self._connection = make(host, port, timeout=timeout_s)
        self._timeout_s = timeout_s
        self._socket: socket.socket | None = None
        self._is_aborted = False

    def call_raw(self, verb: Verb, path: Mapping[str, object], given: Body | None) -> bytes:
        """See `Remote.call_raw`."""
        try:
            response = self._request(verb, path, given)
            content = response.read()
        except BaseException as error:
            self.close()  # what is left of this exchange is not for the next
            if isinstance(error, (OSError, HTTPException)):
                raise self._unreachable(error) from error
            raise
        self._check(verb, response, content)
        return content

    def call(
        self, verb: Verb, answers: type[A], path: Mapping[str, object], given: Mapping[str, object]
    ) -> A:
        """See `Remote.call`."""
        content = self.call_raw(verb, path, validate_body(verb, given))
        with self._reading(verb):
            return answers.model_validate_json(content)

    def call_list(
        self, verb: Verb, answers: type[A], path: Mapping[str, object], given: Mapping[str, object]
    ) -> list[A]:
        """See `Remote.call_list`."""
        content = self.call_raw(verb, path, validate_body(verb, given))
        with self._reading(verb):
            found: list[A] = decode(list[answers], content)  # type: ignore[valid-type]  # known when it runs
            return found

    def call_stream(
        self, verb: Verb, answers: type[A], path: Mapping[str, object], given: Mapping[str, object]
    ) -> Iterator[A]:
        """See `Remote.call_stream`; at its end the connection is closed."""
        assert verb.shape is Shape.STREAM
        lines = self._stream_lines(verb, path, validate_body(verb, given))
        next(lines)
        return self._stream_answers(verb, answers, lines)

    def _stream_answers(
        self, verb: Verb, answers: type[A], lines: Generator[bytes, None, None]
    ) -> Iterator[A]:
        """What the lines of a stream tell."""
        with closing(lines):
            for line in lines:
                field, _, value = line.partition(b": ")
                # A stream that is not followed is lines of JSON.
                content = line if line.startswith(b"{") else value if field == b"data" else None
                if content is not None:
                    with self._reading(verb):
                        event = answers.model_validate_json(content)
                    yield event

    def _stream_lines(
        self, verb: Verb, path: Mapping[str, object], given: Body | None
    ) -> Generator[bytes, None, None]:
        """The lines of a stream, and one more before them as soon as it is open."""
        try:
            response = self._request(verb, path, given)
            if response.status != 200:
                self._check(verb, response, response.read())
            yield b""
            yield from response
        except (OSError, HTTPException) as error:
            raise self._unreachable(error) from error
        finally:
            self.close()

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        self._connection.close()
        self._socket = None

    def abort(self) -> None:
        """From another thread: let the request that waits for an answer fail now.

        The connection is of no use any more.
        """
        self._is_aborted = True
        sock = self._socket
        if sock is not None:
            with suppress(OSError):  # it is closed already
                sock.shutdown(socket.SHUT_RDWR)

    # -- HTTP -----------------------------------------------------------------------------------

    def _request(self, verb: Verb, path: Mapping[str, object], given: Body | None) -> HTTPResponse:
        target, body = self._target(verb, path, given)
        headers = {} if body is None else {"Content-Type": "application/json"}
        if self.token is not None:
            headers["Authorization"] = f"Bearer {self.token}"
        limit_s = self._timeout_s + getattr(given, "timeout_ms", 0) / 1000
        is_kept = self._connection.sock is not None
        while True:
            try:
                self._open(limit_s)
                self._connection.request(verb.method, target, body, headers)
                return self._connection.getresponse()
            except ConnectionError:
                # A kept connection may have been closed by the other side: then once more.
                self.close()
                if not is_kept or self._is_aborted:
                    raise
                is_kept = False

    def _open(self, limit_s: float) -> None:
        connection = self._connection
        connection.timeout = limit_s
        if connection.sock is None:
            connection.connect()
        connection.sock.settimeout(limit_s)
        self._socket = connection.sock

    def _target(
        self, verb: Verb, path: Mapping[str, object], given: Body | None
    ) -> tuple[str, str | None]:
        """Path and query of a request, and its body."""
        place = {name: quote(str(value), safe="") for name, value in path.items()}
        target = self._base + verb.path.format_map(place)
        if given is None:
            return target, None
        fields = given.to_json()
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
            raise Refused(answer.pop("error"), answer.pop("message"), answer)
        except (ValueError, KeyError, TypeError):
            raise self._unexpected_answer(verb, f"{response.status} {response.reason}") from None

    @contextmanager
    def _reading(self, verb: Verb) -> Iterator[None]:
        """:raises Unreachable: When what is read is not what the verb answers."""
        try:
            yield
        except InvalidModel as error:
            what = f"something else than {verb.response_model.__name__}: {error}"
            raise self._unexpected_answer(verb, what) from None

    def _unexpected_answer(self, verb: Verb, answered: str) -> Unreachable:
        return Unreachable(f"{verb.method} {self.url}{verb.path} answered {answered}")
