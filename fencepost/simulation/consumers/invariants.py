"""The invariants of consumers. Each function checks one; it returns the violation, or None.

What the proposals admit is left out before (`fencepost.simulation.consumers.admitted`).
"""

from collections.abc import Collection
from typing import Final

from fencepost.simulation.history import Batch

Problem = str | None


def consumers_get_what_leaders_wrote(
    who: str, batch: Batch | None, offset: int, epoch: int
) -> Problem:
    """Each record that a consumer hands out was appended by the leader of its epoch, there."""
    return None if batch is not None else f"{who}: no leader appended {offset} in epoch {epoch}"


def consumers_skip_and_repeat_nothing(who: str, expected: int | None, offset: int) -> Problem:
    """The next record of a consumer is the one behind the last, unless it was told otherwise."""
    return None if offset == expected else f"{who}: got {offset}, where {expected} comes next"


def consumers_go_where_lookups_say(who: str, found: Collection[int], offset: int) -> Problem:
    """A consumer that lost its position goes on at an offset that a broker has named since."""
    return None if offset in found else f"{who}: goes on at {offset}, brokers named {sorted(found)}"


def truncations_are_reported(
    who: str, tip: Batch | None, batch: Batch | None, offset: int
) -> Problem:
    """No consumer goes on behind records that were truncated without telling its application.

    :param tip: What it has read last, which is not there any more.
    :param batch: What it goes on with; None where it is reset.
    """
    return f"{who}: goes on at {offset} with {batch}, and has read {tip}, which is not before it"


def only_truncations_are_reported(who: str, tip: Batch, offset: int) -> Problem:
    """A truncation is reported only where the leader's log lacks what was consumed last."""
    return f"{who}: a truncation is reported at {offset}, and the leader has {tip}"


def truncations_are_reported_where_they_are(
    who: str, told: int | None, expected: int | None
) -> Problem:
    """A report names the offset that the leader's log shows, or none where it shows none."""
    return None if told == expected else f"{who}: diverges from {expected}, reported is {told}"


def committed_positions_come_back(
    who: str, found: tuple[int, int], saved: Collection[tuple[int, int]]
) -> Problem:
    """What a consumer finds committed is an offset with its epoch that it has committed."""
    return None if found in saved else f"{who}: finds {found} committed, never committed that"


def metadata_epochs_never_go_back(who: str, known: int, sent: int) -> Problem:
    """No consumer sends an older leader epoch than metadata has shown it (KIP-232)."""
    return f"{who}: sends epoch {sent}, and has seen {known}" if sent < known else None


def leaders_serve_their_own_epoch(who: str, sent: int, served: int) -> Problem:
    """A consumer that sends a leader epoch is served in that epoch alone (KIP-320)."""
    return None if sent in {-1, served} else f"{who}: sent epoch {sent}, was served in {served}"


def consumers_come_to_the_end(who: str, position: int | None, high_watermark: int) -> Problem:
    """Once all is well again every consumer reads up to the high watermark."""
    if position == high_watermark:
        return None
    return f"{who}: is at {position} in the end, the high watermark at {high_watermark}"


INVARIANTS: Final = (
    consumers_get_what_leaders_wrote,
    consumers_skip_and_repeat_nothing,
    consumers_go_where_lookups_say,
    truncations_are_reported,
    only_truncations_are_reported,
    truncations_are_reported_where_they_are,
    committed_positions_come_back,
    metadata_epochs_never_go_back,
    leaders_serve_their_own_epoch,
    consumers_come_to_the_end,
)
"""All of them."""
