"""What can go wrong with a request, for both packages."""

from typing import Any, Dict, List, Optional, Tuple, Type

PROBLEM = "urn:oda:problem:"  # prefix of the archive's problem types


class OdaError(Exception):
    """The archive did not do what was asked.

    ``status`` is the HTTP status and ``type`` the archive's name for the problem;
    both are None if there was no answer. ``errors`` lists the places of the faults, each
    with ``pointer`` and ``detail``. The text says what to do.
    """

    def __init__(
        self,
        detail: str,
        status: Optional[int] = None,
        type: Optional[str] = None,
        errors: Optional[List[Dict[str, Any]]] = None,
    ):
        super().__init__(detail)
        self.detail = detail
        self.status = status
        self.type = type
        self.errors = errors or []
        self._link: Optional[str] = None  # where a search goes on after what is damaged


class NotFound(OdaError):
    """There is no such entity, or no such version of it."""


class Conflict(OdaError):
    """Somebody else has stored, recorded or said a status since it was read.

    ``stored`` is the document as it is stored now, or the current status, or None if it
    could not be read. ``differs`` has the places at which what was sent differs from it: for
    each JSON pointer, what was sent and what is stored, None for what is missing.
    """

    def __init__(
        self,
        detail: str,
        status: Optional[int] = None,
        type: Optional[str] = None,
        errors: Optional[List[Dict[str, Any]]] = None,
    ):
        super().__init__(detail, status, type, errors)
        self.stored: Optional[Dict[str, Any]] = None
        self.differs: Dict[str, Tuple[Any, Any]] = {}


class Unreachable(OdaError, ConnectionError):
    """There was no answer from the archive."""


_CLASSES: Dict[str, Type[OdaError]] = {
    PROBLEM + "not-found": NotFound,
    PROBLEM + "metadata-mismatch": Conflict,
    PROBLEM + "precondition": Conflict,
    PROBLEM + "status-mismatch": Conflict,
}


def of_type(name: str) -> Type[OdaError]:
    """The exception for a problem type."""
    return _CLASSES.get(name, OdaError)
