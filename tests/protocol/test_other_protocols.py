"""What clients with wrong settings send is known for what it is, and no request is taken for it."""

from __future__ import annotations

import ssl
import struct
from base64 import b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.protocol.other_protocols import OtherProtocol, protocol_of, protocol_of_frame


def client_hello() -> bytes:
    """What Python's own TLS begins with."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    with pytest.raises(ssl.SSLWantReadError):
        ssl.create_default_context().wrap_bio(
            incoming, outgoing, server_hostname="k"
        ).do_handshake()
    return outgoing.read()


@pytest.mark.parametrize("count", [4, 5, 6, 100])
def test_a_tls_hello(count: int) -> None:
    assert protocol_of(client_hello()[:count]) is OtherProtocol.TLS


@pytest.mark.parametrize("line", [b"GET / HTTP/1.1\r\n", b"OPTIONS * HTTP/1.1", b"PRI * HTTP/2.0"])
def test_an_http_request(line: bytes) -> None:
    assert protocol_of(line) is OtherProtocol.HTTP
    assert protocol_of(line[:4]) is OtherProtocol.HTTP


@pytest.mark.parametrize(
    "token",
    [
        b"\0alice\0secret",
        b"admin\0alice\0s\xc3\xa4cret",
        b"n,,n=alice,r=" + b64encode(b"nonce"),
        b"y,a=admin,n=alice,r=0",
        b"n,,\x01auth=Bearer e30\x01\x01",
        bytes.fromhex("6082023406092a864886f712010202"),
    ],
    ids=["plain", "plain for another", "scram", "scram for another", "oauthbearer", "kerberos"],
)
def test_the_first_token_of_sasl(token: bytes) -> None:
    assert protocol_of_frame(token) is OtherProtocol.SASL


@given(st.integers(1, 104_857_600), st.binary(max_size=8))
def test_the_sizes_of_frames_are_no_other_protocol(size: int, rest: bytes) -> None:
    assert protocol_of(struct.pack(">i", size) + rest) is None


@given(st.integers(0, 200), st.integers(0, 20), st.integers(0, 1 << 30), st.text(max_size=20))
def test_headers_are_no_token(key: int, version: int, correlation: int, client_id: str) -> None:
    name = client_id.encode()
    frame = struct.pack(">hhih", key, version, correlation, len(name)) + name
    assert protocol_of_frame(frame) is None
