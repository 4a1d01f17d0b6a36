"""A script works through a night, and the archive shows what came of it."""

import os
import urllib.request
from datetime import datetime, timedelta, timezone

import oda_helper
from oda_client import Archive
from oda_helper import capture_request_response as capture
from support import PATIENCE, Case, Server


@capture
def scan(n):
    return n


@capture
def read_sensor():
    raise TimeoutError("dish 17 did not answer")


def tonight():
    """The night that this test runs in, in a zone where it is not noon now."""
    now = datetime.now(timezone.utc)
    ahead = 12 if 10 <= now.hour < 14 else 0
    date = (now + timedelta(hours=ahead - 12)).date()
    return "date=%s&zone=%s" % (date, "Etc/GMT-12" if ahead else "UTC")


class ANight(Case):
    needs_server = False  # it has one of its own, which is stopped in the middle

    def setUp(self):
        super().setUp()
        self.server = Server()
        self.addCleanup(self.server.remove)
        self.server.start()
        os.environ["ODA_URL"] = self.server.url

    def test_is_seen_on_the_pages(self):
        archive = Archive(self.server.url)
        self.addCleanup(archive.close)
        field, calibrator = (archive.post("sbds", {"name": name, "telescope": "ska_mid"})["sbd_id"] for name in ("Cen A", "3C 286"))
        project = archive.post("prjs", {"obs_blocks": [{"name": "Nearby", "sbd_ids": [field, calibrator]}]})["prj_id"]

        def block(definition):
            sbi = archive.post("sbis", {"telescope": "ska_mid", "sbd_ref": definition, "sbd_version": 1})
            return oda_helper.execution_block("ska_mid", sbi["sbi_id"])

        with block(field) as good:
            scan(1)
            with self.assertRaises(TimeoutError):
                read_sensor()
        with self.assertRaises(TimeoutError), block(field) as failed:
            read_sensor()
        with block(field) as aborted:
            scan(1)
            oda_helper.end_eb("Aborted", "wind")
        child = self.script(
            """
            with oda_helper.execution_block("ska_mid") as eb_id:
                scan(1)
                print(eb_id, flush=True)
                time.sleep(600)
            """,
            wait=False,
        )
        killed = child.stdout.readline().strip()
        child.kill()
        child.wait()
        with block(calibrator) as outage:
            scan(1)
            self.server.stop()
            scan(2)
        with oda_helper.execution_block("ska_mid") as unseen:
            scan(1)
        self.server.start()
        self.assertTrue(oda_helper.flush(PATIENCE))
        self.assertTrue(oda_helper.drain(PATIENCE))

        now = {good: "Observed", failed: "Failed", aborted: "Aborted", killed: "Executing", outage: "Observed", unseen: "Observed"}
        self.assertEqual({eb_id: archive.status(eb_id)["status"] for eb_id in now}, now)
        self.assertEqual(archive.status(failed)["reason"], "TimeoutError: dish 17 did not answer")
        self.assertEqual([each["id"] for each in archive.search("ebs", class_="failed")], [failed])

        progress = archive.progress(project)
        self.assertEqual((progress["sbds_done"], progress["sbds"]), (2, 2))
        self.assertEqual(
            [(each["sbd_id"], each["sbd_done"], each["eb_id"], each["status"]) for each in progress.runs],
            [(definition, True, eb_id, now[eb_id]) for definition, eb_id in ((field, good), (field, failed), (field, aborted), (calibrator, outage))],
        )

        night = self.page("/night?" + tonight())
        for eb_id, word in now.items():
            row = next(row for row in night.split("<tr")[1:] if eb_id in row and "data-name" in row)
            self.assertIn(word, row)
            self.assertEqual('class="failed"' in row.split(">")[0], eb_id == failed, row)
        self.assertIn("Running since", self.page("/ebs/" + killed))
        self.assertIn("dish 17 did not answer", self.page("/ebs/" + failed).split("<h2")[0])

    def page(self, path):
        with urllib.request.urlopen(self.server.url + path, timeout=PATIENCE) as answer:
            return answer.read().decode()
