"""The structs of every API, one module each, and the decorator of their classes.

``python -m tools.generate_messages`` writes the modules. For readers and type checkers the classes
are frozen, slotted, keyword-only dataclasses. At run time they are not frozen: a frozen instance
sets each field through ``object.__setattr__``, which costs more than all else of making it, and one
request makes six.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import dataclass as struct
else:
    from dataclasses import dataclass

    # Type checkers read the branch above, and so do tools that read annotations.
    def struct(*, frozen: bool, slots: bool, kw_only: bool):  # noqa: ANN201, D103  # as just said
        assert frozen
        return dataclass(slots=slots, kw_only=kw_only, unsafe_hash=True)


__all__ = ["struct"]
