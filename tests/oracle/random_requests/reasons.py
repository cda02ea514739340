"""Why an answer may differ from a real Kafka's, with ``--conformance apache``.

docs/conformance.md shows this list. An answer that differs for no reason of it is a bug.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from tests.oracle.random_requests.twins import Difference


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Answers of these APIs may differ at these paths."""

    api: str
    """A pattern of the API's whole name."""
    path: str
    """A pattern of the whole path to the field; paths name the fields from the outside in."""
    why: str
    """A phrase for a reader of docs/conformance.md."""

    def is_of(self, api: str) -> bool:
        """Whether answers of an API may differ so."""
        return re.fullmatch(self.api, api) is not None

    def covers(self, api: str, difference: Difference) -> bool:
        """Whether this is why."""
        return self.is_of(api) and re.fullmatch(self.path, difference.path) is not None


REASONS: Final = (
    Reason(
        api=".*",
        path=r".*\[order\]",
        why="the order of what a real broker keeps in hash maps",
    ),
    Reason(
        api="api_versions",
        path="(api_keys|supported_features|finalized_features|finalized_features_epoch)",
        why="what is not served is not advertised: later kinds of groups, and more",
    ),
    Reason(
        api="describe_configs",
        path="results.configs.documentation",
        why="the texts that describe configs are fencepost's own",
    ),
    Reason(
        api="describe_quorum",
        path="topics.partitions.(leader_epoch|high_watermark|current_voters.log_end_offset)",
        why="how long the metadata log is, and how often its leader was elected",
    ),
    Reason(
        api="describe_quorum",
        path="nodes.listeners",
        why="the controller has a listener with `--controller-port` alone",
    ),
    Reason(
        api="describe_log_dirs",
        path="results.(total|usable)_bytes",
        why="the size of the disk, and what is left of it",
    ),
    Reason(
        api="create_topics|update_features|alter_client_quotas|(incremental_)?alter_configs",
        path=".*error_message",
        why="which of several problems is named, where a real broker keeps them in a hash map",
    ),
    Reason(
        api="describe_configs|create_topics",
        path=r".*configs\.(value|config_source|synonyms.*)",
        why="the configs that the Kafka of the comparison was started with",
    ),
)


def reason_of(api: str, difference: Difference) -> Reason | None:
    """Why two answers differ, None for a bug that is not known."""
    return next((each for each in REASONS if each.covers(api, difference)), None)
