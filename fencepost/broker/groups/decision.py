"""What a coordinator has decided, before anything has changed."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from fencepost.broker.groups.records import CoordinatorRecord

R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision(Generic[R]):
    """A response, and the records that must be committed before it is given."""

    response: R
    records: tuple[CoordinatorRecord, ...] = ()
