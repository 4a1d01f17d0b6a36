"""Reads and writes an observation archive.

    from oda_client import Archive

    archive = Archive("http://archive.example:8080")
    sbd = archive.get("sbd-1k5v3r8m0q")
    sbd["name"] = "first light"
    sbd = archive.put(sbd)

It needs only the standard library. To record what a script does with the telescope, use
oda_helper, which comes with it: that one keeps records while the archive is unavailable,
this one raises an exception. docs/python.md is for its users.

Modules: _archive has the operations, _sending sends and repeats requests, _words knows
kinds and how values are written in a query, _types has what callers may give, _sky knows
cones, _listing is what lists are, _tables makes tables of them, _block is what a notebook
shows.
"""

from oda_helper._errors import Conflict, NotFound, OdaError, Unreachable

from ._archive import Archive
from ._block import Block
from ._listing import Found, Listing, Progress, Tally
from ._types import Kind

__all__ = [
    "Archive", "Block", "Conflict", "Found", "Kind", "Listing", "NotFound", "OdaError", "Progress",
    "Tally", "Unreachable",
]  # fmt: skip
