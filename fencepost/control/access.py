"""Whether a request to the control API is answered: a decision about its head alone.

A web page in a developer's browser can send requests to any port of the loopback, and a page whose
name is bound to 127.0.0.1 afterwards (DNS rebinding) reads the answers as well. A browser tells
where a request comes from, in headers that no script can change: ``Origin``, ``Sec-Fetch-Site``
(Fetch Metadata) and ``Host``. Programs such as curl send neither of the first two.

Where the control API can be reached from other machines, it has a token: every request but one for
``/healthz`` without a body carries it, as ``Authorization: Bearer TOKEN`` (RFC 6750) or, from the
page, as a cookie that is derived from it.
"""

import re
from collections.abc import Iterable, Mapping
from ipaddress import ip_address
from typing import Final

from msgspec import Struct

HEALTH: Final = "/healthz"
"""The one path that needs no token: an orchestrator asks it. See `RequestHead.asks_health`."""
_OWN_SITES: Final = frozenset({"same-origin", "none"})
"""``Sec-Fetch-Site`` of the page's own requests, and of an address that a person typed.

``same-site`` is foreign: another port of this host is the same site.
"""
_BEARER: Final = "bearer "
_HOST: Final = re.compile(r"(?:\[(?P<bracketed>[^\[\]]*)\]|(?P<plain>[^:\[\]]*))(?::[0-9]*)?")
"""``Host`` (RFC 9110, section 7.2): a name, or an IPv6 address in brackets; perhaps a port."""
_SESSION: Final = b"the session of the control API's page"


class Refusal(Struct, frozen=True, kw_only=True):
    """Why a request is not answered."""

    status: int
    code: str
    message: str


def _foreign(message: str) -> Refusal:
    return Refusal(status=403, code="FORBIDDEN", message=message)


NO_TOKEN: Final = Refusal(
    status=401,
    code="UNAUTHORIZED",
    message="this control API needs its token, in the header Authorization: Bearer TOKEN; fencepost"
    " takes it from --control-token or FENCEPOST_CONTROL_TOKEN",
)
WRONG_TOKEN: Final = Refusal(
    status=401, code="UNAUTHORIZED", message="this is not the token of this control API"
)
NO_JSON: Final = Refusal(
    status=415,
    code="UNSUPPORTED_MEDIA_TYPE",
    message="the body is to be JSON, sent with the header Content-Type: application/json",
)


class RequestHead(Struct, frozen=True, kw_only=True):
    """What of a request is decided about.

    :param headers: By their names in lower case. A name that is repeated has all of its values in
        one text, so that a value that is refused alone is refused beside others.
    """

    method: str
    path: str
    headers: Mapping[str, str]

    @property
    def has_body(self) -> bool:
        """Whether a body follows, be it a byte."""
        length = self.headers.get("content-length", "0").strip()
        return length.strip("0") != "" or "transfer-encoding" in self.headers

    @property
    def asks_health(self) -> bool:
        """Whether it needs neither a token nor a place among others.

        With a body it does: the body would be kept while it arrives.
        """
        return self.path == HEALTH and not self.has_body

    @property
    def media_type(self) -> str:
        """The content type without its parameters, in lower case; empty where there is none."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def bearer(self) -> str | None:
        """The token that it carries; None where it names none."""
        given = self.headers.get("authorization", "")
        return given[len(_BEARER) :].strip() if given[: len(_BEARER)].lower() == _BEARER else None


class Access:
    """Who may use a control API.

    :param hosts: The names of its host, besides ``localhost`` and all IP addresses.
    :param token: What a request has to carry; None where none has to.
    """

    def __init__(self, hosts: Iterable[str] = (), token: str | None = None) -> None:
        self.needs_token = token is not None
        self._hosts = frozenset(map(_canonical, ("localhost", *hosts)))
        self._token = b"" if token is None else token.encode()
        session = "" if token is None else _session(self._token)
        # A browser sends a host's cookies to each of its ports: clusters have names of their own.
        self._cookie = f"fencepost-{session[:8]}"
        self._session = session.encode()

    def refusal(self, head: RequestHead) -> Refusal | None:
        """Why a request is refused; None for one that is answered."""
        return self._origin_problem(head) or self._credentials_problem(head) or _type_problem(head)

    def is_token(self, given: str) -> bool:
        """Whether a text is the token, in a time that does not depend on the text."""
        return self.needs_token and _is_same(given, self._token)

    def cookie(self) -> str:
        """The ``Set-Cookie`` of a browser whose user has given the token.

        Scripts cannot read it, other sites cannot send it, and it ends with the browser.
        """
        return f"{self._cookie}={self._session.decode()}; Path=/; HttpOnly; SameSite=Strict"

    def _origin_problem(self, head: RequestHead) -> Refusal | None:
        """A request of a page of another origin, or for a host of another name."""
        host = head.headers.get("host")
        site = head.headers.get("sec-fetch-site")
        if site is not None and site.strip().lower() not in _OWN_SITES:
            return _foreign(f"a page of another origin sent this request (Sec-Fetch-Site: {site})")
        origin = head.headers.get("origin")
        if origin is not None and not _is_own_origin(origin, host):
            return _foreign(f"a page of another origin sent this request (Origin: {origin})")
        if self.needs_token or host is None or self._is_own_host(host):
            return None  # with a token, its owner may use any name; see `_credentials_problem`
        return _foreign(
            f"{host} is not a name of this control API: use its IP address or localhost, or name"
            " the host with --control-host or --advertise"
        )

    def _is_own_host(self, given: str) -> bool:
        name = _canonical(_host_name(given))
        return name in self._hosts or _is_address(name)

    def _credentials_problem(self, head: RequestHead) -> Refusal | None:
        if not self.needs_token or head.asks_health:
            return None
        bearer = head.bearer
        if bearer is not None:
            return None if self.is_token(bearer) else WRONG_TOKEN
        return None if self._has_session(head.headers.get("cookie", "")) else NO_TOKEN

    def _has_session(self, cookies: str) -> bool:
        for each in cookies.split(";"):
            name, _, value = each.strip().partition("=")
            if name == self._cookie:
                return _is_same(value, self._session)
        return False


def _session(token: bytes) -> str:
    """What a cookie has in place of the token. OpenSSL is imported where there is one."""
    import hmac
    from hashlib import sha256

    return hmac.new(token, _SESSION, sha256).hexdigest()


def _is_same(given: str, secret: bytes) -> bool:
    """Whether a text is a secret, in a time that does not depend on the text."""
    import hmac

    return hmac.compare_digest(given.encode(errors="replace"), secret)


def _type_problem(head: RequestHead) -> Refusal | None:
    """A body of a type that a form of any page could send."""
    kind = head.media_type
    is_json = kind == "application/json" or (
        kind.startswith("application/") and kind.endswith("+json")
    )
    return NO_JSON if head.has_body and not is_json else None


def _is_own_origin(origin: str, host: str | None) -> bool:
    scheme, _, place = origin.strip().lower().partition("://")
    return scheme in ("http", "https") and host is not None and place == host.strip().lower()


def _host_name(given: str) -> str:
    """A ``Host`` without its port and an IPv6 address's brackets; empty for any other text."""
    found = _HOST.fullmatch(given.strip())
    return "" if found is None else found["bracketed"] or found["plain"] or ""


def _canonical(host: str) -> str:
    return host.lower().rstrip(".")


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
