"""What a client quota may be, and what may be asked about quotas (KIP-546, KIP-599, KIP-612).

A quota is of an entity: a user, a client id, both, or an address, each by its name or by default.
The checks, their order and their messages are those of Kafka's ``ClientQuotaControlManager`` and
``ClientQuotasImage``.
"""

from collections.abc import Iterable, Mapping
from ipaddress import ip_address
from typing import Final, NamedTuple

from msgspec import Struct

from fencepost.protocol.errors import ErrorCode

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"
_ENTITY_TYPES: Final = (USER, CLIENT_ID, IP)
_LONG: Final = ("LONG", "a", float((1 << 63) - 1))
_INT: Final = ("INT", "an", float((1 << 31) - 1))
_USER_KEYS: Final[Mapping[str, tuple[str, str, float] | None]] = {
    "producer_byte_rate": _LONG,
    "consumer_byte_rate": _LONG,
    "request_percentage": None,
    "controller_mutation_rate": None,
}
"""The keys of users and client ids: type, its article and its highest value; None for a double."""
_IP_KEYS: Final[Mapping[str, tuple[str, str, float] | None]] = {"connection_creation_rate": _INT}
_FRACTION: Final = 1e-6
_DEFAULT: Final = 1
_LOCALHOST: Final = "localhost"

Entity = Mapping[str, str | None]
"""Names by entity type; None for the default."""


class QuotaError(NamedTuple):
    """Why a request is refused, in Kafka's words."""

    code: ErrorCode
    message: str


class QuotaOperation(NamedTuple):
    """A key that is set, or removed: then the value is None."""

    key: str
    value: float | None


class FilterComponent(Struct, frozen=True, kw_only=True):
    """What the quotas that are asked for are of.

    :ivar match_type: An exact name, the default, or any name of this type.
    """

    entity_type: str
    match_type: int
    match: str | None


def describe_entity(entity: Entity) -> str:
    """An entity as Kafka writes it."""
    entries = ", ".join(f"{kind}={name or 'null'}" for kind, name in entity.items())
    return f"ClientQuotaEntity(entries={{{entries}}})"


def alteration_error(entity: Entity, operations: Iterable[QuotaOperation]) -> QuotaError | None:
    """Why an alteration of one entity is refused; None where it is valid.

    A removal is, whatever its key.
    """
    keys = _valid_keys(entity)
    if isinstance(keys, QuotaError):
        return keys
    for key, value in operations:
        error = None if value is None else _value_error(keys, key, value)
        if error is not None:
            return error
    return None


def _valid_keys(entity: Entity) -> Mapping[str, tuple[str, str, float] | None] | QuotaError:
    if not entity:
        return _invalid("Invalid empty client quota entity")
    for kind, name in entity.items():
        if kind not in _ENTITY_TYPES:
            return _invalid(f"Unhandled client quota entity type: {kind}")
        if name == "":
            return _invalid(f"Empty {kind} not supported")
    if IP not in entity:
        return _USER_KEYS
    if len(entity) > 1:
        # Kafka's message lacks this space.
        return _invalid(
            "Invalid quota entity combination, IP entity should"
            "not be combined with User or ClientId"
        )
    address = entity[IP]
    if address is not None and not _is_address(address):
        return _invalid(f"{address} is not a valid IP or resolvable host.")
    return _IP_KEYS


def _is_address(text: str) -> bool:
    """Whether it is an address; of host names only one is known without a resolver."""
    try:
        ip_address(text)
    except ValueError:
        return text == _LOCALHOST
    return True


def _value_error(
    keys: Mapping[str, tuple[str, str, float] | None], key: str, value: float
) -> QuotaError | None:
    if key not in keys:
        return _invalid(f"Invalid configuration key {key}")
    if value <= 0:
        return _invalid(f"Quota {key} must be greater than 0")
    integral = keys[key]
    if integral is None:
        return None
    name, article, highest = integral
    if value > highest:
        return _invalid(f"Proposed value for {key} is too large for {article} {name}.")
    if abs(value % 1) > _FRACTION:
        return _invalid(f"{key} cannot be a fractional value.")
    return None


def filter_error(components: Iterable[FilterComponent]) -> QuotaError | None:
    """Why quotas can't be asked for so; None where they can. It reads up to the first error."""
    seen: set[str] = set()
    for component in components:
        error = _component_error(component, seen)
        if error is not None:
            return error
        seen.add(component.entity_type)
    if IP in seen and len(seen) > 1:
        return _invalid(
            "Invalid entity filter component combination. IP filter component should not be used "
            "with user or clientId filter component."
        )
    return None


def _component_error(component: FilterComponent, seen: set[str]) -> QuotaError | None:
    kind = component.entity_type
    if not kind:
        return _invalid("Invalid empty entity type.")
    if kind in seen:
        return _invalid(f"Entity type {kind} cannot appear more than once in the filter.")
    if kind not in _ENTITY_TYPES:
        return QuotaError(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}")
    match component.match_type:
        case 0 if component.match is None:
            return _invalid("Request specified MATCH_TYPE_EXACT, but set match string to null.")
        case 1 | 2 if component.match is not None:
            name = "DEFAULT" if component.match_type == _DEFAULT else "SPECIFIED"
            return _invalid(
                f"Request specified MATCH_TYPE_{name}, but also specified a match string."
            )
        case 0 | 1 | 2:
            return None
        case unknown:
            return _invalid(f"Unknown match type {unknown}")


def _invalid(message: str) -> QuotaError:
    return QuotaError(ErrorCode.INVALID_REQUEST, message)
