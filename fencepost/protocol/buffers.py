"""The one name for bytes that are passed on without a copy."""

from typing import TypeAlias

Buffer: TypeAlias = bytes | bytearray | memoryview
