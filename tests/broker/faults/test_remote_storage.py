from __future__ import annotations

from fencepost.broker.core.events import Kind
from fencepost.broker.faults.remote_storage import RemoteFault, RemoteFaultRule, RemoteOperation
from fencepost.storage.tier.object_store import TierError
from tests.harness.remote_tier import INTERVAL, Tier, every


def add(
    tier: Tier,
    operation: RemoteOperation,
    *,
    error: str | None = None,
    delay_ms: int | None = None,
    count: int | None = 1,
) -> RemoteFault:
    rule = RemoteFaultRule(operation=operation, error=error, delay_ms=delay_ms, count=count)
    return tier.cluster.tier_faults.add(rule)


def test_an_upload_meets_a_fault_once_a_segment() -> None:
    tier = Tier()
    tier.append(7)
    fault = add(tier, RemoteOperation.UPLOAD, error="no space", count=2)
    error = tier.run()
    assert isinstance(error, TierError)
    assert "no space" in str(error)
    assert (fault.hits, fault.left) == (1, 1)
    assert tier.tiered() == []
    assert tier.run() is not None
    assert (fault.hits, fault.left) == (2, 0)
    assert tier.run() is None
    assert tier.tiered() == [(0, 1), (2, 3), (4, 5)]
    assert fault.hits == 2


def test_a_fault_without_a_count_hits_until_it_is_removed() -> None:
    tier = Tier()
    tier.append(3)
    fault = add(tier, RemoteOperation.UPLOAD, error="no", count=None)
    tier.advance(5 * INTERVAL)
    assert tier.objects.names() == ["0.json"]
    assert fault.left is None
    assert fault.hits == 5
    assert tier.cluster.tier_faults.remove(fault.id)
    assert not tier.cluster.tier_faults.remove(fault.id)
    tier.advance(INTERVAL)
    assert tier.objects.names() == every(0)


def test_what_is_delayed_is_done_then() -> None:
    tier = Tier()
    tier.append(3)
    add(tier, RemoteOperation.UPLOAD, delay_ms=1000)
    tier.manager.run_task(tier.leader("t"), lambda _: None)
    tier.advance(999)
    assert tier.objects.names() == ["0.json"]
    tier.advance(1)
    assert tier.objects.names() == every(0)


def test_what_is_delayed_may_fail_then() -> None:
    tier = Tier()
    tier.append(3)
    add(tier, RemoteOperation.UPLOAD, delay_ms=1000, error="late")
    told: list[TierError | None] = []
    tier.manager.run_task(tier.leader("t"), told.append)
    tier.advance(999)
    assert told == []
    tier.advance(1)
    assert len(told) == 1
    assert told[0] is not None


def test_a_deletion_meets_a_fault_once_a_segment() -> None:
    tier = Tier()
    tier.append(7)
    tier.run()
    tier.leader("t").delete_records(6)
    fault = add(tier, RemoteOperation.DELETE, error="no")
    assert tier.run() is not None
    assert fault.hits == 1
    assert len([name for name in tier.objects.names() if name.endswith(".log")]) == 3
    assert tier.run() is None
    assert tier.objects.names() == []


def test_reading_meets_a_fault_but_metadata_do_not() -> None:
    tier = Tier(2)
    tier.append(3)
    tier.run()
    fault = add(tier, RemoteOperation.FETCH, error="no", count=None)
    tier.elect("t", 0, 2)
    assert tier.highest() == 1
    assert fault.hits == 0
    told: list[object] = []
    objects = tier.manager.objects
    assert objects is not None
    for key in sorted(tier.objects.objects):
        objects.get(key, 0, None, told.append)
    tier.cluster.scheduler.run_due()
    assert sum(isinstance(each, TierError) for each in told) == 5
    assert fault.hits == 5


def test_the_first_that_fits_hits() -> None:
    tier = Tier()
    first = add(tier, RemoteOperation.UPLOAD, error="one")
    second = add(tier, RemoteOperation.UPLOAD, error="two")
    other = add(tier, RemoteOperation.FETCH, error="three")
    tier.append(3)
    assert "one" in str(tier.run())
    assert "two" in str(tier.run())
    assert (first.hits, second.hits, other.hits) == (1, 1, 0)
    assert tier.cluster.tier_faults.all() == (first, second, other)
    assert tier.cluster.tier_faults.get(second.id) is second


def test_all_of_it_is_told() -> None:
    tier = Tier()
    fault = add(tier, RemoteOperation.UPLOAD, error="no")
    tier.append(3)
    tier.run()
    tier.cluster.tier_faults.remove(fault.id)
    what = {"id": fault.id, "operation": "upload", "error": "no", "delay_ms": None}
    (added,) = tier.told(Kind.TIER_FAULT_ADDED)
    (hit,) = tier.told(Kind.TIER_FAULT_HIT)
    (removed,) = tier.told(Kind.TIER_FAULT_REMOVED)
    assert added.details == what
    assert dict(hit.details) | {"key": ""} == {**what, "key": ""}
    assert str(hit.details["key"]).endswith(".log")
    assert removed.details == {**what, "hits": 1}


def test_a_reset_takes_all_back_and_ids_go_on() -> None:
    tier = Tier()
    fault = add(tier, RemoteOperation.UPLOAD, error="no")
    tier.cluster.tier_faults.reset()
    assert tier.cluster.tier_faults.all() == ()
    assert add(tier, RemoteOperation.UPLOAD, error="no").id == fault.id + 1
