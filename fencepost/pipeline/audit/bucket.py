"""What an executor does with some partitions, and how it answers."""

from collections.abc import Mapping
from typing import Final

import pyarrow as pa

from fencepost.pipeline.audit import violations
from fencepost.pipeline.audit.account import to_json
from fencepost.pipeline.audit.evidence import PartitionGround
from fencepost.pipeline.audit.examine import Key, examine, keys

ACCOUNT: Final = "account"
OUT: Final = violations.SCHEMA.append(pa.field(ACCOUNT, pa.binary()))
"""A row is a violation, or the account of a partition."""


def examine_bucket(
    batches: pa.Table,
    traces: pa.Table | None,
    ground: Mapping[Key, PartitionGround],
    rules: tuple[str, ...],
    *,
    now_ms: int,
    with_history: bool,
) -> pa.Table:
    """What an executor finds in some partitions.

    :param ground: Of these and of others.
    :param now_ms: When the audit was begun.
    :returns: `OUT`.
    """
    own = {key: ground[key] for key in keys(batches, traces) if key in ground}
    parts = []
    for each in examine(
        batches, traces, own, now_ms=now_ms, rules=rules, with_history=with_history
    ):
        found = violations.table(list(each.violations))
        none = pa.nulls(found.num_rows, pa.binary())
        parts.append(found.append_column(OUT.field(ACCOUNT), none))
        account = [{ACCOUNT: to_json(each.account)}]
        parts.append(pa.Table.from_pylist(account, schema=OUT))
    return pa.concat_tables(parts) if parts else OUT.empty_table()
