"""Listeners as a person writes them: ``NAME://HOST:PORT[,advertised=HOST:PORT]``.

``serve`` reads its options with this, and `fencepost.verbs` the options of a cluster. A listener of
a cluster is one of each broker: the i-th broker in the order of ids, counted from 1, listens on
``PORT + i - 1``, and is advertised likewise. The one named ``CONTROLLER`` is the controller's.
"""

import re
from dataclasses import dataclass, field
from ipaddress import IPv6Address
from typing import Final

from msgspec import Struct

LISTENER_FORM: Final = "NAME://HOST:PORT[,advertised=HOST:PORT]"
PLAINTEXT: Final = "PLAINTEXT"
"""The name of the listener that a cluster has where none is described."""
CONTROLLER: Final = "CONTROLLER"
"""The name of the controller's listener."""
ANY_HOST: Final = "0.0.0.0"
"""Where a listener without a host listens, as in Kafka."""
MAX_PORT: Final = 65535
MAX_HOST: Final = 255
"""Characters of a name (RFC 1035, section 2.3.4)."""
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_OPTION: Final = "advertised="
_BROKER: Final = "{broker}"
_PORT: Final = "{port}"
_DIGITS: Final = re.compile(r"[0-9]+")
_MAX_DIGITS: Final = 5
_WITH_PLACES: Final = re.compile(r"[0-9]{0,5}(?:\{broker\}|\{port\})[0-9]{0,5}")
_NOT_SERVED: Final = frozenset({"SSL", "SASL_PLAINTEXT", "SASL_SSL"})
"""Names that are security protocols as well; a listener of such a name has that protocol."""


class AdvertisedAddress(Struct, frozen=True, kw_only=True):
    """The address that brokers name to clients.

    ``{broker}`` and ``{port}`` stand for the id of each broker and for the port it listens on.
    """

    host: str
    port: str = _PORT
    """A number is the first broker's, and counts on."""

    @property
    def has_places(self) -> bool:
        """Whether the port has places, and so does not count on."""
        return "{" in self.port

    @property
    def builds_on_ports(self) -> bool:
        """Whether its port is made of the one that a broker listens on and of more digits."""
        return _PORT in self.port and self.port != _PORT

    def of_broker(self, broker_id: int, index: int, port: int) -> tuple[str, int]:
        """The host and port of a broker.

        :param index: Its place in the order of ids, from 0.
        :param port: What it listens on.
        """
        host = _fill(self.host, broker_id, port)
        if self.has_places:
            return host, int(_fill(self.port, broker_id, port))
        return host, int(self.port) + index


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerSpec:
    """A listener that every broker has, or the controller's."""

    name: str = PLAINTEXT
    """In upper case."""
    host: str = "127.0.0.1"
    port: int = 9092
    """Of the first broker; 0 picks a free one for each."""
    advertised: AdvertisedAddress | None = None
    """None is the address that it listens on, or, where that is all of them, the address that a
    client reached."""
    option: str = field(default="--port", compare=False)
    """What gives its port, for messages."""

    def port_of(self, index: int) -> int:
        """The port of the broker at a place in the order of ids, from 0."""
        return self.port + index if self.port else 0

    def of_controller(self, port: int) -> "ListenerSpec":
        """The controller's listener beside this one: on another port, advertised as this one is.

        An advertised port that does not depend on the one that it listens on is the brokers' alone.
        """
        advertised = self.advertised
        if advertised is not None and not (advertised.builds_on_ports and port):
            advertised = AdvertisedAddress(host=advertised.host)
        return ListenerSpec(
            name=CONTROLLER,
            host=self.host,
            port=port,
            advertised=advertised,
            option="--controller-port",
        )


def parse_listener(text: str) -> ListenerSpec:
    """Read a listener; without a host it listens on all addresses.

    :raises ValueError: With what is wrong, as the end of a sentence about the text.
    """
    address, comma, option = text.partition(",")
    name, host, port = parse_address(address)
    check_name(name)
    if comma and not option.startswith(_OPTION):
        raise ValueError(f"is not {LISTENER_FORM}")
    advertised = parse_advertised(option.removeprefix(_OPTION)) if comma else None
    return ListenerSpec(
        name=name,
        host=host or ANY_HOST,
        port=port,
        advertised=advertised,
        option="--listener",
    )


def parse_address(text: str) -> tuple[str, str, int]:
    """The name in upper case, the host, which may be empty, and the port of ``NAME://HOST:PORT``.

    :raises ValueError: With what is wrong, as the end of a sentence about the text.
    """
    name, slashes, address = text.partition("://")
    host, port = _split(address)
    is_right = slashes and _NAME.fullmatch(name) and (not host or is_host(host))
    if not is_right or port is None or not _DIGITS.fullmatch(port):
        raise ValueError(f"is not {LISTENER_FORM}")
    return name.upper(), host, _number(port, lowest=0)


def check_name(name: str) -> None:
    """Whether brokers may have a listener of this name, which is in upper case.

    :raises ValueError: With what is wrong, as the end of a sentence about the text.
    """
    if name in _NOT_SERVED:
        raise ValueError(f"has the security protocol {name}, and only PLAINTEXT is served")


def parse_advertised(text: str) -> AdvertisedAddress:
    """Read ``HOST[:PORT]``; an IPv6 address before a port stands in brackets.

    :raises ValueError: With what is wrong, as the end of a sentence about the text.
    """
    host, port = _split(text)
    is_number = port is not None and _DIGITS.fullmatch(port)
    is_right = port is None or is_number or _WITH_PLACES.fullmatch(port)
    if not is_right or not is_host(_fill(host, 1, 1)):
        raise ValueError(
            "is not HOST or HOST:PORT: a name or an address, an IPv6 one in brackets before a "
            "port, without user and scheme; {broker} and {port} may stand in it"
        )
    if port is None:
        return AdvertisedAddress(host=host)
    return AdvertisedAddress(host=host, port=str(_number(port, lowest=1)) if is_number else port)


def is_host(text: str) -> bool:
    """Whether it is an address, or may be a name: letters of any script, digits, and ``-_.``."""
    if ":" in text:
        try:
            IPv6Address(text)
        except ValueError:
            return False
        return True
    named = all(character.isalnum() or character in "-_." for character in text)
    return named and 0 < len(text) <= MAX_HOST


def in_uri(host: str) -> str:
    """A host as it stands before a port: an IPv6 address in brackets."""
    return f"[{host}]" if ":" in host else host


def _split(text: str) -> tuple[str, str | None]:
    """The host and the port of an address; None where there is no port."""
    if text.startswith("["):
        host, _, rest = text[1:].partition("]")
        if ":" not in host or rest[:1] not in ("", ":"):
            return text, None  # which is no host
        return host, rest[1:] if rest else None
    if text.count(":") > 1:
        return text, None
    host, colon, port = text.partition(":")
    return host, port if colon else None


def _number(digits: str, *, lowest: int) -> int:
    if len(digits) > _MAX_DIGITS or not lowest <= int(digits) <= MAX_PORT:
        raise ValueError(f"has a port that is not a number from {lowest} to {MAX_PORT}")
    return int(digits)


def _fill(text: str, broker_id: int, port: int) -> str:
    return text.replace(_BROKER, str(broker_id)).replace(_PORT, str(port))
