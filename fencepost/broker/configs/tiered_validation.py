"""Which configs a tiered topic may have (KIP-405, KIP-950): the rules of Apache Kafka 4.3.1.

Each function raises `InvalidConfig`, in Kafka's words, where configs contradict each other.
"""

from collections.abc import Mapping
from typing import Final

from fencepost.broker.configs.config_def import InvalidConfig, Value, has_leader_epochs
from fencepost.storage.log.config import INHERITED

_UNLIMITED: Final = -1
_DISABLED: Final = (
    "Tiered Storage functionality is disabled in the broker. "
    "Topic cannot be configured with remote log storage."
)
_POLICY: Final = (
    "Remote log storage only supports topics with cleanup.policy=delete or "
    "cleanup.policy being an empty list."
)
_DISABLED_WITHOUT_DELETE: Final = (
    "It is invalid to disable remote storage without deleting remote data. If you want to keep the "
    "remote data and turn to read only, please set "
    "`remote.storage.enable=true,remote.log.copy.disable=true`. If you want to disable remote "
    "storage and delete all remote data, please set "
    "`remote.storage.enable=false,remote.log.delete.on.disable=true`."
)
_COPY_DISABLED: Final = (
    "When `remote.log.copy.disable` is set to true, the `{local}` and `{total}` must be set to the "
    "identical value because there will be no more logs copied to the remote storage."
)
_PAIRS: Final = (
    ("retention.bytes", "local.retention.bytes"),
    ("retention.ms", "local.retention.ms"),
)


def validate_remote_storage(values: Mapping[str, Value], *, tiered: bool) -> None:
    """Require that a topic with these configs may be tiered.

    :param values: All of its configs.
    :param tiered: Whether the broker serves tiered storage.
    """
    if not tiered:
        raise InvalidConfig(_DISABLED)
    if values["cleanup.policy"] not in ((), ("delete",)):
        raise InvalidConfig(_POLICY)
    version = values["message.format.version"]
    if not (isinstance(version, str) and has_leader_epochs(version)):
        raise InvalidConfig(
            "Remote log storage needs leader epochs, which message.format.version has from 0.11 on"
        )
    if values["check.expected.offsets"] and values["check.expected.offsets.scope"] == "key":
        raise InvalidConfig(
            "check.expected.offsets.scope=key does not go with remote.storage.enable=true: the "
            "keys of records that are only in the tier are not known"
        )
    for total, local in _PAIRS:
        validate_local_retention(local, values[local], total, values[total])
    if values["remote.log.copy.disable"]:
        for total, local in _PAIRS:
            if values[local] not in (INHERITED, values[total]):
                raise InvalidConfig(_COPY_DISABLED.format(local=local, total=total))


def validate_local_retention(local: str, kept: Value, total: str, limit: Value) -> None:
    """Require that local retention is at most the retention of the whole log.

    :param local: Name of the config whose value is ``kept``.
    :param total: Name of the config whose value is ``limit``.
    """
    assert isinstance(kept, int)
    assert isinstance(limit, int)
    if limit == _UNLIMITED or kept == INHERITED:
        return
    invalid = f"Invalid value {kept} for configuration {local}: "
    if kept == _UNLIMITED:
        raise InvalidConfig(f"{invalid}Value must not be -1 as {total} value is set as {limit}.")
    if kept > limit:
        raise InvalidConfig(f"{invalid}Value must not be more than {total} property value: {limit}")


def validate_remote_storage_disable(values: Mapping[str, Value]) -> None:
    """Require that remote data are deleted where tiering is switched off."""
    if not values["remote.log.delete.on.disable"]:
        raise InvalidConfig(_DISABLED_WITHOUT_DELETE)
