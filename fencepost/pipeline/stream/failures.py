"""Why a query failed, in one line."""

from __future__ import annotations

import re
from typing import Final

_PLAN: Final = "=== Streaming Query ==="
"""What follows is for who debugs Spark."""
_TERMINATED: Final = re.compile(r"^\[STREAM_FAILED\].*? terminated with exception: ", re.DOTALL)
_REASON: Final = re.compile(
    r"\nReason: (.*?)\.?(?:\nThis could be|\nwith consumer group|\Z)", re.DOTALL
)
"""Of a KafkaIllegalStateException: what was lost, between advice and guesses."""
_CALLED: Final = re.compile(r"^An error occurred while calling \S+\n: ")
"""What pyspark puts before an exception of the JVM that it has no class for."""
_PACKAGE: Final = re.compile(r"^(?:[a-z]\w*\.)+(?=[A-Z])")


def explain(message: str) -> str:
    """The cause of a failure, from the text of the exception."""
    text = _CALLED.sub("", message.partition(_PLAN)[0])
    text = _TERMINATED.sub("", text).strip()
    lost = _REASON.search(text)
    if lost is not None:
        return f"data loss: {' '.join(lost[1].split())}"
    first = text.partition("\n")[0]
    return _PACKAGE.sub("", first) or "Spark does not say why"
