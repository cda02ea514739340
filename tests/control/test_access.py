"""Which requests to the control API are answered, by their heads alone."""

from __future__ import annotations

from typing import Final

import pytest

from fencepost.control.access import Access, RequestHead
from fencepost.verbs.catalogue import CATALOGUE

TOKEN: Final = "a-token-of-ours"
OPEN: Final = Access({"127.0.0.1", "kafka.test", "::1"})
LOCKED: Final = Access({"0.0.0.0", "kafka.test"}, TOKEN)
FORM_TYPES: Final = ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data")


def head(path: str = "/v1/reset", method: str = "POST", **headers: str) -> RequestHead:
    fields = {name.replace("_", "-"): text for name, text in headers.items()}
    return RequestHead(method=method, path=path, headers=fields)


def status(access: Access, asked: RequestHead) -> int:
    refusal = access.refusal(asked)
    return 200 if refusal is None else refusal.status


def cookie(access: Access) -> str:
    return access.cookie().partition(";")[0]


@pytest.mark.parametrize(
    ("host", "wanted"),
    [
        ("127.0.0.1:9644", 200),
        ("127.0.0.1", 200),
        ("10.0.0.7:9644", 200),
        ("[::1]:9644", 200),
        ("[fe80::1]", 200),
        ("localhost:9644", 200),
        ("LocalHost.", 200),
        ("kafka.test:9644", 200),
        ("KAFKA.test", 200),
        ("evil.test:9644", 403),
        ("kafka.test.evil.test", 403),
        ("127.0.0.1.evil.test:9644", 403),
        ("localhost.evil.test", 403),
        ("x.localhost", 403),
        ("127.1", 403),
        ("", 403),
        ("[evil.test]:9644", 403),
        ("[::1]evil.test", 403),
        ("127.0.0.1:9644:evil.test", 403),
        ("127.0.0.1:evil", 403),
        ("127.0.0.1@evil.test", 403),
        ("127.0.0.1, evil.test", 403),
        ("evil.test, 127.0.0.1", 403),
        ("::1", 403),
        ("[", 403),
        (".", 403),
    ],
)
def test_a_host_is_an_address_or_a_name_of_the_cluster(host: str, wanted: int) -> None:
    assert status(OPEN, head(host=host)) == wanted
    assert status(OPEN, head("/healthz", "GET", host=host)) == wanted


def test_a_program_that_names_no_host_is_no_browser() -> None:
    assert status(OPEN, head()) == 200


@pytest.mark.parametrize("access", [OPEN, LOCKED])
@pytest.mark.parametrize(
    ("origin", "wanted"),
    [
        ("http://127.0.0.1:9644", 200),
        ("https://127.0.0.1:9644", 200),
        ("http://127.0.0.1", 403),
        ("http://127.0.0.1:80", 403),
        ("http://localhost:9644", 403),
        ("http://evil.test", 403),
        ("http://127.0.0.1:9644.evil.test", 403),
        ("file://127.0.0.1:9644", 403),
        ("null", 403),
        ("", 403),
    ],
)
def test_an_origin_is_the_page_of_this_host_and_port(
    access: Access, origin: str, wanted: int
) -> None:
    asked = head(host="127.0.0.1:9644", origin=origin, authorization=f"Bearer {TOKEN}")
    assert status(access, asked) == wanted
    assert status(access, head(origin=origin, authorization=f"Bearer {TOKEN}")) == 403


@pytest.mark.parametrize("access", [OPEN, LOCKED])
@pytest.mark.parametrize(
    ("site", "wanted"),
    [
        ("same-origin", 200),
        ("none", 200),
        ("same-site", 403),
        ("cross-site", 403),
        ("Cross-Site", 403),
        ("a-site-of-the-future", 403),
        ("", 403),
    ],
)
def test_a_site_is_this_one_or_a_person(access: Access, site: str, wanted: int) -> None:
    for method, path in (("GET", "/"), ("POST", "/v1/reset"), ("GET", "/healthz")):
        asked = head(
            path,
            method,
            host="127.0.0.1:9644",
            sec_fetch_site=site,
            authorization=f"Bearer {TOKEN}",
        )
        assert status(access, asked) == wanted


@pytest.mark.parametrize(
    ("headers", "wanted"),
    [
        ({}, 200),
        ({"content-length": "0"}, 200),
        ({"content-length": "0", "content-type": "application/x-www-form-urlencoded"}, 200),
        ({"content-length": "2", "content-type": "application/json"}, 200),
        ({"content-length": "2", "content-type": "Application/JSON; charset=utf-8"}, 200),
        ({"content-length": "2", "content-type": "application/problem+json"}, 200),
        ({"transfer-encoding": "chunked", "content-type": "application/json"}, 200),
        ({"content-length": "2"}, 415),
        ({"content-length": "2", "content-type": ""}, 415),
        ({"content-length": "2", "content-type": "text/json"}, 415),
        ({"content-length": "2", "content-type": "application/jsonp"}, 415),
        ({"content-length": "2", "content-type": "text/plain; application/json"}, 415),
        ({"transfer-encoding": "chunked"}, 415),
        *(({"content-length": "2", "content-type": kind}, 415) for kind in FORM_TYPES),
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE", "PUT"])
def test_a_body_is_json_by_its_type(method: str, headers: dict[str, str], wanted: int) -> None:
    asked = RequestHead(method=method, path="/v1/reset", headers={"host": "localhost", **headers})
    assert status(OPEN, asked) == wanted


@pytest.mark.parametrize(
    ("authorization", "wanted"),
    [
        (f"Bearer {TOKEN}", 200),
        (f"bearer   {TOKEN} ", 200),
        (f"Bearer {TOKEN}x", 401),
        (f"Bearer {TOKEN[:-1]}", 401),
        (f"Bearer {TOKEN.upper()}", 401),
        ("Bearer ", 401),
        ("Bearer \xff\xff", 401),
        (f"Basic {TOKEN}", 401),
        (TOKEN, 401),
    ],
)
@pytest.mark.parametrize("host", ["10.0.0.7:9644", "evil.test", "kafka.test"])
def test_a_token_opens_it_under_any_name(host: str, authorization: str, wanted: int) -> None:
    assert status(LOCKED, head(host=host, authorization=authorization)) == wanted


def test_without_the_token_there_is_nothing_but_healthz() -> None:
    paths = {(verb.method, verb.path) for verb in CATALOGUE}
    others = {("GET", "/"), ("GET", "/metrics"), ("GET", "/openapi.json"), ("OPTIONS", "/v1/reset")}
    for method, path in paths | others | {("POST", "/healthz/"), ("GET", "//healthz")}:
        wanted = 200 if path == "/healthz" else 401
        assert status(LOCKED, head(path, method, host="10.0.0.7:9644")) == wanted, path


@pytest.mark.parametrize("name", ["evil.test", "fencepost:9644"])
def test_healthz_is_answered_under_any_name_where_there_is_a_token(name: str) -> None:
    assert status(LOCKED, head("/healthz", "GET", host=name)) == 200
    assert status(OPEN, head("/healthz", "GET", host=name)) == 403


def test_healthz_with_a_body_needs_the_token_as_all_else_does() -> None:
    body = {"content_length": "2", "content_type": "application/json"}
    for method in ("GET", "POST"):
        assert status(LOCKED, head("/healthz", method, **body)) == 401
        authorized = head("/healthz", method, authorization=f"Bearer {TOKEN}", **body)
        assert status(LOCKED, authorized) == 200
        assert not authorized.asks_health


def test_a_token_is_no_use_where_none_is_needed() -> None:
    assert status(OPEN, head(host="evil.test", authorization=f"Bearer {TOKEN}")) == 403
    assert not OPEN.is_token("")


def test_the_cookie_is_as_good_as_the_token_and_does_not_have_it() -> None:
    own = cookie(LOCKED)
    assert TOKEN not in own
    assert status(LOCKED, head(host="kafka.test", cookie=f"a=b; {own}; c=d")) == 200
    for wrong in (own[:-1], f"{own}0", own.upper(), own.partition("=")[0], f"x{own}", "", "=", ";"):
        assert status(LOCKED, head(host="kafka.test", cookie=wrong)) == 401, wrong
    assert status(LOCKED, head(cookie=own, sec_fetch_site="same-site")) == 403
    assert "HttpOnly" in LOCKED.cookie()
    assert "SameSite=Strict" in LOCKED.cookie()


def test_clusters_on_other_ports_have_cookies_of_their_own() -> None:
    other = Access((), "the-token-of-another")
    assert cookie(other).partition("=")[0] != cookie(LOCKED).partition("=")[0]
    both = f"{cookie(other)}; {cookie(LOCKED)}"
    assert status(other, head(cookie=both)) == status(LOCKED, head(cookie=both)) == 200


def test_a_wrong_token_counts_more_than_a_cookie() -> None:
    assert status(LOCKED, head(cookie=cookie(LOCKED), authorization="Bearer wrong")) == 401


def test_tokens_are_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[tuple[bytes, bytes]] = []

    def compare(one: bytes, other: bytes) -> bool:
        compared.append((one, other))
        return False

    monkeypatch.setattr("hmac.compare_digest", compare)
    assert status(LOCKED, head(authorization=f"Bearer {TOKEN}")) == 401
    assert status(LOCKED, head(cookie=cookie(LOCKED))) == 401
    assert len(compared) == 2
