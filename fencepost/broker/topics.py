"""How requests name topics: by name in older versions, by id in newer ones (KIP-516)."""

from uuid import UUID

from fencepost.broker.image import ClusterImage
from fencepost.protocol.errors import ErrorCode


def resolve_name(
    view: ClusterImage, name: str, topic_id: UUID | None, *, by_id: bool
) -> str | ErrorCode:
    """The topic's name, or the error to answer for an id that nobody has."""
    if not by_id:
        return name
    found = view.names.get(topic_id) if topic_id is not None else None
    return ErrorCode.UNKNOWN_TOPIC_ID if found is None else found
