"""Bytes of protocols that are not Kafka's, as clients with the wrong settings send them.

A client that begins TLS, speaks HTTP or authenticates by SASL on a listener that expects none of
it sends bytes that are no request of Kafka's. What they are is told, so that its author finds the
setting. Credentials are looked at and never kept.
"""

import re
from enum import StrEnum
from typing import Final

from fencepost.protocol.byte_utils import Buffer

HEAD: Final = 6
"""How many bytes `protocol_of` looks at; fewer may be enough."""
SASL_HANDSHAKE: Final = "sasl_handshake"
"""In an event: a request of Kafka's own that asks for SASL."""


class OtherProtocol(StrEnum):
    """What a client sends in place of Kafka's requests."""

    TLS = "tls_hello"
    HTTP = "http_request"
    SASL = "sasl_token"

    @property
    def advice(self) -> str:
        """What is wrong, and where to look."""
        return _ADVICE[self]


_ADVICE: Final = {
    OtherProtocol.TLS: "the client begins TLS, and this is a plaintext listener: its"
    " security.protocol is to be PLAINTEXT",
    OtherProtocol.HTTP: "the client speaks HTTP, and this is a listener of Kafka's protocol: the"
    " control API has a port of its own",
    OtherProtocol.SASL: "the client authenticates by SASL, and this is a plaintext listener: its"
    " security.protocol is to be PLAINTEXT",
}
_TLS_HELLO: Final = re.compile(rb"\x16\x03[\x00-\x04](?:.{0,2}|..\x01)", re.DOTALL)
"""A record of a handshake, of SSL 3.0 or TLS, whose message is a ClientHello (RFC 8446, 5.1)."""
_HTTP_METHODS: Final = (
    *(b"GET ", b"HEAD", b"POST", b"PUT ", b"DELE", b"CONN", b"OPTI", b"TRAC", b"PATC"),
    b"PRI ",  # HTTP/2 (RFC 9113, 3.4)
)
_PLAIN: Final = re.compile(rb"[^\0]*\0[^\0]+\0[^\0]+")
"""Authorization identity, name and password (RFC 4616)."""
_GS2: Final = re.compile(rb"(?:[ny]|p=[A-Za-z0-9.-]+),(?:a=[^,]*)?,(?:n=|\x01)")
"""The first message of SCRAM (RFC 5802) or OAUTHBEARER (RFC 7628)."""
_KERBEROS: Final = re.compile(rb"\x60[\x80-\xff].{1,4}\x06", re.DOTALL)
"""The initial token of GSSAPI (RFC 2743, 3.1), longer than 127 bytes: a tag, a length, an object
identifier."""


def protocol_of(head: Buffer) -> OtherProtocol | None:
    """The protocol of bytes that stand where a frame begins.

    :param head: The first ones, four or more; `HEAD` are enough.
    """
    first = bytes(head[:HEAD])
    if _TLS_HELLO.fullmatch(first):
        return OtherProtocol.TLS
    return OtherProtocol.HTTP if first.startswith(_HTTP_METHODS) else None


def protocol_of_frame(frame: Buffer) -> OtherProtocol | None:
    """The protocol of a frame that is no request of Kafka's."""
    data = bytes(frame)
    if _PLAIN.fullmatch(data) or _GS2.match(data) or _KERBEROS.match(data):
        return OtherProtocol.SASL
    return None
