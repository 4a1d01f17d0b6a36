"""What a checker of types accepts and refuses. It is not run: test_types checks it.

A line that mypy should refuse and does not is an "ignore" too many, which is an error as well.
"""

from datetime import datetime
from typing import Any, Dict, List

from oda_client import Archive, Found, Kind, Listing, Tally


def accepted(archive: Archive, place: Any, kinds: List[Kind]) -> None:
    ids: Listing[str] = archive.search("sbds", fields="id", q="light", where=["/a = 1"], sort="-id")
    documents: List[Dict[str, Any]] = list(archive.search("ebs", fields="document", limit=5))
    found: Found = archive.search("prjs", cone=(1, 2.5, 0.1), created_after=datetime.now(), user=None)
    names: List[str] = [target["target"] for target in found.targets()]
    archive.search("sbis", cone=(place, 0.1), ref="sbd-1", ref_version=1, telescope="ska_mid")
    for kind in kinds:
        archive.query(kind, user="a", user_match_type="contains", last_modified_before="2026-01-01")
    archive.changes(kind=kinds)
    archive.search("ebs", status="observed", class_="done")
    archive.say("eb-1", "rained out", class_="stopped", at=datetime.now(), previous=None, kind="eb")
    statuses: Listing[Dict[str, Any]] = archive.statuses("eb-1", limit=5)
    calls: Listing[Dict[str, Any]] = archive.calls(outcome="failed", from_="2026-01-01", to=datetime.now(), longer_than=2.5)
    tally: Tally = archive.tally("error", eb="eb-1", device="SKA001")
    archive.note("wind", about=["eb-1#17", {"kind": "sbds", "id": "x"}], lost=2400.0, lost_to="weather")
    archive.search("notes", about="eb-1", level="problem", from_=datetime.now(), withdrawn=True)
    print(ids, documents, names, statuses, calls, tally.counts.to_pandas())


def refused(archive: Archive) -> None:
    archive.search("sbds", colour="red")  # type: ignore[call-overload]
    archive.search("sbdz")  # type: ignore[call-overload]
    archive.search("sbds", sort="name")  # type: ignore[call-overload]
    archive.search("sbds", fields="all")  # type: ignore[call-overload]
    archive.search("ebs", class_="finished")  # type: ignore[call-overload]
    archive.search("ebs", state="done")  # type: ignore[call-overload]
    archive.say("eb-1", "Observed", class_="finished")  # type: ignore[arg-type]
    archive.say("eb-1", "Observed", because="rain")  # type: ignore[call-arg]
    archive.note("wind", level="bad")  # type: ignore[arg-type]
    archive.note("wind", lost="40m")  # type: ignore[arg-type]
    archive.say("eb-1", 3)  # type: ignore[arg-type]
    archive.search("sbds", cone=(1, 2, 3, 4))  # type: ignore[call-overload]
    archive.search("sbds", fields="id").targets()  # type: ignore[attr-defined]
    archive.calls(outcome="bad")  # type: ignore[arg-type]
    archive.tally("function", eb="eb-1")  # type: ignore[arg-type]
    archive.query("sbds", colour="red")  # type: ignore[call-arg]
    archive.query("sbds", q="light")  # type: ignore[call-arg]
    archive.query("sbds", user_match_type="like")  # type: ignore[arg-type]
    archive.query("sbds", created_after=5)  # type: ignore[arg-type]
    archive.post("blocks")  # type: ignore[arg-type]
    archive.get("sbd-1", kind="definitions")  # type: ignore[arg-type]
    archive.changes(kind=["sbdz"])  # type: ignore[list-item]
