"""What a test does with the remote tier; test_routes_tier.py has what it is told of that."""

from __future__ import annotations

from fencepost.broker.node import tier_actions
from fencepost.broker.replication.replica import Replica
from fencepost.storage.tier.object_store import TierError
from tests.harness.garbage import without_collector
from tests.harness.remote_tier import Tier


def test_replicas_that_deleted_what_the_tier_has_are_freed_without_the_garbage_collector() -> None:
    told: list[tuple[tier_actions.DeletedSegments, ...] | TierError] = []
    with without_collector(Replica) as left:
        tier = Tier(3)
        tier_actions.delete_local(tier.cluster, "t", 0, told.append)
        tier.advance(0)
        (deleted,) = told
        assert isinstance(deleted, tuple)
        assert [each.broker_id for each in deleted] == [1, 2, 3]
        tier.cluster.controller.delete_topics(["t"])
        tier.advance(0)
        assert [each for each in left() if each.topic == "t"] == []
