"""What `make audit-dependencies` and `make sbom` say and write."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.harness.run import run
from tools.audit_dependencies import without_traceback

ROOT = Path(__file__).parents[2]


def test_of_a_traceback_only_its_reason_is_told() -> None:
    chained = (
        "Traceback (most recent call last):\n  File ...\nOSError: -2\n\n"
        "During handling of the above exception, another exception occurred:\n\n"
        "Traceback (most recent call last):\n  File ...\nConnectionError: no such host\n"
    )
    assert without_traceback(chained) == "ConnectionError: no such host\n"
    assert without_traceback(f"Found 1\n{chained}") == "Found 1\nConnectionError: no such host\n"
    for text in ("", "Found 1 known vulnerability in 1 package\n"):
        assert without_traceback(text) == text


@pytest.mark.parametrize("lock", ["run", "spark"])
def test_a_bill_of_materials_is_valid_and_has_what_is_locked(tmp_path: Path, lock: str) -> None:
    if not (ROOT / ".venv-audit" / ".installed").exists():
        pytest.skip("there is no .venv-audit, which `make sbom` installs")
    # The recipe has the tool validate what it writes, by the schema of CycloneDX.
    run(["make", "--silent", "sbom", f"SBOM={tmp_path}", f"SBOM_OF={lock}"], cwd=ROOT)
    bill = json.loads((tmp_path / f"{lock}.cdx.json").read_text())
    assert (bill["bomFormat"], bill["metadata"]["component"]["name"]) == ("CycloneDX", "fencepost")
    found = {(each["name"], each["version"]) for each in bill["components"]}
    text = (ROOT / "requirements" / f"{lock}.txt").read_text()
    assert found == set(re.findall(r"^([a-z0-9.-]+)==([^ ;]+)", text, re.MULTILINE))
    assert str(ROOT) not in json.dumps(bill)
