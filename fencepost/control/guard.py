"""The guard in front of the control API: who may use it, and how much at a time.

The decision about a request's head is `fencepost.control.access`; this module is its ASGI side, and
the form that takes the token of a person with a browser. The form asks for the token once: it is
answered with a cookie. What is refused is answered here, and its body is not read.
"""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final
from urllib.parse import parse_qs

from fencepost.control import limits
from fencepost.control.access import Access, Refusal, RequestHead
from fencepost.control.asgi import App, Receive, Scope, Send, answer
from fencepost.control.limits import refuse
from fencepost.protocol.errors import ErrorCode

MAX_REQUESTS: Final = 512
"""Requests that are answered at a time: streams, waits and others."""
MAX_FORM: Final = 4096
"""Bytes of a form with a token."""
_FORM_TYPE: Final = "application/x-www-form-urlencoded"
_FIELD: Final = "token"
_TOO_MANY: Final = Refusal(
    status=429,
    code=ErrorCode.THROTTLING_QUOTA_EXCEEDED.name,
    message=f"{MAX_REQUESTS} requests are answered already, which is as many as may be",
)
_FORM: Final = b"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>fencepost</title>
<link rel="icon" href="data:,">
</head>
<body>
<form method="post" action="/">
<label>Token <input name="token" type="password" autocomplete="off" autofocus required></label>
<button>Continue</button>
</form>
</body>
</html>
"""
_FORM_POLICY: Final = (
    "default-src 'none'; img-src data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
_CHALLENGE: Final = {"www-authenticate": "Bearer"}
_FORM_HEADERS: Final = {
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": _FORM_POLICY,
    "cache-control": "no-store",
    **_CHALLENGE,
}


class Guard:
    """An ASGI application around another, to which it lets the requests that may be answered.

    :param app: What answers them.
    :param access: Who may use it.
    """

    def __init__(self, app: App, access: Access) -> None:
        self.app = app
        self._access = access
        self._answering = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or let the application answer it; only HTTP is handed over."""
        head = request_head(scope)
        refusal = self._access.refusal(head)
        if self._is_for_the_form(head, refusal):
            await self._answer_form(head, receive, send)
        elif refusal is not None:
            await _refuse(refusal, send)
        elif head.asks_health:
            await self.app(scope, receive, send)
        elif self._answering >= MAX_REQUESTS:
            await _refuse(_TOO_MANY, send)
        else:
            await self._pass_on(scope, receive, send)

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._answering += 1
        try:
            await self.app(scope, receive, send)
        finally:
            self._answering -= 1

    # -- the form -------------------------------------------------------------------------------

    def _is_for_the_form(self, head: RequestHead, refusal: Refusal | None) -> bool:
        """Whether a browser asks for the page without a token, or sends one."""
        if not self._access.needs_token or head.path != "/":
            return False
        if head.method == "POST":
            is_form = head.media_type == _FORM_TYPE
            return is_form and (refusal is None or refusal.status in (401, 415))
        return head.method in ("GET", "HEAD") and refusal is not None and refusal.status == 401

    async def _answer_form(self, head: RequestHead, receive: Receive, send: Send) -> None:
        if head.method != "POST":
            await answer(send, 401, _FORM, _FORM_HEADERS)
            return
        given = parse_qs((await _read_form(receive)).decode(errors="replace")).get(_FIELD, [""])
        if self._access.is_token(given[0].strip()):
            await answer(send, 303, b"", {"location": "/", "set-cookie": self._access.cookie()})
        else:
            await answer(send, 401, _FORM, _FORM_HEADERS)


def request_head(scope: Mapping[str, Any]) -> RequestHead:
    """The head of a request as ASGI hands it over, its names in lower case."""
    headers: dict[str, str] = {}
    for name, value in ((n.decode("latin-1"), v.decode("latin-1")) for n, v in scope["headers"]):
        between = "; " if name == "cookie" else ", "  # RFC 9110, section 5.3; RFC 9113, 8.2.3
        headers[name] = f"{headers[name]}{between}{value}" if name in headers else value
    return RequestHead(method=scope["method"], path=scope["path"], headers=headers)


async def _read_form(receive: Receive) -> bytes:
    """A form's body; of one that is too large, or comes too late, nothing."""
    content = b""
    with suppress(TimeoutError):
        async with asyncio.timeout(limits.BODY_S):
            while len(content) <= MAX_FORM:
                message = await receive()
                content += bytes(message.get("body", b""))
                if not message.get("more_body", False):
                    return content if len(content) <= MAX_FORM else b""
    return b""


async def _refuse(refusal: Refusal, send: Send) -> None:
    await refuse(send, refusal, _CHALLENGE if refusal.status == 401 else {})
