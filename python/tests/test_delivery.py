"""How answers, links and settings affect delivery."""

import errno
import json
import os
import socket
import subprocess
import tempfile
import threading
import time
import urllib.request
from unittest import mock

import oda_client
import oda_helper
from oda_helper import _archive, _folder, _process, _recorder, _session, _settings, _spool
from oda_helper import capture_request_response as capture
from oda_helper._leftovers import Leftovers
from oda_helper._outbox import Outbox
from proxy import Proxy
from support import PATIENCE, Case, Server, binary, free_port, wait_until
from test_outage import _repoint, numbers

PAGE = "<html><body>no</body></html>"


@capture
def scan(n, text=""):
    return n


def problem(code, **more):
    return json.dumps(dict(more, type="urn:oda:problem:" + code, title="x", detail="No."))


class Gateway:
    """Answers instead of an archive, each request on its own connection.

    ``answer`` is a status and a body, or None: then the archive answers. It is called
    with the method and the length of the body if it can be.
    """

    def __init__(self, test, server, answer=None):
        self.answer, self.given = answer, 0
        self._far = server.port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = "http://127.0.0.1:%d" % self._listener.getsockname()[1]
        test.addCleanup(self._close)
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def _close(self):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()

    def _accept(self):
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            with near:
                try:
                    self._serve(near)
                except OSError:
                    pass  # the client is gone

    def _serve(self, near):
        head, _, body = self._read(near, b"").partition(b"\r\n\r\n")
        length = 0
        for line in head.split(b"\r\n"):
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        while len(body) < length:
            body += near.recv(1 << 16)
        answer = self.answer
        if callable(answer):
            answer = answer(head.split(b" ")[0].decode(), length)
        if answer is not None:
            self.given += 1
            status, text = answer[:2]
            extra = "".join("%s: %s\r\n" % header for header in answer[2:])
            text = text.encode()
            start = "HTTP/1.1 %d X\r\nContent-Length: %d\r\nConnection: close\r\n%s\r\n" % (status, len(text), extra)
            near.sendall(start.encode() + text)
            return
        with socket.create_connection(("127.0.0.1", self._far)) as far:
            far.sendall(head + b"\r\nConnection: close\r\n\r\n" + body)
            while True:
                piece = far.recv(1 << 16)
                if not piece:
                    return
                near.sendall(piece)

    def _read(self, near, got):
        while b"\r\n\r\n" not in got:
            piece = near.recv(1 << 16)
            if not piece:
                raise OSError("no request")
            got += piece
        return got


class TheArchiveIsTold(Case):
    def test_how_far_behind_a_script_is(self):
        gateway = Gateway(self, self.server)
        os.environ["ODA_URL"] = gateway.url
        oda_helper.create_eb()
        gateway.answer = (503, "")
        for n in range(5):
            scan(n)
        wait_until(lambda: gateway.given > 0, "an answer")
        gateway.answer = None
        self.assertTrue(oda_helper.flush(PATIENCE))
        with urllib.request.urlopen(self.server.url + "/metrics", timeout=PATIENCE) as answer:
            metrics = answer.read().decode()
        # Other tests use the same archive.
        said = dict(line.split(" ") for line in metrics.splitlines() if line.startswith("oda_recorder"))
        self.assertGreaterEqual(float(said["oda_recorders"]), 1)
        # The last request counts, in which there may be few of them.
        self.assertGreaterEqual(float(said["oda_recorder_lag_records"]), 1)
        self.assertGreater(float(said["oda_recorder_lag_seconds"]), 0)

    def test_the_age_of_the_oldest_record(self):
        with tempfile.TemporaryDirectory() as spool, mock.patch.object(_session.time, "monotonic") as now:
            session = _session.Session(_folder.Folder(spool), _spool.Block("eb-1", "http://x", None, None), 1 << 20, "never")
            self.addCleanup(session.release)
            now.return_value = 100.0
            self.assertEqual(session.age(), 0)
            for n in range(2000):  # more than are remembered one by one
                now.return_value = 100.0 + n
                session.append(b"{}")
            self.assertEqual((session.lag(), session.age()), (2000, 1999))
            session.settle(1000, 0)
            self.assertAlmostEqual(session.age(), 999, delta=8)
            session.settle(1000, 0)
            self.assertEqual(session.age(), 0)
            session.append(b"{}")
            now.return_value += 5
            self.assertEqual(session.age(), 5)


class OnlyTheArchiveItself(Case):
    def test_refuses_a_record(self):
        pointer = {"errors": [{"pointer": "query:x", "detail": "No."}]}
        for name, answer in {
            "a gateway's 400": (400, PAGE),
            "a gateway's 404": (404, PAGE),
            "a gateway's 405": (405, PAGE),
            "a gateway's 408": (408, PAGE),
            "a gateway's 413": (413, PAGE),
            "a gateway's 422": (422, '{"detail":[{"loc":["body"]}]}'),
            "401": (401, problem("not-authenticated")),
            "403": (403, problem("not-allowed")),
            "425": (425, ""),
            "429": (429, PAGE),
            "500": (500, PAGE),
            "503 with errors that are no list": (503, '{"errors":{"x":[]}}'),
            "503 with errors that are a number": (503, '{"errors":7,"detail":["a"],"type":{}}'),
            "503 with endless JSON": (503, "[" * 200_000),
            "503 with an odd Retry-After": (503, "", ("Retry-After", "nan")),
            "a redirect": (302, "", ("Location", "/login")),
            "a portal's page": (200, PAGE),
            "a page that talks of a sequence": (200, '{"sequence":1,"sequence":2,"sequence":3}'),
            "nothing": (200, ""),
            "408 of the archive": (408, problem("request-timeout")),
            "a body that was cut off": (400, problem("invalid-request")),
            "an invalid parameter": (400, problem("invalid-request", **pointer)),
            "a user that is refused": (400, problem("invalid-user")),
            "a problem of a newer release": (422, problem("moon-phase")),
            "an unknown path": (404, problem("no-such-path")),
        }.items():
            with self.subTest(name):
                self.fresh()
                gateway = Gateway(self, self.server)
                os.environ["ODA_URL"] = gateway.url
                eb_id = oda_helper.create_eb()
                gateway.answer = answer
                with self.assertLogs("oda_helper", "WARNING") as logs:
                    for n in range(3):
                        scan(n)
                    wait_until(lambda: logs.records, "a warning about the answer")
                self.assertFalse(oda_helper.flush(0.1))
                self.assertEqual(oda_helper.lag(), 3)
                gateway.answer = None
                self.flushed()
                self.assertEqual(numbers(self.server.records(eb_id)), [0, 1, 2])
                self.assertTrue(oda_helper.close())
                self.assertEqual(self.sessions(), [])

    def test_receives_every_record_through_a_gateway_that_accepts_little(self):
        gateway = Gateway(self, self.server)
        os.environ["ODA_URL"] = gateway.url
        eb_id = oda_helper.create_eb()
        gateway.answer = lambda method, length: (413, PAGE) if length > 2000 else None
        for n in range(100):
            scan(n)
        self.flushed()
        self.assertEqual(numbers(self.server.records(eb_id)), list(range(100)))
        self.assertGreater(gateway.given, 0)

    def test_may_answer_oddly_without_ending_delivery(self):
        odd = Gateway(self, self.server, (503, '{"errors":7}'))
        os.environ.update(ODA_URL=odd.url, EB_ID="eb-odd")
        with self.assertLogs("oda_helper", "INFO") as logs:
            scan(1)
            wait_until(lambda: odd.given > 0, "an answer")
            os.environ["ODA_URL"] = self.server.url
            eb_id = oda_helper.create_eb()
            scan(2)
            wait_until(lambda: self.server.records(eb_id), "the record of the healthy archive")
            oda_helper.flush(0.5)
        self.assertEqual([text for text in logs.output if "Traceback" in text], [])


class ASlowLink(Case):
    needs_server = False

    def test_delays_records_and_loses_none(self):
        server = Server("--read-timeout=500ms")
        self.addCleanup(server.remove)
        server.start()
        proxy = Proxy(server.port)
        self.addCleanup(proxy.close)
        os.environ["ODA_URL"] = proxy.url
        eb_id = oda_helper.create_eb()
        proxy.rate = 128 << 10
        for n in range(40):
            scan(n, "x" * 4096)
        self.assertTrue(oda_helper.flush(60))
        self.assertEqual(numbers(server.records(eb_id)), list(range(40)))
        self.assertIn("request-timeout", server.log())
        self.assertTrue(oda_helper.close())
        self.assertEqual(self.sessions(), [])

    def test_gets_smaller_batches_after_a_time_out(self):
        server = Server()
        self.addCleanup(server.remove)
        server.start()
        lengths = []

        def silent(method, length):
            if method != "POST":
                return None
            lengths.append(length)
            if length > 2000:
                time.sleep(0.3)  # longer than the client waits
            return None

        gateway = Gateway(self, server)
        os.environ["ODA_URL"] = gateway.url
        eb_id = oda_helper.create_eb()
        patched = mock.patch.multiple("oda_helper._delivery", SLOW=0.15, ANSWER_TIMEOUT=0.2)
        patched.start()
        self.addCleanup(patched.stop)
        self.fresh()
        os.environ["EB_ID"] = eb_id
        gateway.answer = (503, "{}")  # so that records wait and go together
        for n in range(40):
            scan(n)
        gateway.answer = silent
        self.flushed()
        self.assertEqual(numbers(server.records(eb_id)), list(range(40)))
        large = next(i for i, length in enumerate(lengths) if length > 2000)
        self.assertLess(min(lengths[large:]), 2001)


class AnOutage(Case):
    def test_that_is_over_leaves_nothing_waiting_although_the_script_rests(self):
        proxy = Proxy(free_port())
        self.addCleanup(proxy.close)
        eb_id = oda_helper.create_eb()
        os.environ["ODA_URL"] = proxy.url
        with self.assertLogs("oda_helper", "WARNING") as logs:
            scan(1)
            wait_until(lambda: logs.output, "the warning")
        scan(2)
        time.sleep(2 * _recorder.LINGER)  # the thread has noticed it
        proxy.forward(self.server.port)
        wait_until(lambda: numbers(self.server.records(eb_id)) == [1, 2], "the records")

    def test_of_one_block_does_not_concern_the_others(self):
        blocks = [oda_helper.create_eb() for _ in range(2)]
        gateway = Gateway(self, self.server, lambda method, length: (403, PAGE) if length > 2000 else None)
        os.environ["ODA_URL"] = gateway.url
        with self.assertLogs("oda_helper", "WARNING"):
            for block, text in zip(blocks, ["x" * 2000, ""]):
                os.environ["EB_ID"] = block
                scan(1, text)
                time.sleep(0.5)  # the first has failed
            wait_until(lambda: numbers(self.server.records(blocks[1])) == [1], "the record of the other block")
            self.fresh()  # and so it is among what others left
            for block, text in zip(blocks, ["x" * 2000, ""]):
                self.script("scan(%r)" % (text or 2), EB_ID=block, ODA_URL="http://127.0.0.1:9", ODA_EXIT_TIMEOUT="0")
            for folder in self.sessions():
                _repoint(folder, 9, int(gateway.url.rsplit(":", 1)[1]))
            self.drained_but_for_one(blocks[1], [1, 2])

    def test_of_another_archive_does_not_concern_the_same_block_here(self):
        eb_id = oda_helper.create_eb()
        self.assertTrue(oda_helper.close())
        self.script("scan(1)", ODA_URL="http://127.0.0.1:9", ODA_EXIT_TIMEOUT="0", EB_ID=eb_id)
        (first,) = self.sessions()
        self.script("scan(2)", ODA_URL="http://127.0.0.1:9", ODA_EXIT_TIMEOUT="0", EB_ID=eb_id)
        (second,) = set(self.sessions()) - {first}
        _repoint(second, 9, self.server.port)
        self.drained_but_for_one(eb_id, [2])

    def drained_but_for_one(self, eb_id, want):
        """Drains until a block has these records; those of another cannot be sent."""

        def stored():
            self.assertFalse(oda_helper.drain(0.2))
            return numbers(self.server.records(eb_id)) == want

        wait_until(stored, "the records that can be sent")

    def test_of_one_archive_does_not_delay_the_records_of_another(self):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            os.environ.update(ODA_URL="http://127.0.0.1:%d" % silent.getsockname()[1], EB_ID="eb-1")
            scan(1)
            with silent.accept()[0]:  # it is being sent
                os.environ["ODA_URL"] = self.server.url
                eb_id = oda_helper.create_eb()
                scan(2)
                wait_until(lambda: numbers(self.server.records(eb_id)) == [2], "the record", 5)
                self.assertFalse(oda_helper.close(1))
        # Only what could not be sent is left.
        self.assertEqual([os.path.basename(folder)[:5] for folder in self.sessions()], ["eb-1."])

    def test_that_cuts_off_large_batches_gets_smaller_ones(self):
        def cut(method, length):
            if length > 2000:
                raise ConnectionResetError
            return None

        gateway = Gateway(self, self.server)
        os.environ["ODA_URL"] = gateway.url
        eb_id = oda_helper.create_eb()
        gateway.answer = (503, "{}")  # so that records wait and go together
        for n in range(100):
            scan(n)
        gateway.answer = cut
        self.assertTrue(oda_helper.flush(60))
        self.assertEqual(numbers(self.server.records(eb_id)), list(range(100)))


class ManyBlocks(Case):
    def setUp(self):
        super().setUp()
        self.resting = mock.patch.object(_recorder, "RESTED", -1.0)
        self.resting.start()
        self.addCleanup(self.resting.stop)

    def test_in_turn_have_one_session_each(self):
        self.resting.stop()
        self.addCleanup(self.resting.start)
        os.environ["ODA_URL"] = "http://127.0.0.1:%d" % free_port()
        for n in range(60):
            for block in range(_recorder.MAX_SESSIONS + 4):
                os.environ["EB_ID"] = "eb-%d" % block
                scan(n)
            time.sleep(0.01)
        self.assertEqual(len(self.sessions()), _recorder.MAX_SESSIONS + 4)

    def test_that_rest_are_released(self):
        self.resting.stop()
        self.addCleanup(self.resting.start)
        for n in range(_recorder.MAX_SESSIONS + 4):
            oda_helper.create_eb()
            scan(n)
        live = _process.recorder()._live
        wait_until(lambda: len(live) == _recorder.MAX_SESSIONS, "the release")
        self.flushed()

    def test_are_released_without_waiting_for_a_writer(self):
        # The writer may be interrupted by a signal handler, which waits for the recorder.
        os.environ.update(ODA_URL="http://127.0.0.1:%d" % free_port(), EB_ID="eb-1")
        with mock.patch.object(_recorder, "MAX_SESSIONS", 1), mock.patch.object(_recorder, "MOST_SESSIONS", 1):
            scan(1)
            recorder = _process.recorder()
            (live,) = recorder._live.values()
            with live.session._lock:
                os.environ["EB_ID"] = "eb-2"
                scan(2)
                time.sleep(3 * _recorder.LINGER)
                asked = threading.Thread(target=recorder.lag, daemon=True)
                asked.start()
                asked.join(5)
                self.assertFalse(asked.is_alive(), "the recorder is held")
            wait_until(lambda: len(recorder._live) == 1, "the release")

    def test_keep_the_order_of_their_records_during_an_outage(self):
        proxy = Proxy(free_port())  # nobody listens there
        self.addCleanup(proxy.close)
        os.environ["ODA_URL"] = proxy.url
        with mock.patch.object(_archive, "CREATE_TIMEOUT", 0.2):
            blocks = [oda_helper.create_eb() for _ in range(_recorder.MAX_SESSIONS + 8)]
        for n in range(6):
            for block in blocks:
                os.environ["EB_ID"] = block
                scan(n)
            oda_helper.flush(0.3)  # some sessions are released in between
        self.assertEqual(oda_helper.lag(), 6 * len(blocks))
        proxy.forward(self.server.port)
        self.assertTrue(oda_helper.flush(60))
        self.assertEqual(oda_helper.lag(), 0)
        for block in blocks:
            self.assertEqual(numbers(self.server.records(block)), list(range(6)))
        self.assertTrue(oda_helper.close())
        self.assertEqual(self.sessions(), [])

    def test_of_an_ended_process_are_sent_in_order(self):
        down = free_port()
        eb_ids = [oda_helper.create_eb() for _ in range(_recorder.MAX_SESSIONS + 4)]
        self.assertTrue(oda_helper.close())
        self.script(
            """
            from oda_helper import _recorder
            _recorder.RESTED = -1.0
            for n in range(5):
                for block in os.environ["BLOCKS"].split():
                    os.environ["EB_ID"] = block
                    scan(n)
                oda_helper.flush(0.3)
            """,
            BLOCKS=" ".join(eb_ids), ODA_URL="http://127.0.0.1:%d" % down, ODA_EXIT_TIMEOUT="0",
        )  # fmt: skip
        for folder in self.sessions():
            _repoint(folder, down, self.server.port)
        self.assertTrue(oda_helper.drain(60))
        for eb_id in eb_ids:
            self.assertEqual(numbers(self.server.records(eb_id)), list(range(5)))

    def test_are_not_reported_as_stored_while_one_is_released(self):
        proxy = Proxy(free_port())
        self.addCleanup(proxy.close)
        os.environ["ODA_URL"] = proxy.url
        add = Leftovers.add

        def slow(*args):
            time.sleep(0.2)  # the caller of flush has its turn
            return add(*args)

        with mock.patch.object(Leftovers, "add", slow), mock.patch.object(_recorder, "MAX_SESSIONS", 1):
            os.environ["EB_ID"] = "eb-1"
            scan(1)
            later = threading.Timer(0.1, lambda: _process.recorder().open("eb-2", proxy.url + "/api/v1"))
            later.start()
            self.assertFalse(oda_helper.flush(1))
            later.join()
        self.assertEqual(oda_helper.lag(), 1)

    def test_are_not_reported_as_stored_while_one_is_not(self):
        proxy = Proxy(free_port())
        self.addCleanup(proxy.close)
        os.environ["ODA_URL"] = proxy.url
        with mock.patch.object(_archive, "CREATE_TIMEOUT", 0.2):
            for n in range(_recorder.MAX_SESSIONS + 8):
                oda_helper.create_eb()
                scan(n)
                self.assertFalse(oda_helper.flush(0.05))


class ACaller(Case):
    """A caller is never told that something is stored if it is not."""

    def test_learns_that_a_block_is_not_stored(self):
        os.environ["ODA_URL"] = "ftp://x"
        with self.assertLogs("oda_helper", "WARNING"):
            oda_helper.create_eb()
        self.assertFalse(oda_helper.flush(PATIENCE))
        self.assertFalse(oda_helper.close())

    def test_learns_what_is_wrong_with_the_address(self):
        os.environ["ODA_URL"] = "ftp://x"
        with self.assertLogs("oda_helper", "WARNING") as logs:
            oda_helper.create_eb()
            scan(1)
        self.assertEqual(len(logs.output), 2)
        for line in logs.output:
            self.assertIn("ODA_URL must begin with http:// or https://", line)
        with self.assertRaisesRegex(oda_helper.OdaError, "ODA_URL must begin with http:// or https://"):
            oda_helper.save({})

    def test_learns_that_calls_are_not_recorded(self):
        os.environ["ODA_URL"] = "ftp://x"
        with self.assertLogs("oda_helper", "WARNING"):
            scan(1)
        self.assertFalse(oda_helper.flush(PATIENCE))
        self.assertFalse(oda_helper.close())

    def test_learns_that_a_call_has_no_block(self):
        with self.assertLogs("oda_helper", "WARNING"):
            scan(1)
        self.assertFalse(oda_helper.flush(PATIENCE))

    def test_learns_that_a_record_is_refused(self):
        eb_id = oda_helper.create_eb()
        _process.recorder().record(eb_id, self.server.url + "/api/v1", b'{"status":"OK"}')
        scan(1)
        with self.assertLogs("oda_helper", "ERROR"):
            self.assertFalse(oda_helper.flush(PATIENCE))
        self.assertEqual((oda_helper.lag(), numbers(self.server.records(eb_id))), (0, [1]))
        self.assertFalse(oda_helper.close())

    def test_learns_that_a_record_was_dropped(self):
        os.environ["ODA_SPOOL_LIMIT"] = "100"
        oda_helper.create_eb()
        with self.assertLogs("oda_helper", "ERROR"):
            scan(1)
        self.assertFalse(oda_helper.flush(PATIENCE))

    def test_learns_when_a_block_reaches_the_archive_later(self):
        os.environ["ODA_URL"] = "ftp://x"
        with self.assertLogs("oda_helper", "WARNING"):
            eb_id = oda_helper.create_eb()
        self.assertFalse(oda_helper.flush(PATIENCE))
        os.environ["ODA_URL"] = self.server.url
        scan(1)
        self.assertTrue(oda_helper.flush(PATIENCE))
        self.assertEqual(numbers(self.server.records(eb_id)), [1])


class WithoutAnAddress(Case):
    """Everything goes to where an archive listens by default."""

    def setUp(self):
        super().setUp()
        del os.environ["ODA_URL"]

    def at(self, url):
        """Makes this the default address."""
        patched = mock.patch.object(_settings, "DEFAULT_URL", url)
        patched.start()
        self.addCleanup(patched.stop)

    def test_records_go_to_the_default(self):
        self.at(self.server.url)
        eb_id = oda_helper.create_eb()
        scan(1)
        self.flushed()
        self.assertEqual(numbers(self.server.records(eb_id)), [1])

    def test_whoever_gets_no_answer_learns_what_to_set(self):
        self.at("http://127.0.0.1:%d" % free_port())
        os.environ["EB_ID"] = "eb-1"
        with self.assertLogs("oda_helper", "WARNING") as logs:
            scan(1)
            wait_until(lambda: logs.output, "the warning")
        self.assertIn("; ODA_URL is not set)", logs.output[0])
        for ask in (lambda: oda_helper.save({}), lambda: oda_client.Archive().get("sbd-1")):
            with self.assertRaisesRegex(oda_helper.OdaUnreachable, "; ODA_URL is not set"):
                ask()


class TheStatus(Case):
    """It says what is wrong, also if the archive is there."""

    def test_says_that_the_archive_does_not_have_the_block(self):
        os.environ["EB_ID"] = "eb-nobody-has-this"
        with self.assertLogs("oda_helper", "ERROR") as logs:
            scan(1)
            wait_until(lambda: logs.records, "the error")
            self.assertFalse(oda_helper.flush(0.1))
        self.assertRegex(str(oda_helper.status()), "refuses the records of eb-nobody-has-this .404: .* could not be found")

    def test_says_that_a_record_is_refused(self):
        eb_id = oda_helper.create_eb()
        _process.recorder().record(eb_id, self.server.url + "/api/v1", b'{"status":"OK"}')
        with self.assertLogs("oda_helper", "ERROR"):
            self.assertFalse(oda_helper.flush(PATIENCE))
        (folder,) = self.sessions()
        for _ in range(2):
            said = str(oda_helper.status())
            self.assertIn("refused", said)
            self.assertIn(self.spool, said)
            self.assertFalse(oda_helper.close(PATIENCE))

    def test_says_that_the_session_was_removed(self):
        oda_helper.create_eb()
        self.assertTrue(oda_helper.close())  # nothing is being read or sent
        gone = mock.Mock(side_effect=FileNotFoundError("no such folder"))
        with self.assertLogs("oda_helper", "ERROR"), mock.patch.object(Outbox, "batch", gone):
            scan(1)
            scan(2)
            self.assertFalse(oda_helper.flush(PATIENCE))
        wait_until(lambda: oda_helper.status().dropped == 2, "both are counted")
        self.assertIn("removed", str(oda_helper.status()))

    def test_says_why_records_are_dropped(self):
        os.environ["ODA_SPOOL_LIMIT"] = "100"
        oda_helper.create_eb()
        with self.assertLogs("oda_helper", "ERROR"):
            scan(1)
        self.assertIn("Records are lost: the spool is full", str(oda_helper.status()))

    def test_says_that_a_block_cannot_be_stored(self):
        gateway = Gateway(self, self.server, (503, ""))
        os.environ["ODA_URL"] = gateway.url
        oda_helper.create_eb()
        with self.assertLogs("oda_helper", "ERROR"):
            gateway.answer = (400, problem("invalid-json"))
            self.assertFalse(oda_helper.flush(PATIENCE))
        self.assertIn("the archive refuses its ExecutionBlock", str(oda_helper.status()))


class TheThreads(Case):
    """Those that send."""

    def setUp(self):
        super().setUp()
        self.eb_id = oda_helper.create_eb()
        self.assertTrue(oda_helper.close())

    def test_are_started_later_if_they_cannot_be_now(self):
        start = threading.Thread.start

        def fails(thread):
            if thread.name.startswith("oda_helper"):
                raise RuntimeError("can't start new thread")
            start(thread)

        with mock.patch.object(threading.Thread, "start", fails), self.assertLogs("oda_helper", "WARNING") as logs:
            for n in range(3):
                scan(n)
            self.assertFalse(oda_helper.flush(0.05))
            self.assertFalse(oda_helper.close(3600))  # there is nothing to wait for
            self.assertIn("can't start new thread", str(oda_helper.status()))
        tries = [line for line in logs.output if "can't start new thread" in line]
        self.assertEqual(len(tries), 3, logs.output)  # the first call, and whoever waits
        self.flushed()
        self.assertEqual(numbers(self.server.records(self.eb_id)), [0, 1, 2])
        self.assertNotIn("can't start", str(oda_helper.status()))

    def test_of_one_archive_go_on_if_that_of_another_cannot_be_started(self):
        scan(0)
        with mock.patch.object(threading.Thread, "start", side_effect=RuntimeError("can't start new thread")):
            with self.assertLogs("oda_helper", "WARNING"):
                _process.recorder().open(self.eb_id, "http://127.0.0.1:%d/api/v1" % free_port())
        scan(1)
        wait_until(lambda: numbers(self.server.records(self.eb_id)) == [0, 1], "the records")
        self.assertIn("can't start new thread", str(oda_helper.status()))
        _process.recorder()._start_again = 0.0
        scan(2)
        self.assertNotIn("can't start new thread", str(oda_helper.status()))
        self.flushed()

    def test_are_started_by_a_later_call(self):
        with mock.patch.object(threading.Thread, "start", side_effect=RuntimeError("can't start new thread")):
            scan(0)
        with mock.patch.object(_recorder, "TRY_AGAIN", 0):
            _process.recorder()._start_again = 0.0
            scan(1)
        wait_until(lambda: oda_helper.lag() == 0, "the records are sent")

    def test_do_not_send_one_session_at_once(self):
        # The thread of the time before close() is late.
        recorder, late, go = _process.recorder(), threading.Event(), threading.Event()
        turn, here, both = recorder._round, [], []

        def slow(archive):
            here.append(1)
            both.append(len(here))
            try:
                if not late.is_set():
                    late.set()
                    go.wait(PATIENCE)
                return turn(archive)
            finally:
                here.pop()

        scan(0)
        self.flushed()
        with mock.patch.object(recorder, "_round", slow):
            scan(1)
            self.assertTrue(late.wait(PATIENCE))
            recorder._threads = None  # as _stop does
            recorder.start()
            threading.Timer(0.3, go.set).start()
            scan(2)
            self.flushed()
            self.assertTrue(oda_helper.close(PATIENCE))
        self.assertEqual(max(both), 1)
        self.assertEqual(numbers(self.server.records(self.eb_id)), [0, 1, 2])


class AtOnce(Case):
    """Threads that record, close and drain at the same time."""

    def setUp(self):
        super().setUp()
        self.eb_id = oda_helper.create_eb()
        self.assertTrue(oda_helper.close())
        self.recorder = _process.recorder()

    def beside(self, work):
        """Runs something in another thread, and returns where its result will be."""
        said = []
        thread = threading.Thread(target=lambda: said.append(work()))
        thread.start()
        self.addCleanup(thread.join)
        return thread, said

    def test_a_call_is_recorded_although_each_new_session_is_closed(self):
        opened, before = self.recorder.open, _recorder.POLL

        def interrupted(eb_id, url):
            live = opened(eb_id, url)
            time.sleep(5 * before)  # the thread that sends has its turn
            return live

        proxy = Proxy(free_port())
        self.addCleanup(proxy.close)
        with mock.patch.dict(os.environ, ODA_URL=proxy.url, EB_ID="eb-other"):
            scan(0)  # close() waits for this one
        _, said = self.beside(lambda: oda_helper.close(2))
        with mock.patch.object(self.recorder, "open", interrupted):
            scan(1)
        self.assertEqual(said, [])
        self.assertEqual(oda_helper.status().dropped, 0)
        wait_until(lambda: numbers(self.server.records(self.eb_id)) == [1], "the record")

    def test_a_session_that_was_removed_is_replaced_without_holding_the_recorder(self):
        # A writer may be interrupted by a signal handler, which waits for the recorder.
        scan(0)
        self.flushed()
        (live,) = self.recorder._live.values()
        with live.session._lock:
            live.session.closed = True
            with mock.patch.object(_session.Session, "append", side_effect=[_session.CLOSED], autospec=True):
                self.beside(lambda: scan(1))
                time.sleep(0.2)
                asked, _ = self.beside(self.recorder.lag)
                asked.join(2)
                self.assertFalse(asked.is_alive(), "the recorder is held")
        wait_until(lambda: numbers(self.server.records(self.eb_id)) == [0, 1], "the record")

    def test_a_caller_that_was_interrupted_does_not_count_any_more(self):
        scan(1)
        self.flushed()
        (live,) = self.recorder._live.values()
        left = self.recorder._leftovers
        for call, where, name in (
            (oda_helper.flush, live.delivery, "poke"), (oda_helper.drain, self.recorder, "start"), (oda_helper.close, left, "hurry"),
        ):  # fmt: skip
            with self.subTest(name), mock.patch.object(where, name, side_effect=KeyboardInterrupt):
                with self.assertRaises(KeyboardInterrupt):
                    call(1)
                self.assertEqual((self.recorder._waiting, left.draining, left.closing), (0, 0, 0))

    def test_a_caller_of_close_that_gives_up_does_not_stop_another(self):
        proxy = Proxy(self.server.port, delay=0.5)
        self.addCleanup(proxy.close)
        os.environ["ODA_URL"] = proxy.url
        scan(1)
        thread, said = self.beside(lambda: oda_helper.close(PATIENCE))
        wait_until(lambda: self.recorder._waiting, "the first caller")
        self.assertFalse(oda_helper.close(0.05))
        thread.join()
        self.assertEqual((said, self.sessions()), ([True], []))

    def test_drain_gets_its_answer_although_close_ends_the_threads(self):
        start, stop, found = self.recorder.start, self.recorder._stop, []

        def slow_start():
            start()
            if threading.current_thread() is not threading.main_thread():
                time.sleep(0.2)

        def late_stop():
            found.append(self.beside(lambda: oda_helper.drain(PATIENCE)))
            wait_until(lambda: self.recorder._leftovers.draining, "the caller of drain")
            time.sleep(0.05)
            stop()

        scan(1)
        with mock.patch.multiple(self.recorder, start=slow_start, _stop=late_stop):
            self.assertTrue(oda_helper.close(PATIENCE))
            ((thread, said),) = found
            thread.join()
        self.assertEqual(said, [True])


class AWrongRun(Case):
    """What one run left for a wrong address or block does not concern later runs."""

    def healthy(self):
        eb_id = oda_helper.create_eb()
        begun = time.monotonic()
        second = self.script("scan(5)\nassert oda_helper.flush(20)", EB_ID=eb_id)
        self.assertEqual((second.out, second.err), ("", ""))
        self.assertEqual(numbers(self.server.records(eb_id)), [5])
        return time.monotonic() - begun

    def wrong(self, **env):
        first = self.script("scan(1)", ODA_EXIT_TIMEOUT="0.3", **env)
        self.assertNotEqual(first.err, "")  # the run itself is warned
        self.assertEqual(len(self.sessions()), 1)

    def test_with_a_wrong_block(self):
        self.wrong(EB_ID="eb-nobody-has-this")
        self.healthy()
        self.healthy()

    def test_with_a_wrong_address(self):
        self.wrong(ODA_URL="http://127.0.0.1:%d" % free_port(), EB_ID="eb-1")
        self.healthy()

    def busy(self, call):
        """Whether the spool is searched without a pause while a script waits half a second."""
        rounds, look = [], Leftovers._round

        def counted(*args):
            rounds.append(1)
            return look(*args)

        os.environ.update(ODA_URL="http://127.0.0.1:%d" % free_port(), EB_ID="eb-2")
        with mock.patch.object(Leftovers, "_round", counted):
            scan(2)
            self.assertFalse(call(0.5))
        return len(rounds) > 2 * 0.5 / _recorder.POLL

    def test_keeps_no_processor_busy_while_another_waits_to_end(self):
        self.wrong(ODA_URL="http://127.0.0.1:%d" % free_port(), EB_ID="eb-1")
        self.assertFalse(self.busy(oda_helper.close))

    def test_that_was_repeated_keeps_no_processor_busy(self):
        for _ in range(2):
            self.script("scan(1)", ODA_EXIT_TIMEOUT="0", ODA_URL="http://127.0.0.1:9", EB_ID="eb-1")
        self.assertFalse(self.busy(oda_helper.flush))

    def test_is_told_how_to_send_to_another_address(self):
        eb_id = oda_helper.create_eb()
        self.assertTrue(oda_helper.close(PATIENCE))
        wrong = "http://127.0.0.1:%d" % free_port()
        first = self.script("scan(1)", ODA_EXIT_TIMEOUT="0.3", ODA_URL=wrong, EB_ID=eb_id)
        advice = "oda record drain --url=URL %s" % self.spool
        self.assertIn(advice, first.err)
        command = advice.replace("URL", self.server.url).split()
        subprocess.run([binary()] + command[1:], check=True, stdout=subprocess.DEVNULL)
        self.assertEqual(numbers(self.server.records(eb_id)), [1])
        self.assertEqual(self.sessions(), [])

    def test_with_the_address_of_something_that_hangs(self):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            self.wrong(ODA_URL="http://127.0.0.1:%d" % silent.getsockname()[1], EB_ID="eb-1")
            os.environ["ODA_EXIT_TIMEOUT"] = "60"
            self.assertLess(self.healthy(), 25)

    def test_with_an_address_that_is_something_else(self):
        gateway = Gateway(self, self.server, (404, PAGE))
        self.wrong(ODA_URL=gateway.url, EB_ID="eb-1")
        self.healthy()

    def test_is_reported_by_drain(self):
        self.wrong(EB_ID="eb-nobody-has-this")
        with self.assertLogs("oda_helper", "ERROR") as logs:
            self.assertFalse(oda_helper.drain(0.1))
            wait_until(lambda: logs.records, "the error")
        self.assertIn("could not be found", logs.output[0])


class ForkedChildren(Case):
    def test_make_their_own_identifiers(self):
        process = self.script(
            """
            from oda_helper import _archive
            _archive._minter._clock = lambda: 1790000000.0  # all in the same milliseconds
            for child in range(12):
                reader, writer = os.pipe()
                if os.fork() == 0:
                    os.write(writer, " ".join(_archive._minter.next("eb") for _ in range(150)).encode())
                    os._exit(0)
                os.close(writer)
                with os.fdopen(reader) as pipe:
                    print(pipe.read())
                os.wait()
            """
        )
        found = process.out.split()
        self.assertEqual((len(found), len(set(found))), (1800, 1800))


    def test_do_not_keep_a_session_that_their_parent_was_sending(self):
        self.script(
            """
            from oda_helper import _folder, _spool
            session = _folder.Folder(os.environ["ODA_SPOOL"]).make("eb-1.0123456789abcdef")
            guard = _spool.take_lock(session)
            reader, writer = os.pipe()
            child = os.fork()
            if child == 0:
                os.close(writer)
                os.read(reader, 1)  # until the parent is done
                os._exit(0)
            _spool.drop_lock(guard)
            assert _spool.take_lock(session) is not None
            os.close(writer)
            os.waitpid(child, 0)
            """
        )


class ADiskThatCannotSync(Case):
    def test_is_reported_and_tried_again(self):
        os.environ["ODA_SPOOL_SYNC"] = "always"
        eb_id = oda_helper.create_eb()
        fsync, failing, synced = os.fsync, [True], []

        def fails(descriptor):
            if failing[0]:
                raise OSError(errno.EIO, "Input/output error")
            synced.append(os.fstat(descriptor).st_ino)
            fsync(descriptor)

        with mock.patch("os.fsync", fails):
            with self.assertLogs("oda_helper", "ERROR") as logs:
                self.assertEqual(scan(1), 1)
            self.assertIn("Cannot sync the spool to disk", logs.output[0])
            self.assertNotIn("Traceback", logs.output[0])
            failing[0] = False
            scan(2)
        # Nobody knows which part of the first segment is on disk, so a new one
        # is begun, and its name is synced like its content.
        (folder,) = self.sessions()
        self.assertIn(os.stat(os.path.join(folder, "00000002.log")).st_ino, synced)
        self.assertIn(os.stat(folder).st_ino, synced)
        self.flushed()
        self.assertEqual(numbers(self.server.records(eb_id)), [1, 2])

    def test_is_waited_for_by_every_thread(self):
        os.environ["ODA_SPOOL_SYNC"] = "always"
        oda_helper.create_eb()
        fsync, ends, returned = os.fsync, [], []

        def slow(descriptor):
            begun = time.monotonic()
            time.sleep(0.05)
            fsync(descriptor)
            ends.append((begun, time.monotonic()))

        together = threading.Barrier(8)

        def record():
            for n in range(5):
                together.wait()
                begun = time.monotonic()
                scan(n)
                returned.append((begun, time.monotonic()))

        with mock.patch("os.fsync", slow):
            threads = [threading.Thread(target=record) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        for called, came in returned:
            self.assertTrue(any(called <= begun and ended <= came for begun, ended in ends))
