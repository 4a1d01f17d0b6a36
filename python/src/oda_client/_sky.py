"""Circles on the sky, as callers give them."""

from math import atan2, cos, degrees, hypot, radians, sin
from typing import Any, Mapping, NamedTuple, Optional

# A target on the rim of a cone lies within it, for the archive as well.
EDGE = 1e-9

_EXPECTED = (
    "A cone is (right ascension, declination, radius) in degrees or quantities of astropy, or "
    "(SkyCoord, radius), not %r."
)


class Cone(NamedTuple):
    """A circle on the sky: its centre and its radius, in degrees, ICRS."""

    ra: float
    dec: float
    radius: float

    def __str__(self) -> str:
        return ",".join(map(repr, self))

    def separation(self, target: Mapping[str, Any]) -> float:
        """How far a target is from the centre, in degrees."""
        here, there = radians(self.dec), radians(target["dec"])
        turn = radians(target["ra"] - self.ra)
        across = hypot(
            cos(there) * sin(turn), cos(here) * sin(there) - sin(here) * cos(there) * cos(turn)
        )
        along = sin(here) * sin(there) + cos(here) * cos(there) * cos(turn)
        return degrees(atan2(across, along))

    def holds(self, target: Mapping[str, Any]) -> bool:
        """Whether a target lies within the circle."""
        return self.separation(target) <= self.radius + EDGE


def cone(value: Any) -> Optional[Cone]:
    """The cone that somebody gave; None if there is none, or a text that the archive has to judge."""
    if value is None:
        return None
    if isinstance(value, str):
        try:
            return Cone(*map(float, value.split(",")))
        except (TypeError, ValueError):
            return None
    try:
        *centre, radius = value
        if len(centre) == 1:
            (at,) = centre
            centre = [at.icrs.ra, at.icrs.dec]
        ra, dec = centre
        return Cone(_degrees(ra), _degrees(dec), _degrees(radius))
    except (AttributeError, TypeError, ValueError) as problem:
        raise ValueError(_EXPECTED % (value,)) from problem


def _degrees(value: Any) -> float:
    """A number of degrees, also of an astropy quantity."""
    return float(value.to_value("deg") if hasattr(value, "to_value") else value)
