"""AlterClientQuotas (49), versions 0-1: set and remove quotas (KIP-546).

Every check is Kafka's, and there are no quotas: a removal has nothing to remove and succeeds, as
does what is to be validated alone. A quota that is valid and would have to be stored is
UNSUPPORTED_VERSION, for none would be enforced.

An entity that is named twice is answered once: the second time is INVALID_REQUEST, and so is a key
that is named twice. Of an entity's types the last name counts.

Versions: v1 compact types.
"""

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from fencepost.broker.controller.controller_apis import ControllerContext
from fencepost.broker.security.client_quotas import (
    Entity,
    QuotaError,
    QuotaOperation,
    alteration_error,
    describe_entity,
)
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    EntryData,
    ResponseEntryData,
)

_Key: TypeAlias = tuple[tuple[str, str | None], ...]
NOT_STORED: Final = QuotaError(
    ErrorCode.UNSUPPORTED_VERSION,
    "The quota is valid, but fencepost does not enforce client quotas, and so it stores none",
)


def handle(_ctx: ControllerContext, request: AlterClientQuotasRequest) -> AlterClientQuotasResponse:
    """Check each entity."""
    results: dict[_Key, ResponseEntryData] = {}
    repeated: set[_Key] = set()
    for entry in request.entries:
        entity = _entity(entry)
        key = tuple(sorted(entity.items(), key=str))
        if key in repeated:
            continue
        if key in results:
            repeated.add(key)
        error = _error(entity, entry, is_again=key in repeated)
        if error is None and not request.validate_only and _sets(entry):
            error = NOT_STORED
        results[key] = _result(entity, error)
    return AlterClientQuotasResponse(entries=tuple(results.values()))


def refuse(request: AlterClientQuotasRequest, error_code: int) -> AlterClientQuotasResponse:
    """The error for each entity."""
    return AlterClientQuotasResponse(
        entries=tuple(
            ResponseEntryData(error_code=error_code, error_message=None, entity=entry.entity)
            for entry in request.entries
        )
    )


def _entity(entry: EntryData) -> Mapping[str, str | None]:
    return {each.entity_type: each.entity_name for each in entry.entity}


def _error(entity: Entity, entry: EntryData, *, is_again: bool) -> QuotaError | None:
    operations = [
        QuotaOperation(each.key, None if each.remove else each.value) for each in entry.ops
    ]
    if is_again or _has_twins(operations):
        return QuotaError(
            ErrorCode.INVALID_REQUEST, f"Ignoring duplicate entity {describe_entity(entity)}"
        )
    return alteration_error(entity, operations)


def _has_twins(operations: Sequence[QuotaOperation]) -> bool:
    return len({each.key for each in operations}) < len(operations)


def _sets(entry: EntryData) -> bool:
    return any(not each.remove for each in entry.ops)


def _result(entity: Entity, error: QuotaError | None) -> ResponseEntryData:
    names = tuple(EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items())
    if error is None:
        return ResponseEntryData(error_message=None, entity=names)
    return ResponseEntryData(error_code=error.code, error_message=error.message, entity=names)
