"""The page at ``/``: the cluster at a glance, for a person with a browser.

One file, without frameworks and without anything from elsewhere; it does what any other user of the
control API can do.
"""

import json
from importlib.resources import files
from typing import Final

from fencepost.broker.events import Kind
from fencepost.verbs.bodies import FaultAction

_LISTS: Final = {
    '["the kinds of events"]': list(Kind),
    '["the actions of faults"]': list(FaultAction.model_fields),
    '["the actions that take no value"]': FaultAction.words(),
}
"""What the page's script has of the server's own lists, by what stands in its place in the file."""


def _page() -> str:
    text = files("fencepost.control").joinpath("page.html").read_text("utf-8")
    for place, names in _LISTS.items():
        text = text.replace(place, json.dumps(names))
    return text


PAGE: Final = _page()
POLICY: Final = (
    "default-src 'none'; connect-src 'self'; script-src 'unsafe-inline'; "
    "style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
)
"""Nothing may come from elsewhere."""
