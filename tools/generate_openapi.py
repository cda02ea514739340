"""Write fencepost/control/openapi.json from the catalogue: ``python -m tools.generate_openapi``.

tests/control/test_openapi_file.py fails when the file is not what this would write.
"""

import json
from pathlib import Path
from typing import Any, Final

from fencepost.control.openapi import description

TARGET: Final = Path(__file__).resolve().parent.parent / "fencepost" / "control" / "openapi.json"


def render() -> str:
    """The whole file: a line for each path and for each schema."""
    document = description()
    schemas = {"schemas": _Lines(document["components"]["schemas"])}
    return f"{_written({**document, 'paths': _Lines(document['paths']), 'components': schemas})}\n"


class _Lines(dict[str, Any]):
    """An object of JSON that is written with a line for each field."""


def _written(value: object) -> str:
    if not isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    fields = [f"{_written(name)}:{_written(each)}" for name, each in value.items()]
    begin, between, end = ("{\n", ",\n", "\n}") if isinstance(value, _Lines) else ("{", ",", "}")
    return f"{begin}{between.join(fields)}{end}"


if __name__ == "__main__":
    TARGET.write_text(render(), "utf-8")
