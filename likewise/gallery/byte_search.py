"""The proof of an erasure: a search for pieces of templates in all bytes of files."""

from collections.abc import Sequence
from pathlib import Path

import numpy

PIECE = 32  # bytes: a template may lie on two pages
HASHED = 22  # bits of a table that stays in the cache
Array = numpy.ndarray


def search_bytes(paths: Sequence[Path], templates: Sequence[bytes]) -> tuple[tuple[tuple[str, int], ...], int]:
    """Count templates of which a piece occurs in files; also (file, bytes read) for each.

    A template is looked for in pieces of 32 bytes, since SQLite may lay it across two pages. Eight bytes of every piece
    are looked up at every place of a file in a table of hashes; what is in it is compared in full.
    """
    search = _Pieces(templates)
    searched = []
    for path in dict.fromkeys(paths):
        total, tail = 0, b""
        with path.open("rb") as file:
            while data := file.read(1 << 22):
                total += len(data)
                whole = tail + data
                search.look(whole)
                tail = whole[-PIECE:]
        searched.append((str(path), total))
    return tuple(searched), len(search.found)


class _Pieces:
    """Pieces of templates; found: the templates of which one was seen."""

    def __init__(self, templates: Sequence[bytes]) -> None:
        self.found: set[int] = set()
        self._short: dict[bytes, int] = {}
        self._keys: dict[
            int, list[tuple[int, bytes, int]]
        ] = {}  # eight bytes -> where in which piece of which template
        for number, data in enumerate(templates):
            for start in range(0, max(len(data) - PIECE, 0) + 1, PIECE):
                piece = data[start : start + PIECE]
                if len(piece) < 8:
                    self._short[piece] = number
                elif any(piece):  # the eight with the most different bytes: files hold many zeros
                    at = max(range(len(piece) - 7), key=lambda place: len(set(piece[place : place + 8])))
                    key = int.from_bytes(piece[at : at + 8], "little")
                    self._keys.setdefault(key, []).append((at, piece, number))
        self._table = numpy.zeros(1 << HASHED, bool)
        self._table[_hashes(numpy.array(list(self._keys), numpy.uint64))] = True

    def look(self, data: bytes) -> None:
        """Look at every place of some bytes."""
        self.found.update(number for piece, number in self._short.items() if any(piece) and piece in data)
        for shift in range(8 if self._keys else 0):
            words = numpy.frombuffer(data, "<u8", max(len(data) - shift, 0) // 8, shift)
            for place in numpy.flatnonzero(self._table[_hashes(words)]).tolist():
                for at, piece, number in self._keys.get(int(words[place]), ()):
                    start = shift + 8 * place - at
                    if start >= 0 and data[start : start + len(piece)] == piece:
                        self.found.add(number)


def _hashes(words: Array) -> Array:
    return (words * numpy.uint64(0x9E3779B97F4A7C15)) >> numpy.uint64(64 - HASHED)
