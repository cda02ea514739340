"""Why Spark failed, in one line, and whether it is for the rows of the source."""

import re
from typing import Final

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from fencepost.pipeline.load.outcomes import LoadInterrupted

FAILURES: Final = (PySparkException, Py4JError)
"""What Spark raises: the second where pyspark has no class for what the JVM threw, such as a row
that cannot be read, or a worker that died too often."""
_INTERRUPTED: Final = re.compile(rf"{LoadInterrupted.__name__}: (.+)")
_CAUSE: Final = re.compile(r"^(?:Caused by: |: )?[\w.$]+(?:Exception|Error): (.+)$", re.MULTILINE)
_FILE: Final = re.compile(r"Encountered error while reading file (\S+?)\.\s")
_OF_ROWS: Final = re.compile(
    r"(?:^|: )(\[(?:MALFORMED_RECORD_IN_PARSING|USER_RAISED_EXCEPTION)[^\n]*)", re.MULTILINE
)
"""What comes again however often it is tried. `rows` raises the second."""


def reason(failure: Exception) -> str:
    """What a task said, of all that Spark says around it; otherwise the last cause."""
    text = str(failure)
    found = _INTERRUPTED.findall(text) or _CAUSE.findall(text) or [text.strip()]
    return _at_file(text, found[-1].strip().partition("\n")[0])


def unreadable(failure: Exception) -> str | None:
    """Which row cannot be read; None where it has failed for something else."""
    text = str(failure)
    found = _OF_ROWS.search(text)
    return None if found is None else _at_file(text, found[1].strip())


def _at_file(text: str, said: str) -> str:
    file = _FILE.search(text)
    return said if file is None or file[1] in said else f"{file[1]}: {said}"
