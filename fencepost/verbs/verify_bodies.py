"""The body of the verb that verifies how many requests were seen."""

from typing import Annotated, Self

from pydantic import (
    ConfigDict,
    Field,
    ValidationError,
    ValidatorFunctionWrapHandler,
    field_validator,
    model_validator,
)

from fencepost.verbs.bodies import Body, SelectedRecord, SelectorsBody
from fencepost.verbs.derived import given_selectors

_Number = Annotated[int, Field(ge=0)]


class CountBounds(Body):
    """Bounds of a number of requests, both inclusive; one of them may be left out."""

    at_least: _Number | None = None
    """The fewest, in place of an exact number."""
    at_most: _Number | None = None
    """The most, in place of an exact number."""

    @model_validator(mode="after")
    def _is_range(self) -> Self:
        if self.at_least is None and self.at_most is None:
            raise ValueError("name at_least, at_most or both")
        if self.at_most is not None and (self.at_least or 0) > self.at_most:
            raise ValueError(f"at_least {self.at_least} is more than at_most {self.at_most}")
        return self


@given_selectors(SelectedRecord)
class VerifyBody(SelectorsBody):
    """Which requests to count, and how many there are to be. All selectors must match."""

    count: _Number | CountBounds
    """Exactly so many requests; or ``{"at_least": n, "at_most": n}``."""
    since: _Number = 0
    """Only requests with a higher ``number`` in the trace."""

    @field_validator("count", mode="wrap")
    @classmethod
    def _is_count(cls, given: object, check: ValidatorFunctionWrapHandler) -> object:
        """Say what is wrong with what was given, and nothing of what it might have been."""
        if isinstance(given, dict):
            return CountBounds.model_validate(given)
        try:
            checked: object = check(given)
        except ValidationError as error:
            known = "a number of requests, or an object of at_least, at_most or both"
            raise ValueError(f"input should be {known}") from error
        return checked

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"count": 1, "api": "OffsetForLeaderEpoch", "client_id": "checkout"},
                {"count": {"at_least": 2}, "api": "Produce", "record": {"key": "17"}},
            ]
        }
    )

    @property
    def bounds(self) -> tuple[int, int | None]:
        """The fewest and the most, both inclusive; None is no bound."""
        if isinstance(self.count, int):
            return self.count, self.count
        return self.count.at_least or 0, self.count.at_most
