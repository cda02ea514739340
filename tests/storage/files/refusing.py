from __future__ import annotations

import re

import pytest


def fails_with(error: int) -> pytest.RaisesExc[OSError]:
    """Expect an `OSError` of that errno."""
    return pytest.raises(OSError, match=re.escape(f"[Errno {error}]"))
