"""fencepost's own configs: those that Kafka does not have, in the format of Kafka's tables.

They stand here, apart from Kafka's, from the day they have their effect; until then they are
unknown names and refused like any other.
"""

from typing import Final

BROKER: Final = ""
TOPIC: Final = ""
SYNONYMS: Final[dict[str, str]] = {}
"""The broker config that a topic config takes its default from."""
