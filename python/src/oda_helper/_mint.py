"""Identifiers that are made without the archive.

The form is SKA's ADR-129, as the archive itself mints it: the type, a hyphen, and
in Crockford's base 32 the milliseconds since 2026-01-07, a generator number of 10
bits and 11 random bits.
"""

import os
import random
import threading
import time
from typing import Callable

_EPOCH = 1767744000000  # 2026-01-07T00:00:00Z in Unix milliseconds
_GENERATOR_BITS = 10
_RANDOM_BITS = 11
_DIGITS = "0123456789abcdefghjkmnpqrstvwxyz"


class Minter:
    """Makes identifiers and never repeats one, even if the clock is set back."""

    def __init__(self, clock: Callable[[], float] = time.time):
        self._clock = clock
        self._random = random.SystemRandom()
        # Nobody assigns generator numbers to notebooks, so a random one is the
        # least likely to be in use elsewhere. The process id is added because
        # forked children share the random number and must differ.
        self._base = self._random.getrandbits(_GENERATOR_BITS)
        self._last = -1
        self.after_fork()

    def after_fork(self) -> None:
        """Makes the minter usable in a forked child, even if other threads were using it."""
        self._generator = (self._base + os.getpid()) % (1 << _GENERATOR_BITS)
        self._lock = threading.RLock()

    def next(self, prefix: str) -> str:
        """A new identifier that begins with prefix and a hyphen."""
        with self._lock:
            at = max(int(self._clock() * 1000) - _EPOCH, self._last + 1, 0)
            self._last = at
        number = (at << _GENERATOR_BITS | self._generator) << _RANDOM_BITS
        return prefix + "-" + encode(number | self._random.getrandbits(_RANDOM_BITS))


def encode(number: int) -> str:
    """Writes a number in Crockford's base 32, without leading zeros."""
    text = ""
    while True:
        number, digit = divmod(number, 32)
        text = _DIGITS[digit] + text
        if not number:
            return text
