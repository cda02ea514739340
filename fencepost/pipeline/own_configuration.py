"""What Spark is configured with by others, before there is a JVM that could be asked."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

_JARS: Final = "spark.jars"
"""All of its settings begin so: the jars themselves, and packages of Maven's to be fetched."""
_FOLDER: Final = "SPARK_CONF_DIR"
_ARGUMENTS: Final = "PYSPARK_SUBMIT_ARGS"
_IN_FILE: Final = re.compile(r"^\s*spark\.jars\b", re.MULTILINE)
_IN_ARGUMENTS: Final = re.compile(r"--(jars|packages)\b|\bspark\.jars\b")


def names_jars(configs: Mapping[str, str]) -> bool:
    """Whether jars are named by a session's own configuration, or by whoever set Spark up."""
    if any(name.startswith(_JARS) for name in configs):
        return True
    if _IN_ARGUMENTS.search(os.environ.get(_ARGUMENTS, "")):
        return True
    try:
        content = (_folder() / "spark-defaults.conf").read_text(errors="replace")
    except OSError:
        return False
    return _IN_FILE.search(content) is not None


def _folder() -> Path:
    chosen = os.environ.get(_FOLDER)
    if chosen:
        return Path(chosen)
    from pyspark.find_spark_home import _find_spark_home

    return Path(_find_spark_home()) / "conf"
