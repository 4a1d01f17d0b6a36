"""The words of the interface: kinds, identifiers, and values in a query."""

from datetime import date, datetime, timedelta, timezone
from enum import Enum
from typing import Any, Dict, Iterable, List, Mapping, Optional, Tuple

# The collections, with the prefix of identifiers. The identifier of a document is looked
# for in this order: older documents of the first two name their SBDefinition in sbd_id, too.
KINDS = {"notes": "note", "ebs": "eb", "sbis": "sbi", "prjs": "prj", "sbds": "sbd"}

_COLLECTIONS = {prefix: kind for kind, prefix in KINDS.items()}
_GIVE_KIND = "Give its kind: kind= one of sbds, sbis, ebs, prjs, notes."


def collection(kind: str) -> str:
    """The collection of a kind, which is given as sbds or sbd."""
    found = _COLLECTIONS.get(kind, kind)
    if found not in KINDS:
        raise ValueError(
            "There is no kind %r. The kinds are sbds, sbis, ebs, prjs and notes." % (kind,)
        )
    return found


def kind_of(identifier: str, kind: Optional[str]) -> str:
    """The collection of an identifier, by its prefix unless it is given."""
    if not isinstance(identifier, str) or not identifier:
        raise ValueError("An identifier is a text such as sbd-1k5v3r8m0q, not %r." % (identifier,))
    if kind is not None:
        return collection(kind)
    found = _COLLECTIONS.get(identifier.partition("-")[0])
    if found is None:
        raise ValueError(
            "The identifier %s does not tell what it is of. %s" % (identifier, _GIVE_KIND)
        )
    return found


def identity(document: Mapping[str, Any], kind: Optional[str]) -> Tuple[str, str]:
    """The collection and the identifier of a document."""
    kinds = list(KINDS) if kind is None else [collection(kind)]
    for each in kinds:
        found = document.get(KINDS[each] + "_id")
        if isinstance(found, str) and found:
            return each, found
    names = " or ".join(KINDS[each] + "_id" for each in kinds)
    raise ValueError(
        "The document has no identifier in %s. Put one in, or use post, for which the archive "
        "chooses one." % names
    )


def subject(about: Any) -> Dict[str, Any]:
    """What a note is about, as it stands in the note.

    It is given as an identifier, after which #17 names a call of a block and @2 a version,
    or as the members themselves.
    """
    if isinstance(about, Mapping):
        return dict(about)
    if not isinstance(about, str):
        raise ValueError("A note is about an identifier such as eb-1k5v3r8m0q, not %r." % (about,))
    rest, _, sequence = about.partition("#")
    rest, _, version = rest.partition("@")
    kind, _, identifier = rest.rpartition("/")
    found: Dict[str, Any] = {"kind": kind_of(identifier, kind or None), "id": identifier}
    for name, number in ("version", version), ("sequence", sequence):
        if number:
            found[name] = int(number)
    return found


def query(values: Mapping[str, Any]) -> List[Tuple[str, str]]:
    """The parameters of a query. None is left out; a list is given several times.

    A name that is a word of Python has a _ behind it.
    """
    found: List[Tuple[str, str]] = []
    for name, value in values.items():
        several = value if isinstance(value, (list, tuple, set, frozenset)) else [value]
        found += [(name.rstrip("_"), written(each)) for each in several if each is not None]
    return found


def written(value: Any) -> str:
    """A value as the archive reads it in a query. A time without a zone is in UTC."""
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, timedelta):
        return "%.6f" % value.total_seconds()
    if hasattr(value, "to_datetime"):  # a Time of astropy
        value = value.to_datetime(timezone=timezone.utc)
    if isinstance(value, datetime):
        if value.tzinfo is not None:
            value = value.astimezone(timezone.utc).replace(tzinfo=None)
        return str(value.isoformat()) + "Z"
    return value.isoformat() if isinstance(value, date) else str(value)


def differences(sent: Any, stored: Any, at: str = "") -> Dict[str, Tuple[Any, Any]]:
    """Where two documents differ: for each JSON pointer, both values."""
    if not (isinstance(sent, Mapping) and isinstance(stored, Mapping)):
        return {} if sent == stored else {at: (sent, stored)}
    found: Dict[str, Tuple[Any, Any]] = {}
    for key in _keys(sent, stored):
        pointer = "%s/%s" % (at, str(key).replace("~", "~0").replace("/", "~1"))
        found.update(differences(sent.get(key), stored.get(key), pointer))
    return found


def _keys(*documents: Mapping[str, Any]) -> Iterable[str]:
    return dict.fromkeys(key for document in documents for key in document)
