"""Header compression (RFC 7541): literals for what is sent, and a reader of what comes that remembers whole blocks.

Sent headers never use the dynamic table. Received ones may until the peer has agreed to a table of no entries; from
then on the same bytes always mean the same headers, and need to be understood only once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Generic, TypeVar, cast

from hpack import Decoder, HPACKError, OversizedHeaderListError

from serve_app.http2.frames import ConnectionFault, ErrorCode

Fields = Sequence[tuple[bytes, bytes]]
Meaning = TypeVar("Meaning")

# "The table has no entries from here on", and ":status: 200".
EMPTY_TABLE, STATUS_200 = b"\x20", b"\x88"
# Of the names and values of one block, with 32 bytes for each header (§4.1), what the peer is told; beyond twice that
# nothing more is understood.
HEADER_LIMIT = 16 * 2**10
HARD_HEADER_LIMIT = 2 * HEADER_LIMIT
_REMEMBERED, _LONGEST_REMEMBERED = 64, 1024


def _length(length: int) -> bytes:
    """Before a string, in 7 bits, and more bytes where they do not hold it (§5.1)."""
    if length < 127:
        return bytes([length])
    rest, parts = length - 127, [127]
    while rest >= 128:
        parts.append(rest % 128 + 128)
        rest //= 128
    return bytes([*parts, rest])


def literal(name: str, value: str) -> bytes:
    """A header for HEADERS, without indexing and Huffman coding (§6.2.2)."""
    return _literal_name(name) + _length(len(value)) + value.encode("ascii")


@cache  # names are the program's own
def _literal_name(name: str) -> bytes:
    return b"\0" + _length(len(name)) + name.encode("ascii")


def list_size(fields: Fields) -> int:
    """As SETTINGS_MAX_HEADER_LIST_SIZE counts it."""
    return sum(32 + len(name) + len(value) for name, value in fields)


class HeaderReader(Generic[Meaning]):
    """Reads header blocks in the order in which they come. `understand` makes of a request's fields what they mean."""

    def __init__(self, understand: Callable[[Fields], Meaning]):
        self._understand = understand
        self._decoder = Decoder(HARD_HEADER_LIMIT)
        self._has_table = True
        self._known: dict[bytes, Meaning] = {}

    def forget_table(self) -> None:
        """The peer has said that its table has no entries any more; not every peer also writes that into a block."""
        self._decoder.header_table_size = self._decoder.max_allowed_table_size = 0
        self._has_table = False

    def read(self, block: bytes) -> Meaning:
        """What a request's block means. ConnectionFault as `fields`."""
        meaning = self._known.get(block)
        if meaning is None:
            meaning = self._understand(self.fields(block))
            if not self._has_table and len(block) <= _LONGEST_REMEMBERED:
                if len(self._known) >= _REMEMBERED:
                    self._known.clear()
                self._known[block] = meaning
        return meaning

    def fields(self, block: bytes) -> Fields:
        """The fields of a block. ConnectionFault where it cannot be read: then no later one could be."""
        try:
            return cast(Fields, self._decoder.decode(block, raw=True))
        except OversizedHeaderListError:
            raise ConnectionFault(
                ErrorCode.ENHANCE_YOUR_CALM, f"headers of more than {HEADER_LIMIT:,} bytes; send fewer"
            ) from None
        except HPACKError:
            raise ConnectionFault(ErrorCode.COMPRESSION_ERROR, "the headers cannot be decompressed") from None
