"""An ExecutionBlock as a notebook shows it: a small table with its failures."""

from html import escape
from typing import Any, Dict, List, Tuple

MOST_FAILURES = 20
MOST_TEXT = 300


class Block(Dict[str, Any]):
    """The document of an ExecutionBlock: a dict that a notebook shows as a table."""

    def _repr_html_(self) -> str:
        calls = [call for call in _list(self.get("request_responses")) if isinstance(call, dict)]
        bad = [(place, call) for place, call in enumerate(calls, 1) if failed(call)]
        metadata = self.get("metadata")
        metadata = metadata if isinstance(metadata, dict) else {}
        about: List[Tuple[str, Any]] = [
            ("telescope", self.get("telescope")),
            ("scheduling block", self.get("sbi_ref") or self.get("sbd_ref")),
            ("version", metadata.get("version")),
            ("created by", metadata.get("created_by")),
            ("created on", metadata.get("created_on")),
            ("calls", "%d, %d of them failed" % (len(calls), len(bad))),
        ]
        if calls:
            about.append(("first call", calls[0].get("request_sent_at")))
            about.append(
                (
                    "last call",
                    calls[-1].get("response_received_at") or calls[-1].get("request_sent_at"),
                )
            )
        rows = [
            "<tr><th>%s</th><td>%s</td></tr>" % (name, _cell(value))
            for name, value in about
            if value is not None
        ]
        html = "<table><caption>ExecutionBlock %s</caption>%s</table>" % (
            _cell(self.get("eb_id")),
            "".join(rows),
        )
        return html + _failures(bad) if bad else html


def _failures(bad: List[Tuple[int, Dict[str, Any]]]) -> str:
    rows = ["<tr><th>call</th><th>sent</th><th>request</th><th>status</th><th>error</th></tr>"]
    for place, call in bad[:MOST_FAILURES]:
        error = call.get("error")
        said = error.get("detail", error) if isinstance(error, dict) else error
        cells = (place, call.get("request_sent_at"), call.get("request"), call.get("status"), said)
        rows.append("<tr>%s</tr>" % "".join("<td>%s</td>" % _cell(cell) for cell in cells))
    shown = "the first %d of them" % MOST_FAILURES if len(bad) > MOST_FAILURES else "all of them"
    return "<table><caption>%d failed, %s</caption>%s</table>" % (len(bad), shown, "".join(rows))


def _cell(value: Any) -> str:
    text = "" if value is None else str(value)
    return escape(text if len(text) <= MOST_TEXT else text[:MOST_TEXT] + "…")


def _list(value: Any) -> List[Any]:
    return value if isinstance(value, list) else []


def failed(record: Dict[str, Any]) -> bool:
    """Whether a call has failed: it has a status other than OK, or an error."""
    status = record.get("status")
    wrong = status is not None and not (isinstance(status, str) and status.upper() == "OK")
    return wrong or record.get("error") is not None
