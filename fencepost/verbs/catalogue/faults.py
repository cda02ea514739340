"""The verbs on faults of requests, of connections and of the remote tier."""

from typing import Final

from fencepost.verbs.catalogue.verb import Method, Shape, Verb

_FAULT: Final = "/v1/faults/{id}"
_TIER_FAULTS: Final = "/v1/tier/faults"

FAULTS: Final[tuple[Verb, ...]] = (
    Verb(
        name="add_fault",
        method=Method.POST,
        path="/v1/faults",
        request="fault_bodies.FaultBody",
        answer="answers.faults.FaultState",
        command="fault add",
        positional=("api",),
        summary="Add a fault for matching requests; of several faults the first that matches hits.",
    ),
    Verb(
        name="faults",
        method=Method.GET,
        path="/v1/faults",
        answer="answers.faults.FaultState",
        shape=Shape.LIST,
        command="fault list",
        summary="List all faults and their hits, in the order in which they are tried.",
    ),
    Verb(
        name="fault",
        method=Method.GET,
        path=_FAULT,
        answer="answers.faults.FaultState",
        command="fault show",
        summary="Show a fault and its hits.",
    ),
    Verb(
        name="wait_for_fault",
        method=Method.GET,
        path=f"{_FAULT}/wait",
        request="bodies.HitsFilter",
        answer="answers.faults.FaultState",
        command="fault wait",
        summary="Wait until a fault has this number of hits.",
    ),
    Verb(
        name="remove_fault",
        method=Method.DELETE,
        path=_FAULT,
        answer="answers.faults.FaultState",
        command="fault remove",
        summary="Remove a fault; answers its hits.",
    ),
    Verb(
        name="remove_faults",
        method=Method.DELETE,
        path="/v1/faults",
        answer="answers.Done",
        command="fault clear",
        summary="Remove all faults.",
    ),
    Verb(
        name="add_tier_fault",
        method=Method.POST,
        path=_TIER_FAULTS,
        request="bodies.TierFaultBody",
        answer="answers.faults.TierFaultState",
        command="tier add-fault",
        positional=("operation",),
        summary=("Add a fault for operations on the remote tier; the first that matches hits."),
    ),
    Verb(
        name="tier_faults",
        method=Method.GET,
        path=_TIER_FAULTS,
        answer="answers.faults.TierFaultState",
        shape=Shape.LIST,
        command="tier faults",
        summary="List all tier faults and their hits, in the order in which they are tried.",
    ),
    Verb(
        name="remove_tier_fault",
        method=Method.DELETE,
        path=f"{_TIER_FAULTS}/{{id}}",
        answer="answers.faults.TierFaultState",
        command="tier remove-fault",
        summary="Remove a tier fault; answers its hits.",
    ),
    Verb(
        name="remove_tier_faults",
        method=Method.DELETE,
        path=_TIER_FAULTS,
        answer="answers.Done",
        command="tier clear-faults",
        summary="Remove all tier faults.",
    ),
)
