"""Fields of the keys and values of coordinators' records: plain, or compact with tags (KIP-482)."""

import struct

_INT8 = struct.Struct(">b")
_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_INT64 = struct.Struct(">q")


class MalformedRecord(ValueError):
    """Bytes that cannot be read as a record, or a record that its format cannot hold."""


class FieldWriter:
    """Writes fields one after the other."""

    __slots__ = ("_flexible", "_out")

    def __init__(self, *, flexible: bool) -> None:
        self._flexible = flexible
        self._out = bytearray()

    def to_bytes(self) -> bytes:
        """The bytes written so far."""
        return bytes(self._out)

    def int8(self, number: int) -> None:
        """One byte."""
        self._out += _INT8.pack(number)

    def int16(self, number: int) -> None:
        """Two bytes."""
        self._out += _INT16.pack(number)

    def int32(self, number: int) -> None:
        """Four bytes."""
        self._out += _INT32.pack(number)

    def int64(self, number: int) -> None:
        """Eight bytes."""
        self._out += _INT64.pack(number)

    def string(self, text: str) -> None:
        """A string.

        :raises MalformedRecord: When it is plain and longer than 32767 bytes.
        """
        data = text.encode()
        if self._flexible:
            self._uvarint(len(data) + 1)
        elif len(data) > 32767:
            raise MalformedRecord(f"a string of {len(data)} bytes")
        else:
            self.int16(len(data))
        self._out += data

    def nullable_string(self, text: str | None) -> None:
        """A string, or null, in a plain version.

        :raises MalformedRecord: When it is too long.
        """
        if text is None:
            self.int16(-1)
        else:
            self.string(text)

    def blob(self, data: bytes) -> None:
        """Bytes behind their length, in a plain version."""
        self.int32(len(data))
        self._out += data

    def array_size(self, size: int | None) -> None:
        """The number of elements that follow; None for a null array."""
        count = -1 if size is None else size
        if self._flexible:
            self._uvarint(count + 1)
        else:
            self.int32(count)

    def tags(self, fields: dict[int, bytes]) -> None:
        """Tagged fields by tag, in a compact version."""
        self._uvarint(len(fields))
        for tag, data in sorted(fields.items()):
            self._uvarint(tag)
            self._uvarint(len(data))
            self._out += data

    def _uvarint(self, number: int) -> None:
        while number > 0x7F:
            self._out.append(number & 0x7F | 0x80)
            number >>= 7
        self._out.append(number)


class FieldReader:
    """Reads fields one after the other.

    Each method raises ``MalformedRecord`` when the bytes end before the field does.
    """

    __slots__ = ("_at", "_data", "_flexible")

    def __init__(self, data: bytes, *, flexible: bool = False) -> None:
        self._data = data
        self._flexible = flexible
        self._at = 0

    def int8(self) -> int:
        """One byte."""
        return int(_INT8.unpack(self._read(1))[0])

    def int16(self) -> int:
        """Two bytes."""
        return int(_INT16.unpack(self._read(2))[0])

    def int32(self) -> int:
        """Four bytes."""
        return int(_INT32.unpack(self._read(4))[0])

    def int64(self) -> int:
        """Eight bytes."""
        return int(_INT64.unpack(self._read(8))[0])

    def string(self) -> str:
        """A string that is not null."""
        text = self.nullable_string()
        if text is None:
            raise MalformedRecord("a null string in a field that cannot be null")
        return text

    def nullable_string(self) -> str | None:
        """A string, or null."""
        size = self._uvarint() - 1 if self._flexible else self.int16()
        if size < 0:
            return None
        try:
            return self._read(size).decode()
        except UnicodeDecodeError as error:
            raise MalformedRecord(str(error)) from error

    def blob(self) -> bytes:
        """Bytes behind their length."""
        return self._read(self.array_size())

    def array_size(self) -> int:
        """The number of elements that follow; -1 for a null array."""
        return self._uvarint() - 1 if self._flexible else self.int32()

    def tags(self) -> dict[int, bytes]:
        """Tagged fields by tag; none in a plain version."""
        if not self._flexible:
            return {}
        return {self._uvarint(): self._read(self._uvarint()) for _ in range(self._uvarint())}

    def _uvarint(self) -> int:
        number = shift = 0
        while True:
            byte = self._read(1)[0]
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return number
            shift += 7

    def _read(self, size: int) -> bytes:
        end = self._at + size
        if size < 0 or end > len(self._data):
            raise MalformedRecord(f"{size} bytes at {self._at} of {len(self._data)}")
        data = self._data[self._at : end]
        self._at = end
        return data
