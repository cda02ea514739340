"""``min.insync.replicas`` in a cluster with eligible leader replicas (KIP-966).

Who is an eligible leader must not depend on which broker is asked, nor on a restart. So it is a
dynamic config of the whole cluster there, from the start or from the upgrade of
``eligible.leader.replicas.version`` on, and of no single broker.
"""

from collections.abc import Collection, Mapping
from typing import Final

from fencepost.broker.configs.config_def import ConfigError
from fencepost.broker.metadata.features import Levels, keeps_eligible_replicas
from fencepost.protocol.errors import ErrorCode

MIN_ISR: Final = "min.insync.replicas"


def elr_configs(
    configs: Mapping[int | None, Mapping[str, str]], levels: Levels, min_insync_replicas: str | None
) -> Mapping[int | None, Mapping[str, str]]:
    """The dynamic broker configs of a cluster with these features, given those that it has.

    :param min_insync_replicas: What the config becomes where it is not set; None changes nothing.
    """
    if min_insync_replicas is None or not keeps_eligible_replicas(levels):
        return configs
    default = configs.get(None, {})
    own = [broker for broker, each in configs.items() if broker is not None and MIN_ISR in each]
    if MIN_ISR in default and not own:
        return configs
    changed: dict[int | None, Mapping[str, str]] = {
        broker: {name: text for name, text in configs[broker].items() if name != MIN_ISR}
        for broker in own
    }
    return {**configs, **changed, None: {MIN_ISR: min_insync_replicas, **default}}


def elr_config_problem(
    broker_id: int | None, named: Collection[str], configs: Mapping[str, str]
) -> ConfigError | None:
    """Why a cluster with an ELR can't have these dynamic configs of a broker, or (None) of all.

    :param named: The configs that are set or removed, changed or not.
    """
    if MIN_ISR not in named:
        return None
    if broker_id is not None:
        message = f"Broker-level {MIN_ISR} cannot be altered while ELR is enabled."
    elif MIN_ISR not in configs:
        message = f"Cluster-level {MIN_ISR} cannot be removed while ELR is enabled."
    else:
        return None
    return ConfigError(code=ErrorCode.INVALID_CONFIG, message=message)
