"""Rules that no request could ever meet, or that say nothing, told in one line."""

from collections.abc import Iterable, Iterator
from typing import assert_never

from fencepost.broker.core.errors import ControllerError
from fencepost.broker.faults.request_fields import (
    GROUPS,
    TOPICS,
    TRANSACTIONAL_IDS,
    throttled_since,
)
from fencepost.broker.faults.rules import (
    Action,
    Corrupt,
    Delay,
    Disconnect,
    Drop,
    FaultRule,
    Refuse,
    StaleMetadata,
    Throttle,
)
from fencepost.protocol.apis import BY_NAME
from fencepost.protocol.errors import ErrorCode


def validate_rule(rule: FaultRule) -> None:
    """Let a rule pass that some request may meet.

    :raises ControllerError: INVALID_REQUEST for any other.
    """
    problem = next(_problems(rule), None)
    if problem is not None:
        raise ControllerError(ErrorCode.INVALID_REQUEST, problem)


def _problems(rule: FaultRule) -> Iterator[str]:
    yield from _version_problems(rule)
    yield from _selector_problems(rule)
    yield from _action_problems(rule, rule.action)


def _version_problems(rule: FaultRule) -> Iterator[str]:
    api, versions = rule.api, rule.versions
    if versions is None:
        return
    if not any(version in versions for version in range(api.min_version, api.max_version + 1)):
        yield (
            f"versions: {api.title} is served in versions {api.min_version} to "
            f"{api.max_version}, and {versions} is none of them"
        )


def _selector_problems(rule: FaultRule) -> Iterator[str]:
    title, name = rule.api.title, rule.api.name
    if rule.topic is not None and name not in TOPICS:
        yield f"topic: {title} names no topics"
    if rule.group is not None and name not in GROUPS:
        yield f"group: {title} names no group; {_titles(GROUPS)} do"
    if rule.transactional_id is not None and name not in TRANSACTIONAL_IDS:
        named = _titles(TRANSACTIONAL_IDS)
        yield f"transactional_id: {title} names no transactional id; {named} do"
    if rule.group is not None and rule.transactional_id is not None:
        yield "group, transactional_id: no request names both"
    if rule.partition is not None and rule.topic is None:
        yield "partition: name its topic too"
    if rule.partition is not None and name in TOPICS and TOPICS[name].partitions is None:
        # These tell of partitions that they are not asked for, and a fault may be about that.
        tells = TOPICS[name].response_partitions is not None
        if not (tells and isinstance(rule.action, Refuse | StaleMetadata)):
            yield f"partition: {title} names topics and no partitions; leave it out"


def _action_problems(rule: FaultRule, action: Action) -> Iterator[str]:
    title, name = rule.api.title, rule.api.name
    match action:
        case Refuse(code):
            if code == ErrorCode.NONE:
                yield "action: error: NONE is no error"
            if rule.topic is not None and name in TOPICS and TOPICS[name].response_field is None:
                yield f"topic: {title} has no error for one topic, only for all; leave it out"
        case Throttle():
            yield from _throttle_problems(rule)
        case Corrupt():
            if name not in ("produce", "fetch"):
                records = "Produce and Fetch, which bring records"
                yield f"action: corrupt is for {records}; {title} does not"
        case StaleMetadata():
            if name != "metadata":
                yield f"action: stale_metadata is for Metadata, not for {title}"
        case Delay() | Disconnect() | Drop():
            pass
        case _:
            assert_never(action)


def _throttle_problems(rule: FaultRule) -> Iterator[str]:
    api, since = rule.api, throttled_since(rule.api)
    if since is None:
        yield f"action: throttle: answers to {api.title} have no throttle_time_ms"
    elif rule.versions is not None and not any(
        version in rule.versions for version in range(since, api.max_version + 1)
    ):
        yield (
            f"action: throttle: answers to {api.title} have throttle_time_ms from version "
            f"{since} on, and versions says {rule.versions}"
        )


def _titles(names: Iterable[str]) -> str:
    *others, last = (BY_NAME[name].title for name in names)
    return f"{', '.join(others)} and {last}"
