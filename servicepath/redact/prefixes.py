"""A map of numbers of a fixed width onto themselves that keeps prefixes: two numbers share as many leading bits after it as before.

Each bit is flipped or not by a keyed hash of the bits before it (the construction of Crypto-PAn, Xu, Fan, Ammar and Moon, 2002).
That makes it one to one, and keeps every network a network and every subnet in its network.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

Range = tuple[int, int]
"""The leading bits as a number, and how many they are."""


class PrefixMap:
    """The map.

    Args:
        key: what the flips depend on, at most 64 bytes; without it nobody can undo them.
        width: bits of a number.
        apart: ranges that are mapped onto themselves as wholes (10.0.0.0/8 stays what it is: private).
        kept: ranges whose numbers stay as they are.
        subnets: ranges in which the first and last numbers stay first and last: so do network and broadcast addresses.
    """

    def __init__(
        self, key: bytes, width: int, *, apart: Iterable[Range] = (), kept: Iterable[Range] = (), subnets: Iterable[Range] = ()
    ) -> None:  # fmt: skip
        self._key = key
        self._width = width
        self._kept = frozenset(kept)
        self._subnets = frozenset(subnets)
        # A flip above a range that must stay where it is would move it.
        self._above = frozenset((bits >> (length - n), n) for bits, length in (*apart, *self._kept) for n in range(length))
        self._lengths = sorted({length for _, length in self._subnets})
        self._kept_lengths = sorted({length for _, length in self._kept})
        self._flips: dict[Range, int] = {}

    def __call__(self, number: int, length: int | None = None) -> int:
        """The number's counterpart; with ``length`` only the leading bits are mapped, and the others come back as zeros."""
        found = 0
        for n in range(self._width if length is None else length):
            bit = number >> (self._width - 1 - n) & 1
            found = found << 1 | bit ^ self._flip((number >> (self._width - n), n))
        return found if length is None else found << (self._width - length)

    def may_change(self, bits: int, length: int) -> bool:
        """Whether another key could map these leading bits to others."""
        return any(not self._stays((bits >> (length - n), n)) for n in range(length))

    def _flip(self, prefix: Range) -> int:
        found = self._flips.get(prefix)
        if found is None:
            found = self._flips[prefix] = 0 if self._stays(prefix) else self._hash(prefix)
        return found

    def _stays(self, prefix: Range) -> bool:
        bits, n = prefix
        if prefix in self._above:
            return True
        if any((bits >> (n - length), length) in self._kept for length in self._kept_lengths if length <= n):
            return True
        for length in self._lengths:
            ones = (1 << (n - length)) - 1 if length <= n else -1
            if length <= n and (bits >> (n - length), length) in self._subnets and bits & ones in (0, ones):
                return True
        return False

    def _hash(self, prefix: Range) -> int:
        bits, n = prefix
        return hashlib.blake2b(b"%d/%d" % (bits, n), key=self._key, digest_size=1).digest()[0] & 1
