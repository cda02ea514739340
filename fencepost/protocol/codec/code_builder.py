"""The text of a function while it is being compiled from a schema; readers and writers share it."""

import struct
from typing import Any, Final

FIXED_WIDTH_CODES: Final = {
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "float64": "d",
    "bool": "?",
    "uuid": "16s",
}
"""``struct`` codes of the wire types with a fixed width."""


SLICE: Final = 5_000
"""Elements of arrays that a generator reads or writes from one ``yield`` to the next."""


class CodeBuilder:
    """Lines of Python, and the constants that they refer to.

    :param slices: Whether the function is a generator that yields after each `SLICE` elements.
    """

    def __init__(self, *, slices: bool = False) -> None:
        self.lines: list[str] = []
        self.depth = 0
        self.constants: dict[str, Any] = {"slice": SLICE}
        self._slices = slices
        self._names = 0

    def line(self, text: str) -> None:
        """Add a line at the present depth."""
        self.lines.append("    " * self.depth + text)

    def begin_slices(self) -> None:
        """Add what comes before the first element."""
        if self._slices:
            self.line("left = slice")
            self.line("if not left: yield  # makes it a generator where nothing else does")

    def end_element(self) -> None:
        """Add what follows an element: a yield, where enough were taken."""
        if self._slices:
            self.line("left -= 1")
            self.line("if not left: left = slice; yield")

    def new_variable(self, stem: str) -> str:
        """A variable that nothing else uses."""
        self._names += 1
        return f"{stem}{self._names}"

    def packer(self, code: str) -> str:
        """The name of a ``struct.Struct`` for these codes, big-endian."""
        name = f"s_{code.replace('?', 'o')}"
        self.constants[name] = struct.Struct(f">{code}")
        return name

    def constant(self, value: object) -> str:
        """The name of a value."""
        name = self.new_variable("k")
        self.constants[name] = value
        return name

    def function(self, name: str, title: str) -> Any:
        """Compile the lines, which define ``name``."""
        namespace: dict[str, Any] = dict(self.constants)
        exec(compile("\n".join(self.lines), f"<{title}>", "exec"), namespace)
        return namespace[name]
