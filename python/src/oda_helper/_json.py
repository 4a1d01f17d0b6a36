"""JSON in which numbers keep their spelling.

The archive returns a document as it was written, ``0.35e9`` and decimals of thirty digits
included. A document that is read here, changed and stored again must not change in any
other place.
"""

import json
from typing import Any, List, Union

_text = json.JSONEncoder(ensure_ascii=False).encode


class Number(float):
    """A number that Python would spell differently. It is used like any float."""

    spelling: str

    def __new__(cls, spelling: str) -> "Number":
        made = super().__new__(cls, spelling)
        made.spelling = spelling
        return made

    def __reduce__(self) -> Any:
        return Number, (self.spelling,)


def _number(spelling: str) -> float:
    plain = float(spelling)
    return plain if repr(plain) == spelling else Number(spelling)


def _integer(spelling: str) -> Union[int, Number]:
    try:
        return Number(spelling) if spelling == "-0" else int(spelling)
    except ValueError:  # it has more digits than Python reads, usually 4300
        return Number(spelling)


_decode = json.JSONDecoder(parse_float=_number, parse_int=_integer).decode


def read(text: Union[str, bytes, bytearray]) -> Any:
    """The value that a JSON text describes; raises ValueError if it describes none."""
    return _decode(text if isinstance(text, str) else bytes(text).decode("utf-8"))


def write(value: Any) -> bytes:
    """A value as JSON; raises ValueError or TypeError if it cannot be written."""
    try:
        return _written(value).encode("utf-8")
    except RecursionError:
        raise ValueError("the document contains itself, or is nested too deeply") from None


def _written(value: Any) -> str:
    if not _spelled(value):
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    parts: List[str] = []
    _write(value, parts)
    return "".join(parts)


def _spelled(value: Any) -> bool:
    """Whether a number in the value has a spelling of its own."""
    if isinstance(value, dict):
        return any(map(_spelled, value.values()))
    if isinstance(value, (list, tuple)):
        return any(map(_spelled, value))
    return type(value) is Number


def _write(value: Any, parts: List[str]) -> None:
    if type(value) is Number:
        parts.append(value.spelling)
    elif isinstance(value, dict):
        before = "{"
        for key, member in value.items():
            if not isinstance(key, str):  # as json writes it
                (key,) = json.loads(json.dumps({key: None}))
            parts.append(before + _text(key) + ":")
            _write(member, parts)
            before = ","
        parts.append("}" if value else "{}")
    elif isinstance(value, (list, tuple)):
        before = "["
        for item in value:
            parts.append(before)
            _write(item, parts)
            before = ","
        parts.append("]" if value else "[]")
    else:
        parts.append(json.dumps(value, ensure_ascii=False, allow_nan=False))
