"""The addresses of a served cluster: the sockets of its listeners, and what these advertise."""

import socket
from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

from fencepost.broker.metadata.image import Address
from fencepost.broker.server.listener import bind
from fencepost.protocol.listener_text import ListenerSpec, in_uri

BACKLOG: Final = 512
WILDCARDS: Final = ("0.0.0.0", "::")
LOOPBACK: Final = "127.0.0.1"


class Sockets(Struct, frozen=True, kw_only=True):
    """All that a cluster listens on."""

    brokers: list[socket.socket]
    """Those of the first listener in the order of broker ids, then those of the next."""
    controller: socket.socket | None
    control: socket.socket
    """Of the control API."""


def _advice(option: str) -> str:
    """How to choose another port than one that is in use."""
    if option == "--listener":
        return "give another port in --listener, or port 0 for a free one"
    return f"give another {option}, or {option} 0 for a free one"


def bind_all(
    listeners: Sequence[ListenerSpec],
    *,
    brokers: int,
    controller: ListenerSpec | None,
    control: tuple[str, int],
) -> Sockets:
    """Listen on every port.

    :param controller: The controller's listener; None where it has none.
    :param control: The host and port of the control API.
    :raises PortUnavailable: When one is in use; no socket stays open then.
    """
    wanted = [
        (listener.host, listener.port_of(index), listener.option)
        for listener in listeners
        for index in range(brokers)
    ]
    if controller is not None:
        wanted.append((controller.host, controller.port, controller.option))
    wanted.append((*control, "--control-port"))
    bound: list[socket.socket] = []
    try:
        for host, port, option in wanted:
            bound.append(bind(host, port, BACKLOG, advice=_advice(option)))
    except OSError:
        for sock in bound:
            sock.close()
        raise
    control_socket = bound.pop()
    controller_socket = None if controller is None else bound.pop()
    return Sockets(brokers=bound, controller=controller_socket, control=control_socket)


def broker_addresses(
    listeners: Iterable[ListenerSpec], broker_ids: Iterable[int], sockets: Iterable[socket.socket]
) -> list[tuple[Address, ...]]:
    """The addresses of each listener, in the order of broker ids.

    :param sockets: As `Sockets.brokers`.
    """
    ids, bound = list(broker_ids), iter(sockets)
    return [
        tuple(
            _address(listener, next(bound).getsockname()[1], broker_id, index)
            for index, broker_id in enumerate(ids)
        )
        for listener in listeners
    ]


def controller_address(listener: ListenerSpec, node_id: int, sock: socket.socket) -> Address:
    """Where the controller listens, and what it advertises: as the first of several brokers."""
    return _address(listener, sock.getsockname()[1], node_id, 0)


def bootstrap(addresses: Iterable[Address]) -> str:
    """The addresses that are advertised, as bootstrap servers: ``host:port,...``."""
    return ",".join(
        f"{in_uri(each.advertised.host or LOOPBACK)}:{each.advertised.port}" for each in addresses
    )


def _address(listener: ListenerSpec, port: int, broker_id: int, index: int) -> Address:
    if listener.advertised is None:
        host, advertised_port = "" if listener.host in WILDCARDS else listener.host, port
    else:
        host, advertised_port = listener.advertised.of_broker(broker_id, index, port)
    return Address(
        listener=listener.name,
        host=listener.host,
        port=port,
        advertised_host=host,
        advertised_port=advertised_port,
    )
