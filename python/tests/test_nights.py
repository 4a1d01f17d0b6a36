"""Every number of a night is what pandas works out from an export of the archive."""

import json
import os
import random
import shutil
import subprocess
import unittest
import urllib.request
from datetime import datetime, timedelta, timezone
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from oda_client import Archive
from support import PATIENCE, Case, Server, binary, needs

ZONES = {None: "Europe/Amsterdam", "ska_mid": "Africa/Johannesburg", "ska_low": "Australia/Perth"}
# In Amsterdam the clocks go forward in the first of these nights, and back in the second.
NIGHTS = ("2026-03-28", "2026-10-24", "2026-06-01")
ERRORS = (
    None,
    {},
    {"detail": "wind"},
    {"detail": "tango.DevFailed: no answer", "stacktrace": "Traceback\n  line 1\n"},
    {"detail": "refused", "stacktrace": "Traceback\n  line 2\nbuiltins.ConnectionError: refused\n"},
    {"detail": "d" * 600, "stacktrace": "Traceback\nodd.Stopped\n"},
)


class MadeUp:
    """Calls on and around the nights: some overlap, some have no times, some clocks go back."""

    def __init__(self):
        self.chance = random.Random(35)

    def time(self, at):
        zone = self.chance.choice((timezone.utc, ZoneInfo("Asia/Kolkata"), timezone(timedelta(hours=-7))))
        return at.astimezone(zone).isoformat(timespec="microseconds")

    def call(self, noon):
        hours = self.chance.choice((-1, 0, 3, 8, 10, 13, 14, 15, 21, 22, 24, 25))
        sent = noon + timedelta(hours=hours, seconds=self.chance.randrange(-3, 600), microseconds=self.chance.choice((0, 1, 999_999)))
        took = timedelta(seconds=self.chance.choice((-2, 0, 0.000001, 1, 1.5, 2, 2, 2.000003, 3, 5, 40, 700, 40_000)))
        call = {"request": "control.%s" % self.chance.choice(("scan", "point", "read | wind"))}
        if self.chance.random() < 0.9:
            call["request_sent_at"] = self.time(sent)
        if self.chance.random() < 0.9:
            call["response_received_at"] = self.time(sent + took)
        if self.chance.random() < 0.3:
            call["status"] = self.chance.choice(("OK", "ok", "FAILED", None))
        if self.chance.random() < 0.3:
            call["error"] = self.chance.choice(ERRORS)
        return call

    def calls(self, most):
        noon = datetime.fromisoformat(self.chance.choice(NIGHTS) + "T12:00:00+02:00")
        return [self.call(noon) for _ in range(self.chance.randrange(1, most))]


class TheNight(Case):
    needs_server = False  # it has one of its own, with zones

    def setUp(self):
        super().setUp()
        needs("pandas")
        if not shutil.which("zstd"):
            raise unittest.SkipTest("needs zstd to read an export")
        flags = ("--zone=%s" % (zone if telescope is None else "%s=%s" % (telescope, zone)) for telescope, zone in ZONES.items())
        self.server = Server(*flags)
        self.addCleanup(self.server.remove)
        self.server.start()
        self.archive = Archive(self.server.url, user="night")
        self.addCleanup(self.archive.close)

    def test_is_what_an_export_adds_up_to(self):
        self.observe(MadeUp())
        import nights

        exported = nights.Export(self.export())
        today = datetime.now(ZoneInfo(ZONES[None])) - timedelta(hours=12)
        seen = {"errors": 0, "unusual": 0, "idle_seconds": 0}
        for date in (*NIGHTS, "2026-03-29", "2026-10-25", today.date().isoformat()):
            for telescope in ZONES:
                for zone in (None, "America/Santiago"):
                    with self.subTest(date=date, telescope=telescope, zone=zone):
                        got = self.night(date=date, telescope=telescope, zone=zone)
                        want = exported.night(date, zone or ZONES[telescope], telescope)
                        self.assertEqual(got, json.loads(json.dumps(want, default=int)))
                        for part in seen:
                            seen[part] += bool(got[part])
        for part, times in seen.items():
            self.assertGreater(times, 10, part + " is hardly ever there")

    def observe(self, made_up):
        """Blocks of three telescopes and of none, some of which have lost records in a new version."""
        for name in ("first", "second", "third"):
            if name == "first":
                definition = self.archive.post("sbds", {"name": name})
            else:
                definition = self.archive.put(dict(definition, name=name))
        for n in range(24):
            document = {"telescope": made_up.chance.choice(("ska_mid", "ska_low", "ska_mid", "est")), "request_responses": made_up.calls(25)}
            if n % 8 == 7:
                del document["telescope"]
            if n % 3:
                document["sbd_ref"] = definition["sbd_id"]
            if n % 3 == 1:
                document["sbd_version"] = made_up.chance.choice((1, 2, 3))
            if n % 4 == 1:
                document["status"] = made_up.chance.choice(("Observed", "Executing", "unheard of"))
            block = self.archive.post("ebs", document)
            if n % 5 == 2:
                self.archive.put(dict(self.archive.get(block["eb_id"]), request_responses=made_up.calls(10)))
            for call in made_up.calls(4):
                self.record(block["eb_id"], call)
            if n % 6 == 0:
                self.archive.say(block["eb_id"], "Failed", reason="wind", at="2026-10-24T%02d:00:00Z" % made_up.chance.randrange(20))
                self.archive.say(block["eb_id"], "Executing", at="2026-10-24T%02d:00:00Z" % made_up.chance.randrange(20))

    def record(self, eb_id, call):
        url = "%s/api/v1/ebs/%s/request_response" % (self.server.url, eb_id)
        request = urllib.request.Request(url, json.dumps(call).encode(), {"Content-Type": "application/json"})
        urllib.request.urlopen(request, timeout=PATIENCE).close()

    def export(self):
        path = os.path.join(self.server.folder, "export.oda.zst")
        subprocess.run([binary(), "export", "--url", self.server.url, "-o", path], check=True, capture_output=True)
        return subprocess.run(["zstd", "-dc", path], check=True, capture_output=True, text=True).stdout.splitlines()

    def night(self, **params):
        query = urlencode({name: value for name, value in params.items() if value})
        with urllib.request.urlopen("%s/api/v1/night?%s" % (self.server.url, query), timeout=PATIENCE) as answer:
            night = json.load(answer)
        for block in night["blocks"]:
            del block["references"]  # they are part of the document
        return night
