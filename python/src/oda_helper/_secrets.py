"""Finds what looks like a credential, so that it is not recorded.

By name: arguments, keys, and the first of a pair, as headers are often given; also in
texts, as the repr of an object, JSON or a query has them. By form: what may stand in an
Authorization header, and passwords in addresses.
"""

import base64
import binascii
import re
from typing import Any, List, Match

MASK = "***"

# Compared without case and separators.
_WORDS = ("password", "passwd", "passphrase", "token", "secret", "credential", "authorization",
          "apikey", "accesskey", "privatekey", "cookie")  # fmt: skip
_NAMES = ("auth", "pwd", "bearer")

_TOKEN = r"[A-Za-z0-9._~+/=-]"
_BEARER = re.compile(r"\b(bearer\s+)" + _TOKEN + "{8,}", re.IGNORECASE)
_BASIC = re.compile(r"\b(basic\s+)([A-Za-z0-9+/]{4,}={0,2})", re.IGNORECASE)
_HEADER = re.compile(
    r"\b(authorization['\"]?\s*[:=,]\s*b?['\"]?)"
    r"(?:(?:bearer|basic|digest|negotiate|token|apikey)\s+[^'\"\r\n]+|" + _TOKEN + "{16,})",
    re.IGNORECASE,
)
# A name, and what follows it in quotes, or after = up to a space.
_HINTS = ("passw", "passphrase", "token", "secret", "credential", "auth", "key", "cookie", "pwd",
          "bearer")  # fmt: skip
_NAMED = re.compile(
    r"((?:password|passwd|passphrase|token|secret|credential|authorization|cookie"
    r"|(?:api|access|private)[_-]?key)[\w-]{0,50}|(?<![\w-])(?:auth|pwd|bearer))"
    r"(?:(\\{0,3}['\"]?\s?[:=]\s?[bru]?)(\\{0,3}['\"])(?:\\.|[^\\\r\n])*?(?:\3|\Z)"
    r"|=[^\s'\"&,;()\[\]{}<>]+(?=[\s'\"&]|\Z))",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r"(://[^\s/:'\"]*:)[^\s/'\"]+(?=@)")


def is_secret(name: Any) -> bool:
    """Whether an argument, a key or a header with this name is masked."""
    kind = type(name)
    if issubclass(kind, bytes):
        name = bytes(name[:200]).decode("latin-1")
    elif not issubclass(kind, str):
        return False
    if len(name) > 200:
        return False
    lower = str.lower(name).replace("_", "").replace("-", "")
    return lower in _NAMES or any(word in lower for word in _WORDS)


def is_pair(items: List[Any]) -> bool:
    """Whether this is the name of a credential with its value."""
    return len(items) == 2 and is_secret(items[0])


def masked(text: str) -> str:
    """The text without what looks like a credential."""
    lower = text.lower()
    if "authorization" in lower:
        text = _HEADER.sub(r"\1" + MASK, text)
    if "bearer" in lower:
        text = _BEARER.sub(r"\1" + MASK, text)
    if "basic" in lower:
        text = _BASIC.sub(_basic, text)
    if "://" in lower:
        text = _ADDRESS.sub(r"\1" + MASK, text)
    if ("=" in text or ":" in text) and any(hint in lower for hint in _HINTS):
        text = _NAMED.sub(_named, text)
    return text


def _named(found: Match[str]) -> str:
    name, between, quote = found.groups()
    return name + (between + quote + MASK + quote if quote else "=" + MASK)


def _basic(found: Match[str]) -> str:
    """Masks a user with a password; "basic" is also a word."""
    try:
        pair = base64.b64decode(found.group(2), validate=True)
    except binascii.Error:
        return found.group(0)
    return found.group(1) + MASK if b":" in pair else found.group(0)
