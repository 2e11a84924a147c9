from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

_READ_SIZE = 1 << 18


class PacketError(Exception):
    pass


class ByteReader:
    """A growing buffer with a position. `receive(n)` returns at most n bytes, or b"" at the end of the stream.

    Positions stay valid until `compact()`, so that a caller can cut out what it has read, except within `passed_on`.
    """

    def __init__(self, data: bytes = b"", receive: Callable[[int], bytes] | None = None) -> None:
        self.buffer = bytearray(data)
        self.position = 0
        self._receive = receive
        self._write: Callable[[memoryview], object] | None = None

    def compact(self) -> None:
        del self.buffer[: self.position]
        self.position = 0

    @contextmanager
    def passed_on(self, write: Callable[[memoryview], object]) -> Iterator[None]:
        """Passes the bytes read in this context to `write`. They leave the buffer before more are received, so that a
        column of any size takes only the memory of one receive."""
        self.compact()
        self._write = write
        try:
            yield
            self._pass_on(write)
        finally:
            self._write = None

    def _pass_on(self, write: Callable[[memoryview], object]) -> None:
        with memoryview(self.buffer) as buffer, buffer[: self.position] as read:
            write(read)
        self.compact()

    @property
    def pending(self) -> int:
        return len(self.buffer) - self.position

    def need(self, count: int) -> None:
        missing = self.position + count - len(self.buffer)
        if missing > 0 and self._write is not None:
            self._pass_on(self._write)
        while missing > 0:
            chunk = self._receive(max(missing, _READ_SIZE)) if self._receive else b""
            if not chunk:
                raise EOFError("the stream ended inside a packet")
            self.buffer += chunk
            missing -= len(chunk)

    def skip(self, count: int) -> None:
        # A long value that is passed on need not be in the buffer as a whole.
        while self._write is not None and count > _READ_SIZE:
            self.need(_READ_SIZE)
            self.position += _READ_SIZE
            count -= _READ_SIZE
        self.need(count)
        self.position += count

    def take(self, count: int) -> bytes:
        self.need(count)
        start = self.position
        self.position = start + count
        return bytes(self.buffer[start : self.position])

    def byte(self) -> int:
        self.need(1)
        value = self.buffer[self.position]
        self.position += 1
        return value

    def varint(self) -> int:
        value = shift = 0
        while True:
            octet = self.byte()
            value |= (octet & 0x7F) << shift
            if octet < 0x80:
                return value
            shift += 7
            if shift > 63:
                raise PacketError("a variable-length integer is longer than 64 bits")

    def uint64(self) -> int:
        return int.from_bytes(self.take(8), "little")

    def string(self, limit: int = 1 << 20) -> str:
        return self.raw_string(limit).decode("utf-8", "surrogateescape")

    def raw_string(self, limit: int = 1 << 20) -> bytes:
        length = self.varint()
        if length > limit:
            raise PacketError(f"a string of {length} bytes exceeds the limit of {limit}")
        return self.take(length)

    def skip_strings(self, count: int) -> None:
        """Skips length-prefixed strings. This is the hot loop of every block, so it works on local variables."""
        done = 0
        while done < count:
            done += self._skip_buffered_strings(count - done)
            if done < count:
                self.skip(self.varint())
                done += 1

    def _skip_buffered_strings(self, count: int) -> int:
        buffer, position, end = self.buffer, self.position, len(self.buffer)
        for index in range(count):
            start = position
            if position + 10 > end:
                self.position = start
                return index
            length = buffer[position]
            position += 1
            if length >= 0x80:
                length &= 0x7F
                shift = 7
                while True:
                    octet = buffer[position]
                    position += 1
                    length |= (octet & 0x7F) << shift
                    shift += 7
                    if octet < 0x80 or shift > 63:
                        break
            position += length
            if position > end:
                self.position = start
                return index
        self.position = position
        return count
