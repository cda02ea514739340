"""The table: every verb of the catalogue and every kind of fault, and what it changes.

A row is done in four ways; its words on the command line stand here as a person types them.
"""

from __future__ import annotations

from typing import Final

from tests.four_ways.rows_cluster import BROKERS, LOOKING
from tests.four_ways.rows_faults import FAULTS
from tests.four_ways.rows_groups import GROUPS
from tests.four_ways.rows_records import RECORDS
from tests.four_ways.rows_tier import TIER
from tests.four_ways.rows_topics import REPLICAS, TOPICS
from tests.four_ways.rows_transactions import TRANSACTIONS

ROWS: Final = (
    *LOOKING,
    *TOPICS,
    *REPLICAS,
    *BROKERS,
    *FAULTS,
    *TIER,
    *RECORDS,
    *GROUPS,
    *TRANSACTIONS,
)
