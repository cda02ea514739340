"""The listeners of ``fencepost serve``: those of --listener, or the one of --host and --port."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from fencepost.broker.server.run import ServeOptions
from fencepost.cli.option_values import OptionError, OptionText, parsed
from fencepost.protocol.listener_text import (
    CONTROLLER,
    MAX_PORT,
    ListenerSpec,
    is_host,
    parse_advertised,
    parse_listener,
)

_SINGLE: Final = ("host", "port")


def read_listeners(
    found: Mapping[str, Sequence[OptionText]], on_command_line: Collection[str]
) -> tuple[ListenerSpec, ...]:
    """The listeners of brokers that the options describe.

    What is on the command line takes precedence: ``--listener`` over a host and a port from
    elsewhere, and these over listeners from elsewhere.

    :param found: The texts of each option, by its key.
    :param on_command_line: The keys of the options that are there.
    :raises OptionError: When one is wrong, or two contradict.
    """
    typed = [f"--{key}" for key in _SINGLE if key in on_command_line]
    texts = [each for each in found["listener"] if not _is_controllers(each)]
    if typed and texts and "listener" in on_command_line:
        raise OptionError(f"--listener stands in place of {' and '.join(typed)}")
    advertise = found["advertise"][-1] if found["advertise"] else None
    texts = [] if typed else texts
    if not texts:
        return (_single_listener(found["host"][-1], found["port"][-1], advertise),)
    first, *others = _distinct(texts)
    if advertise is not None:
        if first.advertised is None:
            first = replace(first, advertised=parsed(advertise, parse_advertised))
        elif "advertise" in on_command_line:
            raise OptionError(f"--advertise: the listener {first.name} has an advertised= already")
    return (first, *others)


def read_controller_listener(
    found: Mapping[str, Sequence[OptionText]],
    first: ListenerSpec,
    on_command_line: Collection[str],
) -> ListenerSpec | None:
    """The controller's: the one of its name, or on a port beside the brokers' first one.

    :raises OptionError: When it is wrong, or the options contradict.
    """
    texts = [each for each in found["listener"] if _is_controllers(each)]
    ports = found["controller_port"]
    if texts and {"listener", "controller_port"} <= set(on_command_line):
        raise OptionError(f"--listener {CONTROLLER}:// stands in place of --controller-port")
    if ports and not (texts and "listener" in on_command_line):
        return first.of_controller(ports[-1].number(0, MAX_PORT))
    return _distinct(texts)[0] if texts else None


def _is_controllers(given: OptionText) -> bool:
    return given.text.partition("://")[0].upper() == CONTROLLER


def read_host(given: OptionText) -> str:
    """A host to listen on.

    :raises OptionError: When it is none.
    """
    if not is_host(given.text):
        given.refuse("is not a host: a name or an address, without user, scheme, brackets and port")
    return given.text


def _single_listener(
    host: OptionText, port: OptionText, advertise: OptionText | None
) -> ListenerSpec:
    return ListenerSpec(
        host=read_host(host),
        port=port.number(0, MAX_PORT),
        advertised=None if advertise is None else parsed(advertise, parse_advertised),
    )


def _distinct(texts: Sequence[OptionText]) -> list[ListenerSpec]:
    listeners: dict[str, ListenerSpec] = {}
    for each in texts:
        listener = parsed(each, parse_listener)
        if listener.name in listeners:
            each.refuse(f"gives {listener.name} a second time")
        listeners[listener.name] = listener
    return list(listeners.values())


class _Range(NamedTuple):
    """Ports that belong together, both inclusive."""

    name: str
    first: int
    last: int

    def meets(self, other: "_Range") -> bool:
        """Whether a port is in both."""
        return self.first <= other.last and other.first <= self.last


def check_ports(options: ServeOptions) -> None:
    """Whether there are enough ports, on which to listen and to advertise, and none is used twice.

    :raises OptionError: When it is not so.
    """
    ranges = list(_ranges(options))
    for index, each in enumerate(ranges):
        for other in ranges[:index]:
            if each.meets(other):
                _refuse_twice(options, other, each)
    for listener in options.listeners:
        _check_advertised(listener, options.ids)
    if options.controller is not None:
        _check_advertised(options.controller, (*options.controller_ids, *options.ids)[:1])


def _ranges(options: ServeOptions) -> Iterator[_Range]:
    """Those of the listeners, then the control API's port and the controller's; no free ones."""
    for listener in options.listeners:
        if listener.port:
            last = _last(options.brokers, listener.port, "port")
            yield _Range(listener.name, listener.port, last)
    controller_port = 0 if options.controller is None else options.controller.port
    for name, port in (("control", options.control_port), ("controller", controller_port)):
        if port:
            yield _Range(name, port, port)


def _last(brokers: int, port: int, name: str) -> int:
    last = port + brokers - 1
    if last > MAX_PORT:
        raise OptionError(
            f"{brokers} brokers from {name} {port} on would need port {last};"
            f" the last port is {MAX_PORT}"
        )
    return last


def _refuse_twice(options: ServeOptions, before: _Range, after: _Range) -> None:
    port = max(before.first, after.first)
    if before.name == "control":
        raise OptionError(f"control port {port} is also the controller's port")
    if after.name in ("control", "controller"):
        broker_id = options.ids[port - before.first]
        raise OptionError(f"{after.name} port {port} is also broker {broker_id}'s port")
    raise OptionError(f"port {port} is needed by the listeners {before.name} and {after.name}")


def _check_advertised(listener: ListenerSpec, node_ids: Sequence[int]) -> None:
    """Whether each node of a listener has a port to advertise."""
    advertised = listener.advertised
    if advertised is None:
        return
    if not advertised.has_places:
        _last(len(node_ids), int(advertised.port), "advertised port")
        return
    if not listener.port and advertised.builds_on_ports:
        raise OptionError(
            f"the listener {listener.name} has free ports, and so none for the {{port}} in what it"
            " advertises"
        )
    node = "the controller" if listener.name == CONTROLLER else "broker {}"
    for index, node_id in enumerate(node_ids):
        _, port = advertised.of_broker(node_id, index, listener.port_of(index) or 1)
        if not 0 < port <= MAX_PORT:
            name = node.format(node_id)
            raise OptionError(f"{name} would advertise port {port}, which is none")
