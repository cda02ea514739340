"""The verbs on consumer groups."""

from typing import Final

from fencepost.verbs.catalogue.verb import Method, Verb

_GROUP: Final = "/v1/groups/{group}"

GROUPS: Final[tuple[Verb, ...]] = (
    Verb(
        name="groups",
        method=Method.GET,
        path="/v1/groups",
        answer="answers.groups.GroupsState",
        command="groups",
        summary="List all groups, by name.",
    ),
    Verb(
        name="group",
        method=Method.GET,
        path=_GROUP,
        answer="answers.groups.GroupState",
        command="group show",
        name_first=True,
        summary="Show a group: its members, its committed offsets and its lag.",
    ),
    Verb(
        name="wait_for_group",
        method=Method.POST,
        path=f"{_GROUP}/wait",
        request="group_bodies.GroupWaitBody",
        answer="answers.groups.GroupState",
        command="group wait",
        name_first=True,
        summary="Wait until a group is stable, or in another state, with so many members.",
    ),
    Verb(
        name="move_coordinator",
        method=Method.POST,
        path=f"{_GROUP}/coordinator",
        request="group_bodies.CoordinatorBody",
        answer="answers.groups.GroupState",
        command="group move",
        name_first=True,
        summary="Make a broker the coordinator of a group, and of all groups of its partition.",
    ),
    Verb(
        name="rebalance_group",
        method=Method.POST,
        path=f"{_GROUP}/rebalance",
        answer="answers.groups.GroupState",
        command="group rebalance",
        name_first=True,
        summary="Begin a rebalance of a group; its members join again at their next heartbeat.",
    ),
    Verb(
        name="remove_member",
        method=Method.POST,
        path=f"{_GROUP}/members/{{member}}/remove",
        answer="answers.groups.GroupState",
        command="group remove",
        name_first=True,
        summary="Remove a member from a group, as if it had left; the others rebalance.",
    ),
    Verb(
        name="set_offsets",
        method=Method.POST,
        path=f"{_GROUP}/offsets",
        request="group_bodies.OffsetsBody",
        answer="answers.groups.GroupState",
        command="group set-offsets",
        name_first=True,
        summary="Commit offsets for a group, whatever its state; a new group is created.",
    ),
    Verb(
        name="delete_offsets",
        method=Method.POST,
        path=f"{_GROUP}/offsets/delete",
        request="group_bodies.TopicsBody",
        answer="answers.groups.GroupState",
        command="group delete-offsets",
        name_first=True,
        summary="Delete the committed offsets of topics from a group, whatever its state.",
    ),
)
