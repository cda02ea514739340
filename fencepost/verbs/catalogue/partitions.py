"""The verbs on partitions, their replicas and their remote tier."""

from types import MappingProxyType
from typing import Final

from fencepost.verbs.catalogue.verb import PARTITION, Method, Verb

_REPLICA: Final = f"{PARTITION}/replicas/{{broker}}"

PARTITIONS: Final[tuple[Verb, ...]] = (
    Verb(
        name="partition",
        method=Method.GET,
        path=PARTITION,
        answer="answers.topics.PartitionState",
        command="partition",
        summary="Show a partition: its leader, its ISR, and the log of each replica.",
    ),
    Verb(
        name="elect",
        method=Method.POST,
        path=f"{PARTITION}/elect",
        request="bodies.ElectBody",
        answer="answers.topics.PartitionState",
        command="elect",
        summary=(
            "Elect a leader, cleanly or not; the leader epoch rises, also where the leader stays."
        ),
    ),
    Verb(
        name="roll",
        method=Method.POST,
        path=f"{PARTITION}/roll",
        answer="answers.topics.PartitionState",
        command="roll",
        summary="Close the active segment of every replica; an empty one stays.",
    ),
    Verb(
        name="compact",
        method=Method.POST,
        path=f"{PARTITION}/compact",
        answer="answers.topics.CompactionState",
        command="compact",
        summary="Compact the closed segments of every replica, however little there is to gain.",
    ),
    Verb(
        name="tier",
        method=Method.POST,
        path=f"{PARTITION}/tier",
        request="bodies.TierBody",
        answer="answers.topics.TierState",
        command="tier",
        subcommand_field="action",
        subcommands=MappingProxyType(
            {
                "upload": "Run the leader's task now: it uploads every segment that it may.",
                "delete-local": "Delete the closed segments that the tier has from all replicas.",
                "expire": "Run retention in the tier now.",
                "forget": "Drop the leader's view of the tier, as if it were just elected.",
                "lose": "Lose all objects of a partition in the tier; no broker is notified.",
            }
        ),
        summary=(
            "Upload to a partition's remote tier, delete from it or lose its objects, at once."
        ),
    ),
    Verb(
        name="hold",
        method=Method.POST,
        path=f"{_REPLICA}/hold",
        request="bodies.HoldBody",
        answer="answers.topics.PartitionState",
        command="hold",
        summary="Keep a replica from fetching, at once or from an offset on.",
    ),
    Verb(
        name="release",
        method=Method.POST,
        path=f"{_REPLICA}/release",
        answer="answers.topics.PartitionState",
        command="release",
        summary="Let a replica fetch again; answers when it has caught up.",
    ),
    Verb(
        name="step",
        method=Method.POST,
        path=f"{_REPLICA}/step",
        request="bodies.StepBody",
        answer="answers.topics.StepState",
        command="step",
        summary="Let a replica send a number of fetches, held or not; answers the result of each.",
    ),
    Verb(
        name="wipe",
        method=Method.POST,
        path=f"{_REPLICA}/wipe",
        answer="answers.topics.PartitionState",
        command="wipe",
        summary="Lose a replica's disk: it leaves the ISR and starts empty.",
    ),
)
