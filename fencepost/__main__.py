"""``python -m fencepost`` is the ``fencepost`` command."""

import sys

from fencepost.cli import main

sys.exit(main())
