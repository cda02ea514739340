"""The bodies of faults, whose fields are those of the broker's own rules.

They are apart from the others, since the kinds of faults take longer to import than all of those.
"""

from typing import ClassVar, Literal

from fencepost.verbs.bodies import Body, require_utf8
from fencepost.verbs.derived import Derived, given_action, given_fault, given_record
from fencepost.verbs.model import Examples


@given_action()
class FaultAction(Derived, Body):
    """The effect on a request that a fault hits: exactly one of these."""

    @classmethod
    def read_first(cls, given: object) -> object:
        """``"drop"`` means ``{"drop": true}``."""
        if not isinstance(given, str):
            return given
        if given not in cls.model_fields:
            raise ValueError(
                f"there is no action {given!r}; there are {', '.join(cls.model_fields)}"
            )
        if given not in cls.words():
            raise ValueError(f"{given} needs a value")
        return {given: True}

    def check(self) -> None:
        """It is one action."""
        if len(self.model_fields_set) != 1 or None in self.model_dump(exclude_unset=True).values():
            kinds = ", ".join(type(self).model_fields)
            raise ValueError(f"name exactly one action of {kinds}")

    @classmethod
    def words(cls) -> tuple[str, ...]:
        """The kinds that have no value but true, and so may be given by name alone."""
        flag = Literal[True] | None
        return tuple(name for name, each in cls.model_fields.items() if each.annotation == flag)


class SelectorsBody(Derived, Body):
    """What selects requests: all of it must match."""

    @classmethod
    def check_field(cls, _name: str, value: object) -> None:
        """Refuse text that no request can carry."""
        require_utf8(value)

    def check(self) -> None:
        """A partition is one of a topic."""
        if self.partition is not None and self.topic is None:
            raise ValueError("partition: name its topic too")


@given_record()
class SelectedRecord(Derived, Body):
    """A record, by its key, its value or a header; all that is given must be equal."""

    @classmethod
    def check_field(cls, _name: str, value: object) -> None:
        """Refuse text that no record can carry."""
        for each in value if isinstance(value, tuple) else (value,):
            require_utf8(each)

    def check(self) -> None:
        """It selects."""
        if not any(value is not None for _, value in self):
            raise ValueError("name a key, a value or a header")


@given_fault(FaultAction, SelectedRecord)
class FaultBody(SelectorsBody):
    """A fault: which requests it hits, and its effect. All selectors must match."""

    def check(self) -> None:
        """It has one effect, or several."""
        super().check()
        if (self.action is None) is (self.sequence is None):
            raise ValueError("name an action, or a sequence of several")

    examples: ClassVar[Examples] = [
        {"api": "Produce", "topic": "orders", "action": {"error": "NOT_ENOUGH_REPLICAS"}},
        {"api": "Fetch", "client_id": "checkout", "count": None, "action": {"delay": 200}},
        {"api": "Produce", "after": 2, "action": {"disconnect": "after"}},
        {
            "api": ["Produce", "Fetch"],
            "record": {"key": "17", "header": ["type", "order"]},
            "sequence": [{"error": "NOT_LEADER_OR_FOLLOWER"}, {"pass": True}],
        },
        {"api": "*", "broker": 1, "action": {"refuse": True}},
    ]
