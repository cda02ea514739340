"""The page at ``/``: the cluster at a glance, for a person with a browser.

One file, without frameworks and without anything from elsewhere; it does what any other user of the
control API can do.
"""

import json
from importlib.resources import files
from typing import Final

from fencepost.broker.events import Kind

_KINDS: Final = '["the kinds of events"]'
PAGE: Final = (
    files("fencepost.control")
    .joinpath("page.html")
    .read_text("utf-8")
    .replace(_KINDS, json.dumps(list(Kind)))
)
POLICY: Final = (
    "default-src 'none'; connect-src 'self'; script-src 'unsafe-inline'; "
    "style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
)
"""Nothing may come from elsewhere."""
