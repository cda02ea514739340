"""The rules of an audit: each module of this package is one, and nothing else is in it.

A rule's module has a function, `check`, and says in `RULE` what it is. `check` is shown all that is
known of a partition, and yields what breaks the rule. It does no I/O and needs no Spark.
"""

from collections.abc import Mapping
from importlib import import_module
from pkgutil import iter_modules
from typing import Final

from fencepost.pipeline.audit.rule import Rule


def _discovered() -> list[Rule]:
    """The rules of the modules that are there, which may lie in a zip file on an executor."""
    modules = [import_module(f"{__name__}.{each.name}") for each in iter_modules(__path__)]
    rules: list[Rule] = [module.RULE for module in modules]
    return sorted(rules, key=lambda rule: (rule.needs_trace, rule.order, rule.name))


RULES: Final[Mapping[str, Rule]] = {rule.name: rule for rule in _discovered()}
"""Every rule by its name, in the order of a report: first the logs, then the traces."""
