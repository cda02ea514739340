"""What a fuzzed cluster has: a client's own, and what schemathesis may harm.

In a module of its own, as importing schemathesis takes half a second of each worker.
"""

from __future__ import annotations

from typing import Final

SAFE: Final = "safe"
"""The client's topic."""
FUZZED: Final = "fuzzed"
"""A topic that is there, most of the time: half of what names any topic names this one."""
CLIENTS_BROKERS: Final = ("1", "2")
FUZZED_BROKER: Final = 3
"""The one that is stopped, cut off and so on in place of those that the client works with."""
