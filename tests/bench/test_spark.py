"""Without Spark the benchmarks of the pipeline are left out, as others are without their tools."""

from __future__ import annotations

import pytest

from bench import spark, tools
from fencepost.pipeline import session
from fencepost.pipeline.requirements import CannotRunError


def test_what_is_missing_is_told_as_of_other_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    def need() -> None:
        raise CannotRunError("pyspark is not installed")

    monkeypatch.setattr(session, "require_packages", need)
    with pytest.raises(tools.Missing, match="pyspark is not installed"), spark.session("local"):
        pytest.fail("there is none")
