"""No command looks for plugins of pydantic: in a large environment that takes long."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

_CODE = """
from fencepost.cli import main
code = main(["topic", "create", "t:x"])  # validated, and refused
from pydantic.plugin import _loader
print(code, _loader._plugins)
"""


@pytest.mark.parametrize(("given", "looked_for"), [(None, "None"), ("none-of-this-name", "{}")])
def test_plugins_are_looked_for_only_where_the_environment_names_some(
    given: str | None, looked_for: str
) -> None:
    environment = {k: v for k, v in os.environ.items() if k != "PYDANTIC_DISABLE_PLUGINS"}
    if given is not None:
        environment["PYDANTIC_DISABLE_PLUGINS"] = given
    done = subprocess.run(
        [sys.executable, "-c", _CODE],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        env=environment,
    )
    assert done.stdout.split()[1:] == [looked_for], done.stderr
