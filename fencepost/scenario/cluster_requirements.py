"""Whether a cluster that is there already is such a one as a scenario takes."""

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from fencepost.client.client import Client
from fencepost.client.errors import KafkaClientError
from fencepost.protocol.apis import BY_KEY, BY_NAME, NOT_SERVED, find_release, release_ceilings
from fencepost.protocol.messages.describe_configs import DescribeConfigsResponse
from fencepost.scenario.actions.any_request import named_api, to_request
from fencepost.scenario.actions.context import InvalidAction
from fencepost.verbs.answers.cluster import ClusterState
from fencepost.verbs.bodies import NewTopicBody
from fencepost.verbs.methods import AsyncVerbs
from fencepost.verbs.remote_async import AsyncRemote
from fencepost.verbs.serving import ClusterBody

_BROKER_RESOURCE: Final = 4
_CLIENT_ID: Final = "fencepost-scenario"


class RequirementsNotMet(Exception):
    """The cluster is another one than the scenario takes. The text is one line."""


async def check_requirements(
    wanted: ClusterBody,
    control: str,
    *,
    created: Collection[NewTopicBody] = (),
    token: str | None = None,
) -> None:
    """See that a cluster is such a one, as far as it tells: brokers, clock, configs, versions.

    :param control: The URL of its control API.
    :param created: Topics that it must not have, as the scenario creates them.
    :param token: What that needs where other machines can reach it.
    :raises RequirementsNotMet: When it is not.
    :raises VerbError: When it cannot be asked.
    """
    remote = AsyncRemote(control, token=token)
    try:
        verbs = AsyncVerbs(remote)
        state = await verbs.cluster()
        problems = [
            *_state_problems(wanted, state),
            *(await _topic_problems(created, verbs)),
            *(await _broker_problems(wanted, state)),
        ]
    finally:
        remote.close()
    if problems:
        raise RequirementsNotMet(f"the cluster at {remote.url} does not fit: {'; '.join(problems)}")


def _state_problems(wanted: ClusterBody, state: ClusterState) -> Iterator[str]:
    if len(state.brokers) != wanted.brokers:
        yield f"it has {len(state.brokers)} brokers, and {wanted.brokers} are wanted"
    elif (ids := tuple(sorted(each.id for each in state.brokers))) != wanted.ids:
        yield f"its brokers are {_listed(ids)}, and {_listed(wanted.ids)} are wanted"
    if state.clock.mode != wanted.clock:
        yield f"its clock is {state.clock.mode}, and a {wanted.clock} one is wanted"
    for name, level in wanted.features.items():
        if state.features.get(name, 0) != level:
            yield f"its {name} is {state.features.get(name, 0)}, and {level} is wanted"
    if state.dialect != wanted.dialect:
        yield f"its dialect is {state.dialect or 'none'}, and {wanted.dialect or 'none'} is wanted"
    if wanted.seed is not None and state.seed != wanted.seed:
        yield f"its seed is {state.seed}, and {wanted.seed} is wanted"


async def _topic_problems(created: Collection[NewTopicBody], verbs: AsyncVerbs) -> list[str]:
    if not created:
        return []
    there = {each.name for each in await verbs.topics()}
    return [
        f"it has the topic {each.name}, which the scenario creates (--reset forgets it first)"
        for each in created
        if each.name in there
    ]


def _listed(ids: tuple[int, ...]) -> str:
    return ", ".join(map(str, ids))


async def _broker_problems(wanted: ClusterBody, state: ClusterState) -> list[str]:
    """What brokers that run tell of their configs, and the first of them of its versions."""
    running = [each for each in state.brokers if each.state == "running"]
    if not running:
        return []
    first = running[0]
    addresses = {each.id: (each.host, each.port) for each in running}
    found: list[str] = []
    async with Client(f"{first.host}:{first.port}", client_id=_CLIENT_ID) as client:
        try:
            client.add_addresses(addresses)
            for broker_id in sorted({first.id, *(addresses.keys() & wanted.broker_configs.keys())}):
                found += await _config_problems(wanted, client, broker_id)
            versions = await (await client.broker(first.id)).versions()
        except KafkaClientError as error:
            return [f"broker {first.id} does not answer: {error}"]
    return found + list(_version_problems(wanted, versions))


async def _config_problems(wanted: ClusterBody, client: Client, broker_id: int) -> list[str]:
    expected = {**wanted.configs, **wanted.broker_configs.get(broker_id, {})}
    configs = await _configs(client, broker_id, tuple(expected))
    where = f" at broker {broker_id}" if broker_id in wanted.broker_configs else ""
    return [
        f"{key} is {configs.get(key)}{where}, and {value} is wanted"
        for key, value in expected.items()
        if configs.get(key) != value
    ]


async def _configs(client: Client, broker: int, keys: tuple[str, ...]) -> dict[str, str | None]:
    if not keys:
        return {}
    api = BY_NAME["describe_configs"]
    resource = {
        "resource_type": _BROKER_RESOURCE,
        "resource_name": str(broker),
        "configuration_keys": list(keys),
    }
    connection = await client.broker(broker)
    version = await connection.best_version(api)
    request = to_request(api, version, {"resources": [resource]})
    answer: DescribeConfigsResponse = await connection.ask_any(api, version, request)
    return {each.name: each.value for result in answer.results for each in result.configs}


def _version_problems(wanted: ClusterBody, versions: dict[int, tuple[int, int]]) -> Iterator[str]:
    try:
        ceilings = {**_release_versions(wanted.like_kafka), **_named_versions(wanted.api_max)}
    except (ValueError, InvalidAction) as error:
        yield str(error)
        return
    for key, highest in ceilings.items():
        _, served = versions.get(key, (0, NOT_SERVED))
        if served != highest:
            title = BY_KEY[key].title
            yield f"it serves {title} up to version {served}, and {highest} is wanted"


def _release_versions(release: str | None) -> dict[int, int]:
    """The highest version of each API by its key."""
    if release is None:
        return {}
    ceilings = release_ceilings(find_release(release))
    return {BY_NAME[name].key: highest for name, highest in ceilings.items()}


def _named_versions(api_max: Mapping[str, int]) -> dict[int, int]:
    return {named_api(name).key: highest for name, highest in api_max.items()}
