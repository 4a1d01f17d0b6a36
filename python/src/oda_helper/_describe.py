"""Turns any Python value into something that can be recorded, within bounds.

Arguments that are JSON stay JSON, and values of well-known types (_values) become what
they stand for. Everything else becomes text: its repr, cut to a bound. Values of the
program are never changed, iterated, awaited or asked for anything but their repr; only
containers and those types are looked into, since their repr would show the credentials in
them. A repr that fails, recurses forever or is huge does no harm. What looks like a
credential is masked (_secrets).
"""

import os
from collections import ChainMap, UserDict, deque
from collections.abc import MappingView
from itertools import islice
from types import MappingProxyType
from typing import Any, Dict, FrozenSet, List, Optional, Set, Tuple

from . import _secrets, _values
from ._secrets import MASK, is_secret

MAX_TEXT = 64 << 10  # characters of one value
MAX_CHARACTERS = 256 << 10  # characters of all arguments of a call
MAX_VALUES = 10000  # values that are inspected in one call
MAX_ARGUMENTS = 1000
MAX_DEPTH = 20
MAX_BITS = 256  # bits of an integer that is written as a number

_PLAIN = frozenset((type(None), bool, float, complex, type(Ellipsis), type(NotImplemented)))
_BRACKETS: Dict[type, Tuple[str, str]] = {
    list: ("[", "]"),
    tuple: ("(", ")"),
    set: ("{", "}"),
    frozenset: ("frozenset({", "})"),
    dict: ("{", "}"),
}
_BUILT_IN = tuple(_BRACKETS)
# Other mappings may be slow to read, as files are, and are not read.
_MAPPINGS = (MappingProxyType, UserDict, ChainMap, type(os.environ))


def _like(kind: type) -> Optional[type]:
    """The built-in container that a value of this type is written like, if it is one."""
    if kind in _BRACKETS:
        return kind
    try:
        if issubclass(kind, _BUILT_IN):
            base = next(base for base in _BUILT_IN if issubclass(kind, base))
            # A tuple with names is not like others: see _values, and its repr.
            named = base is tuple and (hasattr(kind, "_fields") or hasattr(kind, "n_fields"))
            return None if named else base
        if issubclass(kind, _MAPPINGS):
            return dict
        return list if issubclass(kind, (deque, MappingView)) else None
    except Exception:
        return None  # a class that misbehaves


def _held(kind: type, like: Any, value: Any) -> Tuple[int, List[Any]]:
    """How many items a container has, and those that may be inspected.

    They are copied at once, since another thread may change the container. No method of a
    class that is derived from a built-in container is called.
    """
    if issubclass(kind, dict):
        return dict.__len__(value), list(islice(dict.items(value), MAX_VALUES))
    if like is dict:
        items = value.items()
        return len(items), [(key, item) for key, item in islice(items, MAX_VALUES)]
    if not issubclass(kind, like):
        return len(value), list(islice(value, MAX_VALUES))
    return like.__len__(value), list(islice(like.__iter__(value), MAX_VALUES))


def clean(text: str) -> str:
    """The text without credentials, and without lone surrogates, which JSON cannot have."""
    text = _secrets.masked(text)
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
        return text
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace").decode("utf-8")


def cut(text: str, limit: int) -> str:
    """The text, or its beginning and its length."""
    if len(text) <= limit:
        return clean(text)
    return clean("%s... (%d characters)" % (text[:limit], len(text)))


def text(value: Any, limit: int = MAX_TEXT) -> str:
    """The repr of a value, at most about limit characters."""
    try:
        writer = _Writer(limit)
        writer.write(value, 0)
        return clean("".join(writer.parts))
    except Exception as problem:
        return _failed(value, problem)


def _failed(value: Any, problem: Exception) -> str:
    return "<%s: its repr failed with %s>" % (type(value).__name__, type(problem).__name__)


class _Writer:
    """Writes the repr of a value piece by piece, until the bound is reached."""

    def __init__(self, limit: int):
        self.parts: List[str] = []
        self._left = limit
        self._values = MAX_VALUES
        self._open: Set[int] = set()  # containers being written

    def _add(self, piece: str) -> None:
        if len(piece) > self._left:
            piece = "%s... (%d characters)" % (piece[: max(self._left, 0)], len(piece))
        self._left -= len(piece)
        self.parts.append(piece)

    def write(self, value: Any, depth: int) -> None:
        kind = type(value)
        self._values -= 1
        if kind in _PLAIN:
            self._add(repr(value))
        elif kind is int:
            bits = value.bit_length()
            self._add(repr(value) if bits <= 8192 else "<int of %d bits>" % bits)
        elif kind is str or kind is bytes or kind is bytearray:
            # Cut a huge text before taking its repr, and mask it before it is escaped.
            if len(value) <= self._left:
                self._add(repr(_secrets.masked(value) if kind is str else value))
            else:
                piece = value[: max(self._left, 0)]
                piece = repr(_secrets.masked(piece) if kind is str else piece)
                self.parts.append("%s... (%d long)" % (piece, len(value)))
                self._left = 0
        else:
            like = _like(kind)
            if like is None:
                self._other(value, depth)
            else:
                self._container(kind, like, value, depth)

    def _other(self, value: Any, depth: int) -> None:
        known = _values.plain(value)
        if known is _values.UNKNOWN:
            self._add(_repr(value))
        elif id(value) in self._open or depth >= MAX_DEPTH:
            self._add("...")
        else:
            self._open.add(id(value))
            self.write(known, depth + 1)
            self._open.discard(id(value))

    def _container(self, kind: type, like: type, value: Any, depth: int) -> None:
        opening, closing = _BRACKETS[like]
        if id(value) in self._open or depth >= MAX_DEPTH:
            self._add(opening + "..." + closing)
            return
        try:
            count, some = _held(kind, like, value)
        except Exception:  # it misbehaves
            self._add(_repr(value))
            return
        if not count and like in (set, frozenset):
            self._add(like.__name__ + "()")
            return
        self._open.add(id(value))
        self._add(opening)
        if like is not dict and _secrets.is_pair(some):
            some[1] = MASK
        for i, item in enumerate(some):
            if i:
                self._add(", ")
            if self._left <= 0 or self._values <= 0:
                self._add("... (%d more)" % (count - i))
                break
            if like is dict:
                self.write(item[0], depth + 1)
                self._add(": ")
                if is_secret(item[0]):
                    self._add(repr(MASK))
                    continue
                item = item[1]
            self.write(item, depth + 1)
        else:
            if count > len(some):
                self._add(", ... (%d more)" % (count - len(some)))
            elif like is tuple and len(some) == 1:
                self._add(",")
        self._add(closing)
        self._open.discard(id(value))


def _repr(value: Any) -> str:
    try:
        return repr(value)
    except Exception as problem:
        return _failed(value, problem)


class _NotPlain(Exception):
    """A value is too large, too deep or recursive to stay JSON."""


class _Plainer:
    """Turns the arguments of one call into JSON."""

    def __init__(self) -> None:
        self._values = MAX_VALUES
        self._characters = MAX_CHARACTERS
        self._open: Set[int] = set()

    def argument(self, value: Any) -> Any:
        """The value as JSON if possible, otherwise as text."""
        values, characters = self._values, self._characters
        try:
            return self._plain(value, 0)
        except _NotPlain:
            # What the failed attempt used is returned to the budget.
            self._values, self._characters = values, characters
            self._open.clear()
            return self._text(value)

    def _text(self, value: Any) -> str:
        written = text(value, max(256, min(MAX_TEXT, self._characters)))
        self._characters -= len(written)
        return written

    def _plain(self, value: Any, depth: int) -> Any:
        kind = type(value)
        self._values -= 1
        if self._values < 0 or self._characters < 0 or depth > MAX_DEPTH:
            raise _NotPlain
        if value is None or kind is bool:
            return value
        # Compare types instead of using isinstance, which asks a lazy value for
        # its class.
        if issubclass(kind, str):
            # This includes an enumeration of strings, which is recorded as its
            # value.
            return self._string(str.__str__(value))
        if issubclass(kind, int):
            number = int.__index__(value)
            self._characters -= 8
            return number if number.bit_length() <= MAX_BITS else self._text(value)
        if issubclass(kind, float):
            real = float.__float__(value)
            self._characters -= 8
            return real if real - real == 0 else repr(real)
        like = _like(kind)
        if like is list or like is tuple or like is dict:
            return self._container(kind, like, value, depth)
        known = _values.plain(value)
        if known is _values.UNKNOWN:
            return self._text(value)
        if id(value) in self._open:
            raise _NotPlain
        self._open.add(id(value))
        plain = self._plain(known, depth + 1)
        self._open.discard(id(value))
        return plain

    def _string(self, value: str) -> str:
        value = cut(value, MAX_TEXT)
        self._characters -= len(value)
        return value

    def _container(self, kind: type, like: type, value: Any, depth: int) -> Any:
        plain: Any
        if id(value) in self._open:
            raise _NotPlain
        try:
            count, items = _held(kind, like, value)
        except Exception:  # it misbehaves
            raise _NotPlain from None
        if count > self._values:
            raise _NotPlain
        self._open.add(id(value))
        if like is dict:
            plain = self._object(items, depth)
        else:
            if _secrets.is_pair(items):
                items[1] = MASK
            plain = [self._plain(item, depth + 1) for item in items]
        self._open.discard(id(value))
        return plain

    def _object(self, items: List[Tuple[Any, Any]], depth: int) -> Dict[str, Any]:
        plain = {}
        for key, item in items:
            if not issubclass(type(key), str):
                raise _NotPlain
            secret = is_secret(key)
            plain[self._string(str.__str__(key))] = MASK if secret else self._plain(item, depth + 1)
        if len(plain) != len(items):
            raise _NotPlain
        return plain


def arguments(
    args: Tuple[Any, ...], kwargs: Dict[str, Any], secret: FrozenSet[int] = frozenset()
) -> Dict[str, Any]:
    """The arguments of a call as JSON; secret has the positions to mask."""
    plainer = _Plainer()
    positional = [
        MASK if i in secret else plainer.argument(value)
        for i, value in enumerate(args[:MAX_ARGUMENTS])
    ]
    if len(args) > MAX_ARGUMENTS:
        positional.append("... (%d more)" % (len(args) - MAX_ARGUMENTS))
    named = {
        cut(key, 256): MASK if is_secret(key) else plainer.argument(value)
        for key, value in islice(kwargs.items(), MAX_ARGUMENTS)
    }
    if len(kwargs) > MAX_ARGUMENTS:
        named["..."] = "(%d more)" % (len(kwargs) - MAX_ARGUMENTS)
    return {"args": positional, "kwargs": named}
