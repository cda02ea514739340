"""What the Python workers of Spark take besides their tasks.

A worker runs many tasks, and collects garbage behind each. It looks at every object then, which are
the modules that it has loaded, 75,000 objects in all: that takes 10 to 20 ms, more than most tasks.
Objects that are frozen are not looked at.
"""

import gc
import sys

_frozen_modules = 0
"""How many modules were loaded when objects were frozen last."""


def freeze_loaded_modules() -> None:
    """Leave what has been loaded by now out of all later collections of this process.

    Tasks begin with it. Where no module was loaded since it does nothing, so that what tasks leave
    is not kept: no more is frozen than there are times at which modules are loaded.
    """
    global _frozen_modules  # noqa: PLW0603  # the process has one heap
    if len(sys.modules) != _frozen_modules:
        gc.freeze()
        _frozen_modules = len(sys.modules)
