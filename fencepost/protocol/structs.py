"""The decorator of all message classes.

For whoever reads or checks the code they are frozen, slotted, keyword-only dataclasses. At run time
they are not frozen: a frozen instance sets each field through ``object.__setattr__``, which costs
more than all else of making it, and one request makes six.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import dataclass as struct
else:
    from dataclasses import dataclass

    # Checkers read the branch above, and so does whoever asks for types.
    def struct(*, frozen: bool, slots: bool, kw_only: bool):  # noqa: ANN201, D103  # as just said
        assert frozen
        return dataclass(slots=slots, kw_only=kw_only, unsafe_hash=True)


__all__ = ["struct"]
