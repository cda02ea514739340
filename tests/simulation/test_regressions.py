"""Schedules that once broke an invariant, as small as they were found; each holds now."""

import pytest

from fencepost.simulation.runner import replay
from fencepost.simulation.schedule import parse

SCHEDULES = {
    "a leader that lost its disk and leads again does so in a new partition epoch": """
        cluster seed=4 brokers=3 partitions=1 replicas=3 min.insync=1 unclean=no fetch=18
        kill 2 fence=timeout
        stop 1
        advance 46000
        settle
        wipe p0 3
    """,
    "a proposal that is refused for its leader's old registration is made again": """
        cluster seed=59 brokers=2 partitions=3 replicas=2 min.insync=1 unclean=no fetch=12
        stop 2
        deliver controller->1
        start 2
        deliver controller->1
        wipe p2 1
    """,
    "a follower that fetched before its leader knew it online joins the ISR": """
        cluster seed=143 brokers=2 partitions=1 replicas=2 min.insync=1 unclean=no fetch=18
        stop 1
        start 1
        settle
        isolate 1 fence=now
        deliver controller->2
        hold-at p0 1 +1
    """,
    "so does one whose fetch is all that arrives": """
        cluster seed=39 brokers=3 partitions=3 replicas=3 min.insync=1 unclean=no fetch=18
        isolate 1 fence=now
        rejoin 1
        deliver controller->1
        deliver 1->2
        deliver 1->2
    """,
    "a follower that lost its disk twice fetches again": """
        cluster seed=1079 brokers=2 partitions=1 replicas=2 min.insync=1 unclean=no fetch=18
        wipe p0 1
        deliver controller->1
        wipe p0 1
    """,
    "a leader elected in the midst of its truncation leaves no hole before its end": """
        cluster seed=2060 brokers=3 partitions=1 replicas=3 min.insync=2 unclean=no fetch=18
        kill 2 fence=now
        produce p0 to 1 acks=all x1
        produce p0 to 1 acks=all x3
        kill 1 fence=timeout
        hold p0 3 isr=stay
        start 1
        deliver controller->3
        deliver controller->3
        produce p0 to 3 acks=1 x1
        kill 3 fence=now
        start 3
        settle
        kill 1 fence=timeout
        start 1
        hold p0 1 isr=stay
        settle
        stop 3
    """,
    "nor does one whose segments are closed in the midst of it": """
        cluster seed=2060 brokers=3 partitions=1 replicas=3 min.insync=2 unclean=no fetch=18
        kill 2 fence=now
        produce p0 to 1 acks=all x1
        produce p0 to 1 acks=all x3
        kill 1 fence=timeout
        hold p0 3 isr=stay
        start 1
        deliver controller->3
        deliver controller->3
        produce p0 to 3 acks=1 x1
        kill 3 fence=now
        start 3
        settle
        kill 1 fence=timeout
        start 1
        hold p0 1 isr=stay
        settle
        roll p0
        stop 3
    """,
    "a follower that fetched while a proposal was refused is looked at again": """
        cluster seed=4732 brokers=2 partitions=1 replicas=2 min.insync=1 unclean=no fetch=18
        kill 1 fence=now
        start 1
        settle
        kill 1 fence=never
        start 1
        deliver 1->2
    """,
    "a proposal that would be refused again is not made again at once": """
        cluster seed=4568 brokers=3 partitions=3 replicas=3 min.insync=1 unclean=no fetch=18
        produce p2 to 3 acks=all x3
        deliver 3->1
        deliver 1->3
        deliver 3->1
        deliver 3->1
        deliver 3->1
        kill 3 fence=now
        start 3
        settle
        stop 1
        settle
        produce p2 to 3 acks=all x1
        wipe p0 2
    """,
    "what a leader does not know to be committed does not expire in the tier": """
        cluster seed=4 brokers=3 partitions=1 replicas=3 min.insync=2 unclean=no fetch=18 tier=local
        produce p0 to 1 acks=all x2
        roll p0
        wipe p0 2
        produce p0 to 1 acks=all x3
        produce p0 to 1 acks=all x3
        produce p0 to 1 acks=all x2
        produce p0 to 1 acks=all x1
        hold p0 2 isr=stay
        produce p0 to 1 acks=all x1
        settle
        produce p0 to 1 acks=all x3
        produce p0 to 1 acks=all x1
        produce p0 to 1 acks=all x2
        produce p0 to 1 acks=1 x1
        produce p0 to 1 acks=1 x3
        produce p0 to 1 acks=all x1
        kill 1 fence=now
        start 1
        deliver controller->1
        kill 3 fence=now
        deliver controller->1
        deliver controller->1
        produce p0 to 1 acks=1 x1
        produce p0 to 1 acks=1 x3
        produce p0 to 1 acks=1 x3
        produce p0 to 1 acks=1 x3
        produce p0 to 1 acks=1 x1
    """,
    "a leader that leads no more keeps what it does not know to be committed": """
        cluster seed=7 brokers=4 partitions=3 replicas=3 min.insync=1 unclean=no fetch=18 tier=local
        store done 3
        produce p2 to 3 acks=1 x1
        deliver 3->4
        store done 3
        store fails 1
        deliver 4->3
        deliver 3->4
        store done 2
        isolate 1 fence=timeout
        roll p2
        advance 16000
        store done 0
        store done 0
        isolate 3 fence=now
        store done 0
        store done 0
        store done 0
        deliver controller->4
        deliver controller->4
        store done 1
        store done 0
        store done 0
        upload p2
        store done 0
        store done 0
        kill 2 fence=timeout
        store done 0
        store done 0
        advance 46000
        store done 2
        store done 0
        store done 2
        store done 2
        store done 3
        store done 1
        store done 3
        delete-local p2
        store done 0
        store done 1
        store done 1
    """,
    "a follower that has all fetches again in its broker's new registration": """
        cluster seed=486 brokers=3 partitions=3 replicas=3 min.insync=1 unclean=no fetch=18
        stop 3
        settle
        kill 2 fence=never
        start 2
        deliver 2->1
        deliver 2->1
        deliver controller->1
        deliver 2->1
        deliver controller->2
        deliver 1->2
        deliver controller->2
        deliver controller->1
        deliver 2->1
        deliver 1->controller
        deliver controller->2
        wipe p2 2
        deliver controller->2
    """,
    "a new leader hears of a deletion that another began and did not finish": """
        cluster seed=9 brokers=2 partitions=1 replicas=2 min.insync=2 unclean=no fetch=18 tier=local
        produce p0 to 1 acks=all x3
        settle
        stop 1
        deliver controller->2
        roll p0
        store done 0
        store done 0
        store done 0
        store done 0
        store done 0
        store done 0
        store done 0
        store done 0
        delete-local p0
        deliver controller->1
        kill 2 fence=never
        start 1
        deliver controller->1
        start 2
        deliver controller->1
        delete p0 at 1
        store done 0
        store done 0
        store done 0
        store done 0
        store done 0
        deliver controller->1
        wipe p0 1
    """,
    "what a deposed leader has uploaded meanwhile is known to be tiered": """
        cluster seed=6 brokers=4 partitions=1 replicas=4 min.insync=1 unclean=no fetch=18 tier=last
        produce p0 to 1 acks=1 x1
        settle
        produce p0 to 1 acks=all x1
        deliver 1->3
        deliver 3->1
        deliver 1->2
        deliver 2->1
        deliver 1->4
        deliver 1->2
        deliver 2->1
        roll p0
        deliver 4->1
        deliver 1->4
        deliver 1->3
        prefer p0
        deliver controller->2
        deliver controller->1
        deliver 2->1
        deliver 3->1
        store done 0
        deliver controller->4
        deliver controller->3
        deliver 4->1
        store done 1
        deliver 4->1
        deliver 3->1
        store done 0
        store done 2
        forget p0
        produce p0 to 1 acks=all x1
        produce p0 to 1 acks=all x3
        produce p0 to 1 acks=all x2
        deliver 1->3
        deliver 1->3
        reassign p0 to 1,2,3
        deliver 1->controller
        store done 0
        produce p0 to 1 acks=all x1
        deliver controller->1
        deliver controller->2
        deliver controller->4
        store done 2
        deliver 1->3
        store done 2
        deliver controller->3
        deliver 1->3
        store done 0
        deliver 1->3
        store done 2
        store done 3
        deliver 1->3
        store done 0
        deliver 1->3
        deliver 1->3
        produce p0 to 1 acks=1 x1
        deliver 1->3
        deliver 1->3
        store done 1
        store fails 1
        isolate 2 fence=timeout
        produce p0 to 1 acks=all x2
        deliver 1->3
        reassign p0 to 1,3,4,2
        deliver 1->controller
        deliver controller->3
        deliver 1->3
        deliver 1->3
        deliver 3->1
        deliver 1->3
        deliver 1->3
        isolate 1 fence=now
        deliver controller->4
        deliver controller->3
        store fails 2
        upload p0
        produce p0 to 3 acks=all x3
        expire p0
        roll p0
        produce p0 to 3 acks=1 x3
        produce p0 to 3 acks=all x1
        produce p0 to 3 acks=1 x3
        expire p0
        settle
    """,
    "a copy whose records were lost while it was made counts for nothing": """
        cluster seed=8 brokers=4 partitions=3 replicas=4 min.insync=1 unclean=no fetch=18 tier=local
        wipe p0 3
        produce p0 to 1 acks=all x3
        deliver controller->2
        stop 4
        deliver controller->2
        stop 2
        start 2
        store done 2
        stop 1
        store done 1
        start 1
        store done 1
        store done 2
        store done 1
        deliver controller->2
        deliver controller->2
        store done 0
        store done 0
        deliver controller->2
        store done 0
        deliver controller->1
        store done 0
        store done 0
        store done 1
        roll p0
        store done 1
        store done 0
        deliver controller->1
        store done 3
        store done 0
        deliver controller->1
        deliver controller->1
        store done 1
        store done 0
        deliver controller->1
        store done 0
        deliver controller->1
        store done 0
        store done 0
        store done 1
        store done 0
        store done 2
        store done 1
        store done 1
        stop 3
        store done 1
        lose p0
        delete-local p0
        store done 2
        store done 1
        store done 1
    """,
    "what the tier has lost and the log still has is copied once more": """
        cluster seed=8 brokers=2 partitions=1 replicas=2 min.insync=1 unclean=no fetch=18 tier=last
        wipe p0 1
        deliver controller->2
        produce p0 to 2 acks=all x1
        delete p0 at 2
        produce p0 to 2 acks=1 x2
        roll p0
        store done 0
        store done 1
        store done 0
        store done 1
        store done 0
        store done 0
        store done 0
        store done 0
        store done 0
        store done 0
        lose p0
    """,
    "a follower whose leader changes in the midst of its truncation fetches the batch again": """
        cluster seed=3305 brokers=3 partitions=2 replicas=3 min.insync=1 unclean=no fetch=18 consumers=final
        produce p1 to 2 acks=all x1
        deliver 2->3
        hold p1 3 isr=leave
        produce p0 to 1 acks=1 x1
        produce p0 to 2 acks=all x1
        produce p1 to 2 acks=all x1
        produce p1 to 3 acks=1 x1
        elect p1 1 unclean
        deliver controller->1
        produce p1 to 1 acks=1 x2
        settle
        elect p1 3 unclean
        deliver controller->3
        produce p1 to 3 acks=1 x2
        hold p1 2 isr=leave
        settle
        elect p1 2 unclean
        deliver controller->1
        deliver controller->2
        elect p1 3 unclean
    """,  # noqa: E501
    "a consumer of the draft that a deposed leader served finds where its records differ": """
        cluster seed=1730 brokers=3 partitions=1 replicas=3 min.insync=2 unclean=yes fetch=18 consumers=draft
        poll a6 ignore
        carry a6 1 arrives
        carry a6 1 arrives
        carry a6 1 arrives
        carry a6 0 arrives
        carry a6 1 arrives
        carry a6 1 arrives
        carry a6 1 arrives
        carry a6 1 arrives
        carry a6 0 arrives
        elect p0 2 unclean
        carry a6 0 arrives
        carry a6 1 arrives
        settle
        elect-leaders p0 via 1
        deliver 1->controller
        carry a6 2 arrives
        deliver controller->2
        carry a6 1 arrives
        carry a6 0 arrives
        carry a6 1 arrives
        carry a6 2 arrives
        carry a6 0 arrives
        carry a6 0 arrives
        hold-at p0 3 +0
        carry a6 1 arrives
        stop 2
        start 2
        carry a6 2 arrives
        deliver controller->1
        carry a6 1 arrives
        carry a6 0 arrives
        carry a6 0 arrives
        carry a6 1 arrives
        elect p0 2 unclean
        settle
        elect p0 3 unclean
        carry a6 0 arrives
        carry a6 0 arrives
        carry a6 0 arrives
        carry a6 0 arrives
        carry a6 0 arrives
        settle
        carry a6 0 arrives
        carry a6 0 arrives
        carry a6 0 arrives
        produce p0 to 3 acks=all x3
        carry a6 0 arrives
        save a6
        carry a6 1 arrives
        carry a6 1 arrives
        carry a6 1 arrives
        carry a6 1 arrives
        carry a6 1 arrives
        carry a6 0 arrives
        carry a6 0 arrives
        carry a6 0 arrives
        stop 3
        deliver controller->1
        start 3
        carry a6 0 arrives
        carry a6 0 arrives
        carry a6 0 arrives
        carry a6 1 arrives
        carry a6 0 arrives
        carry a6 0 arrives
        carry a6 0 arrives
        carry a6 0 arrives
        carry a6 0 arrives
        produce p0 to 1 acks=1 x3
        carry a6 0 arrives
        settle
        elect p0 3 unclean
        deliver controller->2
        deliver controller->3
        deliver 3->2
        carry a6 1 arrives
        carry a6 1 arrives
        deliver 2->3
        carry a6 0 arrives
        carry a6 0 arrives
        deliver 3->2
        deliver 2->3
        deliver 3->2
        carry a6 0 arrives
        carry a6 0 arrives
        deliver 2->3
        carry a6 0 arrives
        carry a6 0 arrives
        deliver 3->controller
        deliver controller->3
        poll a6 ignore
        carry a6 0 arrives
        carry a6 0 arrives
        carry a6 0 arrives
        elect p0 1 unclean
    """,  # noqa: E501
    "a committed epoch that one leader does not have is the bound at the next one as well": """
        cluster seed=3868 brokers=3 partitions=2 replicas=2 min.insync=1 unclean=yes fetch=18 tier=last consumers=final
        poll a1 heed
        carry a1 0 arrives
        carry a1 0 arrives
        carry a1 1 arrives
        carry a1 1 arrives
        carry a1 1 arrives
        deliver 2->controller
        carry a1 0 arrives
        produce p1 to 2 acks=all x1
        produce p1 to 2 acks=all x1
        carry a1 0 arrives
        stop 2
        settle
        carry a1 1 arrives
        carry a1 1 arrives
        carry a1 0 arrives
        carry a1 2 arrives
        carry a1 0 arrives
        produce p1 to 3 acks=all x1
        poll a1 heed
        carry a1 0 arrives
        carry a1 3 arrives
        carry a1 0 arrives
        carry a1 1 arrives
        carry a1 1 arrives
        carry a1 2 arrives
        start 2
        carry a1 1 arrives
        carry a1 0 arrives
        save a1
        carry a1 2 arrives
        carry a1 2 arrives
        deliver 3->1
        carry a1 1 arrives
        carry a1 3 arrives
        poll a1 heed
        save a1
        carry a1 2 arrives
        deliver 1->3
        deliver controller->3
        elect p1 2 unclean
        deliver 3->1
        deliver controller->3
        deliver 3->1
        restart a1
        poll a1 ignore
        carry a1 0 arrives
        deliver controller->2
        carry a1 0 arrives
        deliver 1->3
        carry a1 1 arrives
        deliver controller->2
        carry a1 0 arrives
        carry a1 0 arrives
        carry a1 0 arrives
        carry a1 0 arrives
        carry a1 0 arrives
        carry a1 1 arrives
        carry a1 2 arrives
        carry a1 0 arrives
        isolate 2 fence=now
        carry a1 2 arrives
        deliver controller->3
    """,  # noqa: E501
    "a consumer of the draft asks another leader from its largest epoch on": """
        cluster seed=3628 brokers=3 partitions=1 replicas=3 min.insync=1 unclean=yes fetch=18 consumers=draft ids.from=0
        poll a9 ignore
        produce p0 to 0 acks=1 x3
        carry a9 1 arrives
        carry a9 1 arrives
        deliver 0->1
        carry a9 0 arrives
        carry a9 0 arrives
        carry a9 0 arrives
        deliver 0->1
        carry a9 0 arrives
        deliver 0->1
        carry a9 0 arrives
        carry a9 0 arrives
        deliver 1->0
        carry a9 0 arrives
        carry a9 0 arrives
        carry a9 0 arrives
        carry a9 0 arrives
        carry a9 0 arrives
        carry a9 0 arrives
        carry a9 0 arrives
        deliver 0->1
        elect p0 1 unclean
        carry a9 0 arrives
        carry a9 0 arrives
        carry a9 0 arrives
        deliver controller->1
        carry a9 0 arrives
        carry a9 1 arrives
        carry a9 0 arrives
        hold p0 0 isr=leave
        carry a9 0 arrives
        carry a9 1 arrives
        carry a9 0 arrives
        settle
        carry a9 2 arrives
        carry a9 0 arrives
        elect p0 0 unclean
        deliver controller->0
        carry a9 0 arrives
        hold p0 1 isr=stay
        elect p0 2 unclean
        carry a9 0 arrives
        carry a9 0 arrives
        produce p0 to 0 acks=1 x2
        settle
        produce p0 to 2 acks=all x2
        carry a9 0 arrives
        produce p0 to 2 acks=all x1
        reassign p0 to 2,1,0
        carry a9 0 arrives
        carry a9 0 arrives
        carry a9 0 arrives
        elect p0 0 unclean
        carry a9 0 arrives
        carry a9 0 arrives
        deliver controller->0
        carry a9 0 arrives
        poll a9 heed
        poll a9 heed
        deliver 0->controller
        advance 5000
        poll a9 heed
        isolate 0 fence=now
        carry a9 0 arrives
        carry a9 1 arrives
        carry a9 0 arrives
        carry a9 2 arrives
        carry a9 3 arrives
        carry a9 3 arrives
        carry a9 3 arrives
        carry a9 1 arrives
    """,  # noqa: E501
    "and is told of that, not of where the deposed leader's log differs": """
        cluster seed=1730 brokers=3 partitions=1 replicas=3 min.insync=1 unclean=yes fetch=18 consumers=draft
        poll a6 ignore
        carry a6 1 arrives
        carry a6 1 arrives
        produce p0 to 1 acks=1 x2
        carry a6 1 arrives
        carry a6 0 arrives
        carry a6 1 arrives
        carry a6 1 arrives
        settle
        carry a6 0 arrives
        carry a6 0 arrives
        carry a6 1 arrives
        carry a6 1 arrives
        carry a6 0 arrives
        carry a6 1 arrives
        carry a6 2 arrives
        carry a6 0 arrives
        carry a6 0 arrives
        hold-at p0 3 +0
        carry a6 1 arrives
        stop 2
        start 2
        carry a6 2 arrives
        carry a6 1 arrives
        elect p0 2 unclean
        settle
        poll a6 ignore
        elect p0 3 unclean
        carry a6 0 arrives
        carry a6 0 arrives
        carry a6 0 arrives
        settle
        carry a6 0 arrives
        carry a6 0 arrives
        carry a6 0 arrives
        save a6
        carry a6 1 arrives
        produce p0 to 3 acks=all x3
        carry a6 0 arrives
        carry a6 0 arrives
        carry a6 0 arrives
        carry a6 1 arrives
        carry a6 1 arrives
        carry a6 0 arrives
        carry a6 0 arrives
        carry a6 0 arrives
        stop 3
        carry a6 0 arrives
        deliver controller->1
        carry a6 0 arrives
        settle
        start 3
        carry a6 1 arrives
        carry a6 0 arrives
        carry a6 0 arrives
        carry a6 0 arrives
        carry a6 0 arrives
        carry a6 0 arrives
        produce p0 to 1 acks=1 x3
        carry a6 0 arrives
        carry a6 1 arrives
        settle
        elect p0 3 unclean
        deliver controller->2
        carry a6 1 arrives
        carry a6 1 arrives
        carry a6 0 arrives
        carry a6 0 arrives
        carry a6 0 arrives
        poll a6 ignore
        carry a6 0 arrives
        carry a6 0 arrives
        deliver controller->3
        carry a6 0 arrives
        carry a6 0 arrives
        elect p0 1 unclean
    """,  # noqa: E501
    "retention counts once what two leaders have brought to the tier": """
        cluster seed=16 brokers=4 partitions=3 replicas=3 min.insync=2 unclean=no fetch=18 tier=last
        kill 1 fence=now
        deliver controller->2
        produce p2 to 3 acks=all x1
        produce p0 to 2 acks=1 x1
        produce p0 to 2 acks=1 x1
        produce p0 to 2 acks=all x1
        produce p0 to 2 acks=1 x3
        produce p0 to 2 acks=1 x2
        produce p0 to 2 acks=all x2
        produce p0 to 2 acks=all x2
        roll p2
        produce p0 to 2 acks=1 x3
        produce p0 to 2 acks=all x3
        produce p0 to 2 acks=all x2
        produce p0 to 2 acks=1 x2
        produce p0 to 2 acks=1 x2
        produce p0 to 2 acks=all x3
        settle
        produce p0 to 2 acks=1 x3
        produce p0 to 2 acks=all x1
        produce p0 to 2 acks=1 x1
        kill 2 fence=never
        start 2
        store done 1
        store done 0
        roll p0
        deliver controller->3
        store done 1
        store done 0
        store done 0
        store done 0
        store done 0
        store done 0
        store done 0
        store done 0
        kill 3 fence=timeout
    """,
    "what is here and in the tier counts once, also where the leader knows nothing of the tier": """
        cluster seed=786 brokers=4 partitions=2 replicas=2 min.insync=1 unclean=no fetch=18 tier=last check=yes
        kill 2 fence=now
        produce p0 to 1 acks=all x3
        settle
        produce p1 to 3 acks=1 x1
        produce p1 to 3 acks=1 x1
        start 2
        deliver 2->1
        settle
        roll p0
        produce p1 to 2 acks=all x1
        kill 1 fence=now
        settle
        produce p0 to 2 acks=all x2
        kill 2 fence=now
        deliver controller->2
        start 2
        store fails 1
        deliver controller->2
        store done 0
        produce p0 to 2 acks=all x2
        roll p0
        produce p0 to 2 acks=all x1
        store done 0
        produce p0 to 2 acks=all x1
        produce p0 to 2 acks=all x1
        produce p0 to 2 acks=all x2
        store done 3
        produce p0 to 2 acks=1 x2
        store done 1
        produce p0 to 2 acks=all x3
        store done 1
        store done 1
        store done 1
        produce p0 to 2 acks=all x1
        store done 3
        store done 3
        forget p0
        expire p0
    """,  # noqa: E501
    "records may be deleted before an answer that waits for another partition": """
        cluster seed=484 brokers=3 partitions=2 replicas=3 min.insync=1 unclean=no fetch=9
        isolate 3 fence=now
        kill 2 fence=now
        settle
        start 2
        deliver controller->1
        deliver 2->1
        produce-each to 1 acks=all
        delete p1 at 1
        produce p1 to 1 acks=1 x3
    """,
}


@pytest.mark.parametrize("text", SCHEDULES.values(), ids=SCHEDULES.keys())
def test_what_once_broke_holds(text: str) -> None:
    outcome = replay(parse(text))
    assert outcome.failure is None
