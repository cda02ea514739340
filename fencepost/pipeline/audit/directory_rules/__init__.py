"""The rules about log directories: each module of this package is one, and nothing else is in it.

They are as those of `fencepost.pipeline.audit.rules`, and are shown the listing of a directory.
"""

from collections.abc import Mapping
from importlib import import_module
from pkgutil import iter_modules
from typing import Final

from fencepost.pipeline.audit.directory_rule import DirectoryRule


def _discovered() -> list[DirectoryRule]:
    """The rules of the modules that are there, which may lie in a zip file on an executor."""
    modules = [import_module(f"{__name__}.{each.name}") for each in iter_modules(__path__)]
    rules: list[DirectoryRule] = [module.RULE for module in modules]
    return sorted(rules, key=lambda rule: (rule.order, rule.name))


DIRECTORY_RULES: Final[Mapping[str, DirectoryRule]] = {rule.name: rule for rule in _discovered()}
"""Every rule about directories by its name, in the order of a report."""
