"""The cluster of a seed, by chance."""

import random
from typing import Final

from msgspec.structs import replace

from fencepost.simulation.setup import (
    DRAFT_CONSUMERS,
    FINAL_CONSUMERS,
    FROM_LAST,
    FROM_LOCAL,
    MIXED_FLOWS,
    NEW_FLOW,
    NEWEST_FETCH,
    NO_TIER,
    OLD_FLOW,
    Setup,
)

FETCH_CEILINGS: Final = (NEWEST_FETCH, NEWEST_FETCH, NEWEST_FETCH, 14, 12, 11, 11, 9)
"""Below 15 fetches carry no broker epoch, below 12 no last epoch, below 9 no epoch at all."""
_TIERS: Final = (NO_TIER, NO_TIER, FROM_LOCAL, FROM_LAST)
_FIRST_FETCH_WITH_TIER: Final = 14
"""Before it a follower can't be told that what it wants has moved to the tier."""
_CHECKS: Final = 0.3
"""Share of the topics that check expected offsets."""
_IDS_FROM_0: Final = 0.3
"""Share of the clusters whose first broker is 0."""
_UNCLEAN_FOR_CONSUMERS: Final = 0.4
_FEW_EPOCHS: Final = 0.3
_EXPIRES: Final = 0.25
"""Shares of the clusters with transactions."""


def draw_setup(seed: int, rng: random.Random) -> Setup:
    """A cluster by chance."""
    brokers = rng.choice((3, 3, 4, 5))
    factor = min(brokers, rng.choice((2, 3, 3, 3, 4)))
    setup = Setup(
        seed=seed,
        brokers=brokers,
        partitions=rng.choice((1, 1, 2, 3)),
        replication_factor=factor,
        min_insync_replicas=rng.choice((1, 2)),
        unclean=rng.random() < 0.08,
        fetch_version=rng.choice(FETCH_CEILINGS),
    )
    # From chances of their own: seeds without them do what they did before there were any.
    if random.Random(f"checks {seed}").random() < _CHECKS:
        setup = replace(setup, checks_offsets=True)
    if random.Random(f"ids {seed}").random() < _IDS_FROM_0:
        setup = replace(setup, first_id=0)
    tier = random.Random(f"tiers {seed}").choice(_TIERS)
    if tier == NO_TIER:
        return setup
    version = setup.fetch_version if setup.fetch_version >= _FIRST_FETCH_WITH_TIER else NEWEST_FETCH
    return replace(setup, tier=tier, fetch_version=version)


def draw_consumer_setup(seed: int, rng: random.Random) -> Setup:
    """A cluster by chance for applications, which often loses what consumers have read."""
    setup = draw_setup(seed, rng)
    own = random.Random(f"consumers {seed}")
    return replace(
        setup,
        consumers=own.choice((FINAL_CONSUMERS, DRAFT_CONSUMERS)),
        unclean=own.random() < _UNCLEAN_FOR_CONSUMERS,
        checks_offsets=False,
    )


def draw_transaction_setup(seed: int, rng: random.Random) -> Setup:
    """A cluster by chance for transactions, which loses nothing but by disks and by its tier."""
    setup = draw_setup(seed, rng)
    own = random.Random(f"transactions of {seed}")
    return replace(
        setup,
        transactions=own.choice((NEW_FLOW, NEW_FLOW, OLD_FLOW, MIXED_FLOWS)),
        partitions=own.choice((1, 2, 2, 3)),
        unclean=False,
        few_epochs=own.random() < _FEW_EPOCHS,
        expires=own.random() < _EXPIRES,
        fetch_version=NEWEST_FETCH,
        tier=own.choice(_TIERS),
        checks_offsets=False,
    )
