"""Who is in sync: when a follower joins the ISR, and when it leaves.

A follower joins when it has fetched, under the leader's epoch, up to the high watermark and past
the start of that epoch, and the controller has its broker online, in the very registration that
fetched (KIP-903): a broker that the controller marks offline never joins, however well it fetches
(KIP-320, KAFKA-6880). It leaves when it has not had all that the leader had for
``replica.lag.time.max.ms``.

The leader only proposes; the ISR is the controller's (KIP-497, AlterPartition). One proposal is on
the way at a time, and until its fate is known the high watermark waits for the old ISR and for the
new one: the controller may have accepted already.
"""

from itertools import islice
from typing import Final

from fencepost.broker.controller.requests import AlterPartitions, IsrProposal
from fencepost.broker.metadata.image import PartitionImage
from fencepost.broker.replication.follower_progress import UNKNOWN_OFFSET
from fencepost.broker.replication.node import LeaderNode
from fencepost.broker.replication.replica import Replica
from fencepost.protocol.errors import ErrorCode

PROPOSALS_IN_A_TURN: Final = 40
"""A broker that comes back joins thousands of ISRs; the controller is asked for some at a time."""
ANY_BROKER_EPOCH = -1
"""The broker epoch of a follower that does not say which registration it is (before Fetch v15)."""


class IsrManager:
    """One broker's proposals, for all replicas that it leads."""

    def __init__(self, broker: LeaderNode) -> None:
        self._broker = broker
        self._outbox: dict[Replica, None] = {}
        """What is proposed in this turn goes to the controller together, at its end; where that is
        very much, a part of it in each of the next turns."""

    def clear(self) -> None:
        """The broker goes down: nothing is proposed any more."""
        self._outbox.clear()

    def maybe_expand_isr(self, replica: Replica, follower_id: int) -> None:
        """Propose a follower that is not in the ISR, if it may join.

        What a broker fetches while it is offline says nothing of the log that it comes back with:
        where it does not say in which registration it fetches, it has to fetch again then.
        """
        progress = replica.followers.get(follower_id)
        if progress is None or follower_id in replica.isr:
            return
        if progress.broker_epoch == ANY_BROKER_EPOCH and not self._is_online(
            follower_id, ANY_BROKER_EPOCH
        ):
            progress.log_end_offset = UNKNOWN_OFFSET
        if replica.pending_isr is not None:
            return
        if replica.is_caught_up(progress) and self._is_online(follower_id, progress.broker_epoch):
            self._propose(replica, (*replica.isr, follower_id))

    def maybe_shrink_isrs(self) -> None:
        """Propose every ISR without the followers that lag too long, or with those that do not.

        What got lost is repeated, and what was refused.
        """
        broker = self._broker
        oldest_ms = broker.scheduler.now_ms() - broker.configs.replica_lag_time_max_ms
        for replica in list(broker.replicas.values()):
            if not replica.is_leader:
                continue
            self.resend_lost_proposal(replica)
            replica.reevaluate_followers([b for b in replica.followers if b not in replica.isr])
            laggards = replica.out_of_sync_followers(oldest_ms)
            if laggards:
                self._propose_without(replica, laggards)

    def remove_from_isr(self, replica: Replica, follower_id: int) -> None:
        """Propose the ISR without this follower, whatever it has."""
        if follower_id in replica.isr:
            self._propose_without(replica, {follower_id})

    def resend_lost_proposal(self, replica: Replica) -> None:
        """Propose again what got lost on its way, or whose answer did."""
        if replica.is_leader and replica.pending_isr is not None and replica.proposal_lost:
            self._enqueue(replica)

    def _propose_without(self, replica: Replica, followers: set[int]) -> None:
        if replica.pending_isr is None:
            self._propose(replica, tuple(b for b in replica.isr if b not in followers))

    def _is_online(self, follower_id: int, broker_epoch: int) -> bool:
        known = self._broker.view.brokers.get(follower_id)
        return (
            known is not None
            and not known.fenced
            and broker_epoch in (ANY_BROKER_EPOCH, known.epoch)
        )

    def _propose(self, replica: Replica, isr: tuple[int, ...]) -> None:
        replica.pending_isr = isr
        self._enqueue(replica)

    def _enqueue(self, replica: Replica) -> None:
        replica.proposal_lost = False
        if not self._outbox:
            self._broker.scheduler.soon(self._send)
        self._outbox[replica] = None

    def _send(self) -> None:
        replicas = list(islice(self._outbox, PROPOSALS_IN_A_TURN))
        for replica in replicas:
            del self._outbox[replica]
        if self._outbox:
            self._broker.scheduler.in_later_turn(self._send)
        sent = [(r, self._proposal(r, r.pending_isr)) for r in replicas if r.pending_isr]
        if not sent:
            return

        def answered(answers: list[PartitionImage | ErrorCode]) -> None:
            for (replica, proposal), answer in zip(sent, answers, strict=True):
                self._answered(replica, proposal, answer)

        def lost() -> None:
            for replica, proposal in sent:
                if replica.is_leader and replica.leader_epoch == proposal.leader_epoch:
                    replica.proposal_lost = True

        proposals = tuple(proposal for _, proposal in sent)
        self._broker.ask_controller(AlterPartitions(proposals=proposals), answered, lost)

    def _proposal(self, replica: Replica, isr: tuple[int, ...]) -> IsrProposal:
        broker = self._broker
        epochs = {b: p.broker_epoch for b, p in replica.followers.items()}
        return IsrProposal(
            topic=replica.topic,
            topic_id=replica.topic_id,
            index=replica.index,
            leader=broker.broker_id,
            broker_epoch=broker.epoch,
            leader_epoch=replica.leader_epoch,
            partition_epoch=replica.partition_epoch,
            isr=tuple((b, epochs.get(b, broker.epoch)) for b in isr),
        )

    def _answered(
        self, replica: Replica, proposal: IsrProposal, answer: PartitionImage | ErrorCode
    ) -> None:
        """Take what was decided; what was refused for good is not waited for any more.

        A refusal because the partition has changed keeps the proposal pending: the new view that
        says how is on its way. One because this broker has registered again says nothing of the
        partition.
        """
        if not replica.is_leader or replica.leader_epoch != proposal.leader_epoch:
            return
        if isinstance(answer, PartitionImage):
            if answer.leader_epoch == replica.leader_epoch:
                replica.make_leader(answer, now_ms=self._broker.scheduler.now_ms())
        elif (
            answer is ErrorCode.INELIGIBLE_REPLICA
            and replica.partition_epoch == proposal.partition_epoch
        ):
            replica.withdraw_proposal()
            ids = tuple(broker_id for broker_id, _ in proposal.isr)
            if self._proposal(replica, ids).isr != proposal.isr:
                # A follower has fetched in another registration meanwhile. Otherwise the same
                # would be refused again, and `maybe_shrink_isrs` repeats it later.
                replica.reevaluate_followers(tuple(replica.followers))
        elif answer is ErrorCode.STALE_BROKER_EPOCH:
            replica.proposal_lost = True  # it is to be repeated in the present registration
