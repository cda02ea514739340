"""Whether a request matches the selectors of a fault, and whether any request could."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias, cast
from uuid import UUID

from fencepost.broker.core.context import Context, TopicPartition
from fencepost.broker.faults.record_matching import partitions_with_record
from fencepost.broker.faults.request_fields import (
    KeyFields,
    TopicFields,
    group_fields,
    titles_of_apis_with_groups,
    titles_of_apis_with_transactional_ids,
    topic_fields,
    transactional_id_fields,
)
from fencepost.broker.faults.selectors import RecordSelector, Selectors
from fencepost.broker.fetch.fetch_sessions import Key
from fencepost.protocol.apis import BY_NAME, Api
from fencepost.protocol.messages.fetch import FetchRequest, FetchResponse
from fencepost.protocol.messages.produce import ProduceRequest

if TYPE_CHECKING:
    from fencepost.protocol.messages.offset_fetch import OffsetFetchRequest


class _View(Protocol):
    """What is needed of a broker's view of the cluster."""

    @property
    def names(self) -> Mapping[UUID, str]:
        """Of topics, by id."""
        ...


class _Sessions(Protocol):
    """What is needed of a broker's fetch sessions."""

    def requested(self, request: FetchRequest) -> Collection[Key]:
        """The partitions that a request is about, its session's too."""
        ...


class MatchNode(Protocol):
    """What is needed of the broker that receives a request."""

    @property
    def broker_id(self) -> int:
        """Its id."""
        ...

    @property
    def view(self) -> _View:
        """Names the topics."""
        ...

    @property
    def fetch_sessions(self) -> _Sessions:
        """Know what a Fetch need not name."""
        ...


MatchContext: TypeAlias = Context[MatchNode]


class _Step(Protocol):
    """What is needed of an action."""

    @property
    def needs_bytes(self) -> bool:
        """Whether it changes bytes on the wire, which only clients have."""
        ...

    def first_version(self, api: Api) -> int:
        """The first version of an API in which it is possible."""
        ...


Matcher: TypeAlias = Callable[[MatchContext, object], bool]
APIS_WITH_RECORDS: Final = ("produce", "fetch")
OF_TOPIC = 2
"""The resource type of a topic."""
FIRST_OFFSET_FETCH_OF_GROUPS = 8


def matchers_of(
    selectors: Selectors, steps: Collection[_Step], apis: Iterable[Api]
) -> Mapping[int, Matcher]:
    """The matcher of each API that a rule can hit, by the API's key.

    No request matches of a version that is too old for one of the rule's actions.

    :param steps: These actions.
    """
    if any(step.needs_bytes for step in steps):
        selectors = replace(selectors, source="clients")
    return {
        api.key: matcher_of(
            selectors,
            api,
            first_version=max(step.first_version(api) for step in steps),
        )
        for api in apis
    }


def matcher_of(selectors: Selectors, api: Api, *, first_version: int) -> Matcher:
    """Make the function that checks whether a request of an API matches.

    :param first_version: Of the API; no request of an earlier one matches.
    """
    brokers_only = None if selectors.source is None else selectors.source == "brokers"
    record = selectors.record if api.name == "produce" else None

    def matches(ctx: MatchContext, request: object) -> bool:
        if ctx.version < first_version:
            return False
        if selectors.versions is not None and ctx.version not in selectors.versions:
            return False
        if selectors.broker is not None and ctx.broker.broker_id != selectors.broker:
            return False
        if brokers_only is not None and ctx.peer.is_broker != brokers_only:
            return False
        if selectors.client_id is not None and ctx.client_id != selectors.client_id:
            return False
        return (
            _names_transactional_id(selectors, api, request)
            and _names_group_and_topic(selectors, api, ctx, request)
            and (record is None or bool(produced_partitions(selectors, ctx, request)))
        )

    return matches


# -- records ------------------------------------------------------------------------------------


def produced_partitions(
    selectors: Selectors, ctx: MatchContext, request: object
) -> frozenset[TopicPartition]:
    """The selected partitions of a Produce with a record that is selected."""
    fields = topics_of(topic_fields(BY_NAME["produce"]))
    topics = cast(ProduceRequest, request).topic_data
    return partitions_with_record(
        selectors,
        (
            (topic_name_of(fields, ctx, topic), partition.index, (partition.records or b"",))
            for topic in topics
            for partition in topic.partition_data
        ),
    )


def fetched_partitions(
    selectors: Selectors, ctx: MatchContext, response: FetchResponse
) -> frozenset[TopicPartition]:
    """The selected partitions of a Fetch response with a record that is selected."""
    fields = topics_of(topic_fields(BY_NAME["fetch"]))
    return partitions_with_record(
        selectors,
        (
            (topic_name_of(fields, ctx, topic), partition.partition_index, partition.records or ())
            for topic in response.responses
            for partition in topic.partitions
        ),
    )


# -- topics -------------------------------------------------------------------------------------


def topics_of(api_fields: TopicFields | None) -> TopicFields:
    """The fields of an API that names topics, as validation has checked."""
    assert api_fields is not None, "a rule with a topic is for an API that names topics"
    return api_fields


def topic_name_of(shape: TopicFields, ctx: MatchContext, topic: object) -> str | None:
    """The name of a topic in a request or response; None where its id is unknown."""
    if isinstance(topic, str):
        return topic
    # Only some kinds of topics have this field, as their shape says.
    if shape.resources and getattr(topic, "resource_type") != OF_TOPIC:  # noqa: B009  # as above
        return None
    name: str | None = getattr(topic, shape.name)
    topic_id: UUID | None = getattr(topic, "topic_id", None)
    if not name and topic_id is not None:
        return ctx.broker.view.names.get(topic_id)
    return name


def partition_index_of(shape: TopicFields, partition: object) -> int:
    """The index of a partition that a request names."""
    if isinstance(partition, int):
        return partition
    assert shape.index is not None
    index: int = getattr(partition, shape.index)
    return index


def topic_holders(shape: TopicFields, holder: object) -> tuple[object, ...]:
    """What has the topics: a request or a group in it, or the elements that contain them."""
    return (holder,) if shape.container is None else getattr(holder, shape.container)


def asks_for_all(shape: TopicFields, version: int, holder: object) -> bool:
    """Whether no topic is named, and so each is meant."""
    holders = topic_holders(shape, holder)
    named = [getattr(each, field) for each in holders for field in shape.request_fields]
    if shape.null_is_all and None in named:
        return True
    return version < shape.empty_is_all_below and not any(named)


def _names_topic(selectors: Selectors, api: Api, ctx: MatchContext, holder: object) -> bool:
    if selectors.topic is None:
        return True
    shape = topics_of(topic_fields(api))
    if asks_for_all(shape, ctx.version, holder):
        return True
    return any(
        name == selectors.topic
        and (selectors.partition is None or indexes is None or selectors.partition in indexes)
        for name, indexes in _topics(shape, ctx, holder)
    )


def _topics(
    shape: TopicFields, ctx: MatchContext, holder: object
) -> Iterator[tuple[str | None, Collection[int] | None]]:
    """The topics that a request names, with their partitions where it names these too."""
    if isinstance(holder, FetchRequest):
        yield from _fetched(ctx, holder)
        return
    for topic in named_topics(shape, holder):
        indexes = None
        if shape.partitions is not None:
            indexes = [partition_index_of(shape, p) for p in getattr(topic, shape.partitions)]
        yield topic_name_of(shape, ctx, topic), indexes


def named_topics(shape: TopicFields, holder: object) -> Iterator[object]:
    """The topics that a request, or a group in one, names: structs or names."""
    for each in topic_holders(shape, holder):
        for field in shape.request_fields:
            yield from getattr(each, field) or ()


def _fetched(
    ctx: MatchContext, request: FetchRequest
) -> Iterator[tuple[str | None, Collection[int]]]:
    """The partitions of a Fetch, with those of its session, which it need not name (KIP-227)."""
    for name, topic_id, index in ctx.broker.fetch_sessions.requested(request):
        known = name or (None if topic_id is None else ctx.broker.view.names.get(topic_id))
        yield known, (index,)


def shown_topics(api: Api, ctx: MatchContext, request: object) -> Iterator[str]:
    """The topics that a request names, for a reader: with a partition, such as ``orders-0``."""
    fields = topic_fields(api)
    if fields is None:
        return
    is_grouped = api.name == "offset_fetch" and ctx.version >= FIRST_OFFSET_FETCH_OF_GROUPS
    holders = cast("OffsetFetchRequest", request).groups if is_grouped else (request,)
    for holder in holders:
        for name, indexes in _topics(fields, ctx, holder):
            if name is not None and indexes is None:
                yield name
            elif name is not None:
                yield from (f"{name}-{index}" for index in indexes or ())


def shown_keys(api: Api, fields: KeyFields | None, ctx: MatchContext, request: object) -> list[str]:
    """The groups or transactional ids that a request names."""
    if api.name == "offset_fetch" and ctx.version >= FIRST_OFFSET_FETCH_OF_GROUPS:
        return [group.group_id for group in cast("OffsetFetchRequest", request).groups]
    return [] if fields is None else [key for key in keys_of(fields, request) if key]


# -- groups and transactional ids ---------------------------------------------------------------


def keys_of(shape: KeyFields, request: object) -> tuple[str, ...]:
    """The groups (or transactional ids) that a request names."""
    # Only FindCoordinator has this field, as its shape says.
    if shape.kind is not None and getattr(request, "key_type") != shape.kind:  # noqa: B009  # as above
        return ()
    one = () if shape.one is None else (getattr(request, shape.one),)
    many = () if shape.many is None else getattr(request, shape.many)
    if shape.inside is None:
        return (*one, *many)
    array, name = shape.inside
    return (*one, *many, *(getattr(each, name) for each in getattr(request, array)))


def _names_group_and_topic(
    selectors: Selectors, api: Api, ctx: MatchContext, request: object
) -> bool:
    if api.name == "offset_fetch" and ctx.version >= FIRST_OFFSET_FETCH_OF_GROUPS:
        groups = cast("OffsetFetchRequest", request).groups
        return any(
            selectors.group in (None, group.group_id) and _names_topic(selectors, api, ctx, group)
            for group in groups
        )
    if selectors.group is not None and not _names_key(group_fields(api), selectors.group, request):
        return False
    return _names_topic(selectors, api, ctx, request)


def _names_transactional_id(selectors: Selectors, api: Api, request: object) -> bool:
    wanted = selectors.transactional_id
    return wanted is None or _names_key(transactional_id_fields(api), wanted, request)


def _names_key(shape: KeyFields | None, wanted: str, request: object) -> bool:
    return shape is not None and wanted in keys_of(shape, request)


# -- validation ---------------------------------------------------------------------------------


def selector_problems(selectors: Selectors, api: Api, *, changes_responses: bool) -> Iterator[str]:
    """Why no request of an API could ever match, one line each.

    :param changes_responses: Whether the fault changes responses, and so may select a partition
        that the request does not name.
    """
    yield from _version_problems(selectors, api)
    if selectors.topic is not None and topic_fields(api) is None:
        yield f"topic: {api.title} names no topics"
    if selectors.group is not None and group_fields(api) is None:
        yield f"group: {api.title} names no group; {_listed(titles_of_apis_with_groups())} do"
    if selectors.transactional_id is not None and transactional_id_fields(api) is None:
        named = _listed(titles_of_apis_with_transactional_ids())
        yield f"transactional_id: {api.title} names no transactional id; {named} do"
    if selectors.group is not None and selectors.transactional_id is not None:
        group, transaction = group_fields(api), transactional_id_fields(api)
        if group is not None and transaction is not None and group.kind is not None:
            yield "group, transactional_id: no request names both"
    if selectors.partition is not None:
        yield from _partition_problems(selectors, api, changes_responses=changes_responses)
    if selectors.record is not None:
        yield from _record_problems(selectors.record, api)


def _version_problems(selectors: Selectors, api: Api) -> Iterator[str]:
    versions = selectors.versions
    if versions is None:
        return
    if not any(version in versions for version in range(api.min_version, api.max_version + 1)):
        yield (
            f"versions: {api.title} is served in versions {api.min_version} to "
            f"{api.max_version}, and {versions} is none of them"
        )


def _partition_problems(
    selectors: Selectors, api: Api, *, changes_responses: bool
) -> Iterator[str]:
    if selectors.topic is None:
        yield "partition: name its topic too"
    shape = topic_fields(api)
    if shape is None or shape.partitions is not None:
        return
    if shape.response_partitions is None or not changes_responses:
        yield f"partition: {api.title} names topics and no partitions; leave it out"


def _record_problems(record: RecordSelector, api: Api) -> Iterator[str]:
    if record == RecordSelector():
        yield "record: name a key, a value or a header"
    if api.name not in APIS_WITH_RECORDS:
        yield f"record: {api.title} brings no records; Produce and Fetch do"


def _listed(titles: list[str]) -> str:
    *others, last = titles
    return f"{', '.join(others)} and {last}"
