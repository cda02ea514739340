"""Every verb, once: its names, its method and path, and the names of its models.

A module for each subject has its verbs as rows.
"""

from types import MappingProxyType
from typing import Final

from fencepost.verbs.catalogue.cluster import CLUSTER
from fencepost.verbs.catalogue.faults import FAULTS
from fencepost.verbs.catalogue.groups import GROUPS
from fencepost.verbs.catalogue.observations import OBSERVATIONS
from fencepost.verbs.catalogue.partitions import PARTITIONS
from fencepost.verbs.catalogue.topics import TOPICS
from fencepost.verbs.catalogue.transactions import TRANSACTIONS
from fencepost.verbs.catalogue.verb import PATH_TYPES, Method, Shape, Verb

__all__ = ("CATALOGUE", "PATH_TYPES", "VERBS", "Method", "Shape", "Verb")

CATALOGUE: Final[tuple[Verb, ...]] = (
    *CLUSTER,
    *TOPICS,
    *PARTITIONS,
    *GROUPS,
    *TRANSACTIONS,
    *FAULTS,
    *OBSERVATIONS,
)
VERBS: Final = MappingProxyType({verb.name: verb for verb in CATALOGUE})
"""By name."""
