"""What was done in a night, worked out with pandas from the lines of an export.

It follows the page about nights (docs/night.md) and shares no code with the archive.
"""

import json
from datetime import date as Date
from datetime import datetime, time, timedelta
from zoneinfo import ZoneInfo

import pandas as pd


def micros(text):
    """The microseconds since 1970 of a time; NA where there is none."""
    return pd.NA if text is None else pd.to_datetime(text, utc=True, format="ISO8601").value // 1000


def stamp(at):
    return (pd.Timestamp(0, tz="UTC") + pd.Timedelta(int(at), "us")).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def seconds(length):
    return round(int(length) / 1e6, 6)


def exception(text):
    """The class that a dotted name ends in, if it begins with a capital letter."""
    name = text.strip().split(".")
    if all(part.isidentifier() for part in name) and name[-1][0].isupper():
        return name[-1]
    return None


def error_of(record):
    error = record.get("error")
    if error is None:
        return None, None
    detail = error.get("detail")
    lines = (error.get("stacktrace") or "").rstrip().split("\n")
    kind = exception(lines[-1].split(":")[0])
    if kind is None and detail and ":" in detail:
        kind = exception(detail.split(":")[0])
    return kind, detail[:500] if detail else None


class Export:
    """The current versions of blocks, with their calls, and names of definitions."""

    def __init__(self, lines):
        self.versions, self.records, self.statuses = {}, {}, {}
        for line in map(json.loads, lines):
            entity = (line.get("kind"), line.get("id"))
            if "document" in line:
                line["document"] = text(line["document"])
                self.versions.setdefault(entity, []).append(line)
            elif "record" in line:
                line["record"] = text(line["record"])
                self.records.setdefault(entity, {})[line["sequence"]] = line
            elif "status" in line:
                self.statuses.setdefault(entity, []).append(line)
        self.blocks, calls = {}, []
        for entity, versions in self.versions.items():
            if entity[0] == "ebs":
                self.blocks[entity[1]] = versions[-1]
                calls += self._calls(entity, versions[-1])
        self.calls = pd.DataFrame(calls)

    def _calls(self, entity, version):
        records = self.records.get(entity, {})
        runs = version.get("runs") or []
        listed = {n for first, last in zip(runs[::2], runs[1::2]) for n in range(first, last + 1)}
        for sequence, line in records.items():
            if sequence not in listed and (line["version"] != version["version"] or line.get("came")):
                continue
            record = line["record"]
            sent, received = micros(record.get("request_sent_at")), micros(record.get("response_received_at"))
            times = [at for at in (sent, received, micros(line["on"])) if at is not pd.NA]
            status, (kind, detail) = record.get("status"), error_of(record)
            timed = sent is not pd.NA and received is not pd.NA and received >= sent
            yield {
                "eb": entity[1], "sequence": sequence, "request": record["request"], "at": times[0], "sent": sent if timed else 0,
                "received": received if timed else 0, "timed": timed, "took": received - sent if timed else 0, "type": kind, "detail": detail,
                "failed": record.get("error") is not None or (status is not None and status.upper() != "OK"),
                "telescope": version["document"].get("telescope"),
            }  # fmt: skip

    def status(self, block):
        said = self.statuses.get(("ebs", block))
        if said:
            last = max(said, key=lambda entry: (entry["at"], entry["sequence"]))
            return {"status": last["status"], "class": last.get("class"), "at": last["at"]}
        word = self.blocks[block]["document"].get("status")
        classes = {"observed": "done", "executing": "running", "failed": "failed"}
        return word and {"status": word, "class": classes.get(word.lower()), "at": None}

    def name(self, block):
        document = self.blocks[block]["document"]
        versions = self.versions.get(("sbds", document.get("sbd_ref")), [])
        number, created = document.get("sbd_version"), self.blocks[block]["created_on"]
        ran = [v for v in versions if (v["version"] == number if number else v["on"] <= created)]
        return ran[-1]["document"].get("name") if ran else None

    def night(self, date, zone, telescope=None):
        """The report, without what the blocks refer to."""
        noon = datetime.combine(Date.fromisoformat(date), time(12), ZoneInfo(zone))
        begin, end = (int(at.timestamp()) * 1_000_000 for at in (noon, noon + timedelta(days=1)))
        calls = self.calls[(self.calls["at"] >= begin) & (self.calls["at"] < end)]
        if telescope:
            calls = calls[calls["telescope"] == telescope]
        telescopes = [used(name, part) for name, part in calls.groupby("telescope", dropna=False)]
        blocks = [self._block(name, part) for name, part in calls.groupby("eb")]
        timed = calls[calls["timed"]]
        return {
            "zone": zone, "from": stamp(begin), "to": stamp(end), **tally(calls), "busy_seconds": seconds(busy(calls)),
            "idle_seconds": round(sum(one["idle_seconds"] for one in telescopes), 6),
            "telescopes": sorted(telescopes, key=lambda one: (one["telescope"] is None, one["telescope"] or "")),
            "blocks": sorted(blocks, key=lambda one: (one["first_call"], one["id"])),
            "slowest": [
                {"id": c.eb, "sequence": c.sequence, "request": c.request, "sent_at": stamp(c.sent), "seconds": seconds(c.took)}
                for c in timed.sort_values(["took", "sent", "eb", "sequence"], ascending=[False, True, True, True]).head(20).itertuples()
            ],
            "failures_by_request": failures(calls), "errors": errors(calls[calls["failed"]]), "unusual": unusual(timed),
            "notes": [], "time_lost": [],
        }  # fmt: skip

    def _block(self, name, calls):
        version, status = self.blocks[name], self.status(name)
        return {
            "id": name, "name": self.name(name), "telescope": version["document"].get("telescope"), "created_by": version["created_by"],
            "status": status, "running": bool(status) and status["class"] == "running", "first_call": stamp(calls["at"].min()),
            "last_call": stamp(calls["at"].max()), **tally(calls), "busy_seconds": seconds(busy(calls)),
        }  # fmt: skip


def text(value):
    return json.loads(value) if isinstance(value, str) else value


def tally(calls):
    return {"calls": len(calls), "failures": int(calls["failed"].sum()), "seconds_in_calls": seconds(calls["took"].sum())}


def busy(calls, until=None):
    """How long there was a call: where the running maximum of the ends leaves a gap, there was none."""
    calls = calls[calls["timed"]].sort_values("sent")
    sent, received = calls["sent"].astype("int64"), calls["received"].astype("int64")
    if until is not None:
        sent, received = sent.clip(upper=until), received.clip(upper=until)
    covered = received.cummax().shift(fill_value=0)
    return (received - sent.where(sent > covered, covered)).clip(lower=0).sum()


def used(telescope, calls):
    first, last = calls["at"].min(), calls["at"].max()
    return {
        "telescope": None if pd.isna(telescope) else telescope, "blocks": calls["eb"].nunique(), "calls": len(calls),
        "failures": int(calls["failed"].sum()), "busy_seconds": seconds(busy(calls)),
        "idle_seconds": seconds(last - first - busy(calls, last)), "first_call": stamp(first), "last_call": stamp(last),
    }  # fmt: skip


def failures(calls):
    counted = calls.groupby("request")["failed"].agg(["sum", "size"]).reset_index()
    counted = counted[counted["sum"] > 0].sort_values(["sum", "request"], ascending=[False, True])
    return [{"request": c.request, "failures": c.sum, "calls": c.size} for c in counted.rename_axis(None).itertuples(index=False, name="Counted")]


def errors(failed):
    rows = []
    for (kind, detail), part in failed.fillna({"type": "", "detail": ""}).groupby(["type", "detail"]):
        first = part.sort_values(["at", "eb", "sequence"]).iloc[0]
        rows.append({
            "type": kind or None, "detail": detail or None, "calls": len(part), "blocks": part["eb"].nunique(),
            "first": {"eb_id": first["eb"], "sequence": int(first["sequence"])},
        })  # fmt: skip
    return sorted(rows, key=lambda one: (-one["calls"], one["type"] or "", one["detail"] or ""))[:50]


def unusual(timed):
    of = timed.groupby("request")["took"]
    timed = timed.assign(median=of.transform("median"), of=of.transform("size"))
    timed = timed[(timed["of"] >= 5) & (timed["median"] > 0) & (timed["took"] >= 2 * timed["median"])]
    timed = timed.assign(ratio=timed["took"] / timed["median"])
    most = timed.sort_values(["ratio", "took", "sent", "eb", "sequence"], ascending=[False, False, True, True, True]).head(20)
    return [
        {"eb_id": c.eb, "sequence": c.sequence, "request": c.request, "sent_at": stamp(c.sent), "seconds": seconds(c.took), "median_seconds": seconds(c.median)}
        for c in most.itertuples()
    ]
