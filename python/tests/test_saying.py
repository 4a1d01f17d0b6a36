"""What a script says of its block, and how that is delivered."""

import asyncio
import enum
import os
import signal
import subprocess
import threading
import time
from datetime import datetime, timezone
from unittest import mock

import oda_helper
from oda_helper import _saying, _spool
from oda_helper import capture_request_response as capture
from proxy import Proxy
from support import NOBODY, PATIENCE, Case, binary, free_port, wait_until
from test_delivery import Gateway, problem
from test_outage import _repoint, numbers


@capture
def scan(n):
    return n


class Saying(Case):
    def statuses(self, eb_id):
        """What was said of a block, the first first."""
        return self.server.get("/ebs/%s/status/history?limit=1000" % eb_id)["statuses"][::-1]

    def said(self, eb_id):
        return [(each["status"], each["reason"]) for each in self.statuses(eb_id)]


class ABlockOfStatements(Saying):
    def test_says_what_comes_of_it_and_records_its_calls(self):
        outer = oda_helper.create_eb()
        begun = datetime.now(timezone.utc)
        with oda_helper.execution_block(telescope="ska_mid") as eb_id:
            self.assertEqual(os.environ["EB_ID"], eb_id)
            scan(1)
        self.assertEqual(os.environ["EB_ID"], outer)
        scan(2)
        self.flushed()
        self.assertEqual(self.server.get("/ebs/" + eb_id)["telescope"], "ska_mid")
        self.assertEqual(numbers(self.server.records(eb_id)), [1])
        self.assertEqual(numbers(self.server.records(outer)), [2])
        first, last = self.statuses(eb_id)
        self.assertEqual((first["status"], first["class"], last["status"], last["class"]), ("Executing", "running", "Observed", "done"))
        stamps = [datetime.strptime(each["at"], "%Y-%m-%dT%H:%M:%S.%f%z") for each in (first, last)]
        self.assertTrue(begun <= stamps[0] <= stamps[1] <= datetime.now(timezone.utc))

    def test_leaves_no_current_block_if_there_was_none(self):
        with oda_helper.execution_block():
            pass
        self.assertNotIn("EB_ID", os.environ)

    def test_fails_with_the_exception_that_leaves_it(self):
        class Odd(Exception):
            def __str__(self):
                raise ValueError

        for error, reason in [
            (ValueError("no beam"), "ValueError: no beam"),
            (OSError("a\nb\x1b[31m"), "OSError: a\nb [31m"),
            (KeyError("password='sesame'"), "password='***'"),
            (RuntimeError("\udcff"), r"RuntimeError: \udcff"),
            (Odd(), "Odd: (its text failed with ValueError)"),
            (RuntimeError("é" * 3000), "é... (3014 characters)"),
        ]:
            with self.subTest(reason), self.assertRaises(type(error)) as raised:
                with oda_helper.execution_block() as eb_id:
                    raise error
            self.assertIs(raised.exception, error)
            self.flushed()
            (_, (status, said)) = self.said(eb_id)
            self.assertEqual(status, "Failed")
            self.assertIn(reason, said)
            self.assertLessEqual(len(said), 2000)

    def test_is_aborted_if_the_script_is_stopped(self):
        for error in (KeyboardInterrupt(), SystemExit(0), asyncio.CancelledError()):
            with self.subTest(error), self.assertRaises(type(error)):
                with oda_helper.execution_block() as eb_id:
                    raise error
            self.flushed()
            self.assertEqual([status for status, _ in self.said(eb_id)], ["Executing", "Aborted"])

    def test_keeps_what_the_script_has_said_itself(self):
        with self.assertRaises(ValueError):
            with oda_helper.execution_block() as eb_id:
                oda_helper.end_eb("Suspended", reason="clouds")
                raise ValueError
        self.flushed()
        self.assertEqual(self.said(eb_id), [("Executing", None), ("Suspended", "clouds")])

    def test_may_be_in_another_one(self):
        with oda_helper.execution_block() as outer:
            scan(1)
            with self.assertRaises(ValueError):
                with oda_helper.execution_block() as inner:
                    scan(2)
                    raise ValueError
            scan(3)
        self.flushed()
        self.assertEqual(numbers(self.server.records(outer)), [1, 3])
        self.assertEqual(numbers(self.server.records(inner)), [2])
        self.assertEqual([status for status, _ in self.said(outer)], ["Executing", "Observed"])
        self.assertEqual([status for status, _ in self.said(inner)], ["Executing", "Failed"])

    def test_loses_no_calls_if_another_one_outlasts_it(self):
        """As of threads or tasks that each have one: it is wrong, and nothing is lost."""
        before = oda_helper.create_eb()
        first, second = oda_helper.execution_block(), oda_helper.execution_block()
        one, two = first.__enter__(), second.__enter__()
        with self.assertLogs("oda_helper", "WARNING") as logs:
            first.__exit__(None, None, None)
        self.assertIn("%s ends before %s" % (one, two), logs.output[0])
        scan(1)
        second.__exit__(None, None, None)
        self.assertEqual(os.environ["EB_ID"], before)
        self.flushed()
        self.assertEqual(numbers(self.server.records(two)), [1])
        for eb_id in (one, two):
            self.assertEqual([status for status, _ in self.said(eb_id)], ["Executing", "Observed"])

    def test_is_not_ended_by_a_forked_child(self):
        process = self.script(
            """
            with oda_helper.execution_block() as eb_id:
                child = os.fork()
                if child == 0:
                    scan(1)
                    sys.exit()
                assert os.waitpid(child, 0)[1] == 0
            print(eb_id)
            """,
            PYTHONWARNINGS="ignore",  # Python 3.12 warns about forks with threads
        )
        eb_id = process.out.strip()
        self.assertEqual([status for status, _ in self.said(eb_id)], ["Executing", "Observed"])
        self.assertEqual(numbers(self.server.records(eb_id)), [1])

    def test_waits_for_no_archive(self):
        down = free_port()
        os.environ["ODA_URL"] = "http://127.0.0.1:%d" % down
        with oda_helper.execution_block("ska_low") as eb_id:
            scan(1)
            begun = time.monotonic()
        self.assertLess(time.monotonic() - begun, 1)
        self.assertEqual(oda_helper.lag(), 3)
        before = datetime.now(timezone.utc)
        self.fresh()
        (folder,) = self.sessions()
        _repoint(folder, down, self.server.port)
        self.assertTrue(oda_helper.drain(PATIENCE))
        self.assertEqual([status for status, _ in self.said(eb_id)], ["Executing", "Observed"])
        for each in self.statuses(eb_id):
            self.assertLess(datetime.strptime(each["at"], "%Y-%m-%dT%H:%M:%S.%f%z"), before)
        self.assertEqual(self.sessions(), [])

    def test_notices_nothing_of_a_bad_address(self):
        os.environ["ODA_URL"] = "ftp://archive"
        with self.assertLogs("oda_helper", "WARNING"):
            with oda_helper.execution_block():
                self.assertEqual(scan(1), 1)
        self.assertFalse(oda_helper.flush(0))


class TheEndOfABlock(Saying):
    def test_is_said_as_often_as_the_script_wants(self):
        class Outcome(enum.Enum):
            GOOD = "Observed"

        eb_id = oda_helper.create_eb()
        scan(1)
        oda_helper.end_eb(Outcome.GOOD)
        scan(2)  # is recorded nevertheless
        status = oda_helper.status()
        self.assertEqual((status.recording, status.ended), (True, "Observed"))
        self.assertIn("%s has ended: Observed." % eb_id, str(status))
        oda_helper.end_eb("Failed", ValueError("no beam"))
        self.flushed()
        self.assertEqual(self.said(eb_id), [("Observed", None), ("Failed", "ValueError: no beam")])
        self.assertEqual(numbers(self.server.records(eb_id)), [1, 2])
        oda_helper.create_eb()
        self.assertIsNone(oda_helper.status().ended)

    def test_that_cannot_be_said_is_logged(self):
        for env, status, said in [
            ({}, "Observed", "EB_ID is not set. The status 'Observed' was not recorded."),
            ({"EB_ID": "eb-1", "ODA_URL": "ftp://x"}, "Observed", "ODA_URL must begin with"),
            ({"EB_ID": "eb-1"}, "", "1 to 64 characters"),
            ({"EB_ID": "eb-1"}, "a\nb", "1 to 64 characters"),
            ({"EB_ID": "eb-1"}, "a" * 65, "1 to 64 characters"),
        ]:
            with self.subTest(env=env, status=status):
                self.fresh()
                os.environ.pop("EB_ID", None)
                os.environ.update(dict({"ODA_URL": NOBODY}, **env))
                with self.assertLogs("oda_helper", "ERROR") as logs:
                    oda_helper.end_eb(status)
                self.assertIn(said, logs.output[0])
                self.assertFalse(oda_helper.flush(0))
                self.assertEqual((oda_helper.status().not_recorded, oda_helper.status().ended), (0, None))

    def test_counts_although_the_clock_was_set_back(self):
        eb_id = oda_helper.create_eb()
        oda_helper.end_eb("Executing")
        with mock.patch.object(_saying, "now", return_value=datetime(2020, 1, 1, tzinfo=timezone.utc)):
            oda_helper.end_eb("Observed")
        self.flushed()
        self.assertEqual(self.server.get("/ebs/%s/status" % eb_id)["status"], "Observed")


class AStatusInTheSpool(Saying):
    def test_waits_for_the_records_before_it(self):
        gateway = Gateway(self, self.server)
        os.environ["ODA_URL"] = gateway.url
        eb_id = oda_helper.create_eb()
        gateway.answer = (503, "")
        scan(1)
        oda_helper.end_eb("Observed")
        wait_until(lambda: gateway.given > 1, "some answers")
        self.assertEqual(self.said(eb_id), [])
        self.assertEqual(oda_helper.lag(), 2)
        gateway.answer = None
        self.flushed()
        self.assertEqual((numbers(self.server.records(eb_id)), self.said(eb_id)), ([1], [("Observed", None)]))

    def test_is_not_taken_for_stored_because_something_else_answers(self):
        for name, answer in {
            "a portal's page": (200, "<html></html>"),
            "another answer": (200, '{"sequence":1}'),
            "a gateway's 422": (422, "{}"),
            "a problem of a newer release": (422, problem("moon-phase")),
        }.items():
            with self.subTest(name):
                self.fresh()
                gateway = Gateway(self, self.server)
                os.environ["ODA_URL"] = gateway.url
                eb_id = oda_helper.create_eb()
                gateway.answer = answer
                with self.assertLogs("oda_helper", "WARNING") as logs:
                    oda_helper.end_eb("Observed")
                    wait_until(lambda: logs.records, "a warning about the answer")
                self.assertFalse(oda_helper.flush(0.1))
                gateway.answer = None
                self.flushed()
                self.assertEqual(self.said(eb_id), [("Observed", None)])

    def test_is_stored_once_if_its_answer_is_lost(self):
        proxy = Proxy(self.server.port)
        self.addCleanup(proxy.close)
        os.environ["ODA_URL"] = proxy.url
        eb_id = oda_helper.create_eb()
        self.flushed()
        proxy.lose = 3
        oda_helper.end_eb("Failed", "1")
        scan(1)
        oda_helper.end_eb("Failed", "2")
        self.flushed()
        self.assertEqual(proxy.lost, 3)
        self.assertEqual(self.said(eb_id), [("Failed", "1"), ("Failed", "2")])

    def test_is_stored_once_although_processes_are_killed(self):
        eb_id = oda_helper.create_eb()
        for round in range(3):
            process = self.script(
                """
                n = 0
                while True:
                    scan(n)
                    oda_helper.end_eb("Executing", "%s %d" % (os.environ["ROUND"], n))
                    n += 1
                    print(n, flush=True)
                """,
                wait=False,
                ROUND=str(round),
            )
            for n in range(20):
                if not process.stdout.readline():
                    self.fail("it ended after %d statuses: %s" % (n, process.stderr.read()))
            process.kill()
            process.wait()
        self.assertTrue(oda_helper.drain(PATIENCE))
        found = [reason.split() for _, reason in self.said(eb_id)]
        for round in range(3):
            part = [int(n) for which, n in found if which == str(round)]
            self.assertEqual(part, list(range(len(part))))
            self.assertGreaterEqual(len(part), 20, "of round %d, of all: %s" % (round, found))

    def left(self, *lines):
        """A session that was left with these lines, each without checksum and key."""
        eb_id = oda_helper.create_eb()
        self.assertTrue(oda_helper.close())
        session = "0123456789abcdef"
        folder = os.path.join(self.spool, "%s.%s" % (eb_id, session))
        os.mkdir(folder)
        with open(os.path.join(folder, "block.json"), "wb") as file:
            file.write(_spool.Block(eb_id, self.server.url + "/api/v1", None, None).encode())
        with open(os.path.join(folder, "00000001.log"), "wb") as file:
            for n, line in enumerate(lines, 1):
                file.write(_spool.line(session.encode(), n, *line.encode().split(b" ", 1)))
        return eb_id, folder

    def text(self, folder, name):
        with open(os.path.join(folder, name)) as file:
            return file.read()

    def test_that_is_refused_is_put_aside(self):
        refused = ['status {"status":""}', 'status {"status":"x","version":7}', 'status {"status":"x","previous":"y"}']
        eb_id, folder = self.left('status {"status":"Executing"}', *refused, 'record {"request":"a"}', 'status {"status":"Observed"}', "status 5")
        with self.assertLogs("oda_helper", "ERROR") as logs:
            self.assertFalse(oda_helper.drain(PATIENCE))
        self.assertIn("The archive refused a status of " + eb_id, logs.output[1])
        self.assertEqual(self.said(eb_id), [("Executing", None), ("Observed", None)])
        self.assertEqual(len(self.server.records(eb_id)), 1)
        kept = self.text(folder, "refused.log").splitlines()
        self.assertEqual([line.split(" ", 2)[2] for line in kept[1::2]], refused)
        self.assertIn("the status is not JSON", self.text(folder, "damaged.log"))

    def test_of_an_unknown_sort_is_left_to_a_newer_program(self):
        eb_id, folder = self.left('record {"request":"a"}', "moon full", 'status {"status":"Observed"}')
        segment = self.text(folder, "00000001.log")
        for _ in range(2):
            with self.assertLogs("oda_helper", "ERROR") as logs:
                self.assertFalse(oda_helper.drain(PATIENCE))
            self.assertEqual(len(logs.output), 1, logs.output)
            self.assertIn("0123456789abcdef-2 is a moon, which this program does not know", logs.output[0])
            self.fresh()
        self.assertEqual((len(self.server.records(eb_id)), self.said(eb_id)), (1, []))
        self.assertEqual(self.text(folder, "00000001.log"), segment)
        self.assertEqual(sorted(os.listdir(folder)), ["00000001.log", "block.json", "lock", "shipped"])

    def test_is_sent_by_the_archives_own_program(self):
        eb_id, _ = self.left('status {"status":"Executing"}', 'record {"request":"a"}', 'status {"status":"Observed"}')
        subprocess.run([binary(), "record", "drain", self.spool], check=True, timeout=60, capture_output=True)
        self.assertEqual(self.said(eb_id), [("Executing", None), ("Observed", None)])
        self.assertEqual(self.sessions(), [])

    def test_may_be_said_by_a_signal_handler_and_by_many_threads(self):
        eb_id = oda_helper.create_eb()
        before = signal.signal(signal.SIGALRM, lambda number, frame: oda_helper.end_eb("Executing", "alarm"))
        self.addCleanup(signal.signal, signal.SIGALRM, before)
        signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
        self.addCleanup(signal.setitimer, signal.ITIMER_REAL, 0)

        def say(name):
            for n in range(20):
                oda_helper.end_eb("Executing", "%d %d" % (name, n))

        threads = [threading.Thread(target=say, args=(name,)) for name in range(4)]
        for thread in threads:
            thread.start()
        for n in range(200):
            scan(n)
        for thread in threads:
            thread.join()
        signal.setitimer(signal.ITIMER_REAL, 0)
        self.flushed()
        reasons = [reason for _, reason in self.said(eb_id) if reason != "alarm"]
        for name in range(4):
            self.assertEqual([each for each in reasons if each.startswith("%d " % name)], ["%d %d" % (name, n) for n in range(20)])
        self.assertEqual(numbers(self.server.records(eb_id)), list(range(200)))
