"""The body of the verb that verifies how many requests were seen."""

from typing import Annotated, ClassVar

from msgspec import Meta

from fencepost.verbs.bodies import Body
from fencepost.verbs.derived import given_selectors
from fencepost.verbs.fault_bodies import SelectedRecord, SelectorsBody
from fencepost.verbs.model import Examples, Says

_Number = Annotated[int, Meta(ge=0)]
_ExactCount = Annotated[
    int,
    Meta(ge=0),
    Says("input should be a number of requests, or an object of at_least, at_most or both"),
]


class CountBounds(Body):
    """Bounds of a number of requests, both inclusive; one of them may be left out."""

    at_least: _Number | None = None
    """The fewest, in place of an exact number."""
    at_most: _Number | None = None
    """The most, in place of an exact number."""

    def check(self) -> None:
        """They are a range."""
        if self.at_least is None and self.at_most is None:
            raise ValueError("name at_least, at_most or both")
        if self.at_most is not None and (self.at_least or 0) > self.at_most:
            raise ValueError(f"at_least {self.at_least} is more than at_most {self.at_most}")


@given_selectors(SelectedRecord)
class VerifyBody(SelectorsBody):
    """Which requests to count, and how many there are to be. All selectors must match."""

    count: _ExactCount | CountBounds
    """Exactly so many requests; or ``{"at_least": n, "at_most": n}``."""
    since: _Number = 0
    """Only requests with a higher ``number`` in the trace."""

    examples: ClassVar[Examples] = [
        {"count": 1, "api": "OffsetForLeaderEpoch", "client_id": "checkout"},
        {"count": {"at_least": 2}, "api": "Produce", "record": {"key": "17"}},
    ]

    @property
    def bounds(self) -> tuple[int, int | None]:
        """The fewest and the most, both inclusive; None is no bound."""
        if isinstance(self.count, int):
            return self.count, self.count
        return self.count.at_least or 0, self.count.at_most
