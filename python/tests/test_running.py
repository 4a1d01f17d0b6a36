import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from unittest import mock

import oda_helper
from oda_helper import _process, _recorder, _running
from oda_helper import capture_request_response as capture
from support import NOBODY, PATIENCE, Case, Server, binary, free_port, wait_until

MANY = 1000 if os.environ.get("ODA_PROOF") else 300  # calls to compare
AS_MUCH = 1.5 if os.environ.get("ODA_PROOF") else 5.0  # what a call may cost without an archive


@capture
def hang(until, *rest, **options):
    """A call on the telescope that takes as long as the test wants."""
    until.wait(PATIENCE)


@capture
def scan(n):
    return n


class Event(threading.Event):
    def __repr__(self):
        return "an event"


@contextlib.contextmanager
def hanging(*rest, count=1, work=hang, **options):
    """Calls that go on during the statements."""
    until = Event()
    threads = [threading.Thread(target=work, args=(until,) + rest, kwargs=options, daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        until.set()
        for thread in threads:
            thread.join()


class Running(Case):
    """Tests of what goes on. A call is announced sooner than otherwise, and its lease is short."""

    after, lease = 0.05, 5

    def setUp(self):
        super().setUp()
        for name, value in (("AFTER", self.after), ("LEASE", self.lease)):
            patched = mock.patch.object(_running, name, value)
            patched.start()
            self.addCleanup(patched.stop)

    def running(self, eb_id):
        return self.server.get("/ebs/%s/running" % eb_id)["running"]

    def await_running(self, eb_id, count=1):
        wait_until(lambda: len(self.running(eb_id)) == count, "%d running calls" % count)
        return self.running(eb_id)


class ACall(Running):
    def test_that_lasts_is_announced_until_its_record_is_there(self):
        eb_id = oda_helper.create_eb("ska_mid")
        with hanging(7, token="secret", mode=["a"]):
            (call,) = self.await_running(eb_id)
        self.flushed()
        self.assertEqual(self.running(eb_id), [])
        self.assertEqual((call["request"], call["telescope"], call["silent"]), ("test_running.hang", "ska_mid", False))
        self.assertEqual(call["request_args"], {"args": ["an event", 7], "kwargs": {"token": "***", "mode": ["a"]}})
        (record,) = self.server.records(eb_id)
        self.assertEqual((record["request"], record["request_args"]), (call["request"], call["request_args"]))
        self.assertEqual(record["request_sent_at"], call["sent_at"])

    def test_is_renewed(self):
        eb_id = oda_helper.create_eb()
        with hanging():
            (first,) = self.await_running(eb_id)
            wait_until(lambda: self.running(eb_id)[0]["renewed_on"] > first["renewed_on"], "a renewal")
            (later,) = self.running(eb_id)
        self.assertEqual((later["since"], later["key"], later["silent"]), (first["since"], first["key"], False))

    def test_in_a_block_of_statements_belongs_to_it(self):
        with oda_helper.execution_block() as outer, hanging():
            with oda_helper.execution_block() as inner, hanging():
                self.await_running(inner)
                self.await_running(outer)
            self.flushed()
            self.assertEqual((len(self.running(inner)), len(self.running(outer))), (0, 1))
        self.flushed()
        self.assertEqual((len(self.server.records(inner)), len(self.server.records(outer))), (1, 1))
        self.assertEqual(self.running(outer), [])

    def test_may_create_the_block_that_it_is_recorded_in(self):
        @capture
        def observe(until):
            oda_helper.create_eb()
            until.wait(PATIENCE)

        with hanging(work=observe):
            wait_until(lambda: "EB_ID" in os.environ, "the block")
            eb_id = os.environ["EB_ID"]
            self.await_running(eb_id)
            later = oda_helper.create_eb()  # the record will be in this one
        self.flushed()
        self.assertEqual(len(self.server.records(later)), 1)
        wait_until(lambda: not self.running(eb_id), "the end of what was announced in the other")

    def test_of_a_coroutine_or_a_generator_is_announced_while_it_goes_on(self):
        @capture
        async def wait(until):
            while not until.is_set():
                await asyncio.sleep(0.01)

        @capture
        def numbers():
            yield 1
            yield 2

        @capture
        async def parts():
            yield 1
            yield 2

        async def both(until):
            left = parts()
            await left.__anext__()
            await asyncio.gather(wait(until), wait(until))
            await left.aclose()

        eb_id, until = oda_helper.create_eb(), threading.Event()
        kept = numbers()
        next(kept)
        loop = threading.Thread(target=lambda: asyncio.run(both(until)), daemon=True)
        loop.start()
        found = sorted(call["request"].rpartition(".")[2] for call in self.await_running(eb_id, 4))
        self.assertEqual(found, ["numbers", "parts", "wait", "wait"])
        until.set()
        loop.join()
        kept.close()
        self.flushed()
        self.assertEqual(self.running(eb_id), [])
        self.assertEqual(len(self.server.records(eb_id)), 4)

    def test_that_fails_ends_with_its_record(self):
        @capture
        def fails(until):
            until.wait(PATIENCE)
            raise ValueError("no beam")

        eb_id = oda_helper.create_eb()
        with mock.patch("threading.excepthook"), hanging(work=fails):
            self.await_running(eb_id)
        self.flushed()
        self.assertEqual(self.running(eb_id), [])
        self.assertEqual(self.server.records(eb_id)[0]["status"], "ERROR")

    def test_that_is_not_recorded_is_taken_back(self):
        eb_id = oda_helper.create_eb()
        with self.assertLogs("oda_helper", "ERROR"), mock.patch("oda_helper._capture.text", side_effect=MemoryError), hanging():
            self.await_running(eb_id)
        wait_until(lambda: not self.running(eb_id), "the end of the call")

    def test_whose_session_is_gone_is_recorded_and_not_announced_any_more(self):
        eb_id = oda_helper.create_eb()
        with hanging():
            self.await_running(eb_id)
            self.assertTrue(oda_helper.close(PATIENCE))
            self.assertEqual(len(self.running(eb_id)), 1)
        self.flushed()
        self.assertEqual(len(self.server.records(eb_id)), 1)
        wait_until(lambda: not self.running(eb_id), "the end of the call")

    def test_keeps_its_session_while_there_are_others(self):
        with mock.patch.multiple(_recorder, MAX_SESSIONS=1, RESTED=0.0, IDLE_SECONDS=0.0):
            first = oda_helper.create_eb()
            with mock.patch.object(_running.Running, "withdraw") as withdraw, hanging():
                self.await_running(first)
                for n in range(3):
                    oda_helper.create_eb()
                    scan(n)
                self.flushed()
                wait_until(lambda: len(self.sessions()) == 2, "the release of the others")
            self.flushed()
            self.assertEqual((self.running(first), len(self.server.records(first))), ([], 1))
            withdraw.assert_not_called()  # the record has the key that was announced

    def test_with_long_arguments_is_announced_without_them(self):
        eb_id = oda_helper.create_eb()
        with hanging("x" * 20000):
            (call,) = self.await_running(eb_id)
        self.assertIsNone(call["request_args"])

    def test_beyond_a_thousand_waits_for_room(self):
        eb_id = oda_helper.create_eb()
        with mock.patch.object(_running, "MOST", 3), hanging(count=4):
            keys = {call["key"] for call in self.await_running(eb_id, 3)}
            with hanging():
                wait_until(lambda: all(call["renewed_on"] > call["since"] for call in self.running(eb_id)), "a renewal")
                self.assertEqual({call["key"] for call in self.running(eb_id)}, keys)

    def test_for_which_the_archive_has_no_room_leaves_the_others_alone(self):
        eb_id = oda_helper.create_eb()
        with hanging():
            (known,) = self.await_running(eb_id)
            full = mock.Mock(status=429, passing=lambda: True, problem=lambda: {"type": "urn:oda:problem:too-many-running"})
            ask = _running.Client.request

            def request(client, method, path, *rest):
                return ask(client, method, path, *rest) if path.endswith(known["key"]) or "running" not in path else full

            with mock.patch.object(_running.Client, "request", request), hanging(count=20):
                wait_until(lambda: self.running(eb_id)[0]["renewed_on"] > known["renewed_on"], "a renewal")
                self.assertEqual(len(self.running(eb_id)), 1)

    def test_keeps_its_key_when_later_calls_are_recorded_first(self):
        server = Server().start()
        self.addCleanup(server.remove)
        os.environ["ODA_URL"] = server.url
        eb_id = oda_helper.create_eb()
        with hanging():
            wait_until(lambda: server.get("/running")["running"], "the call")
            (call,) = server.get("/running")["running"]
            server.stop()
            for n in range(3):
                scan(n)
        self.fresh()
        (folder,) = self.sessions()
        with open(os.path.join(folder, "00000001.log")) as file:
            keys = [line.split()[1] for line in file]
        self.assertEqual(keys[-1], call["key"])
        self.assertEqual([key.rpartition("-")[2] for key in keys], ["2", "3", "4", "1"])
        server.start()
        subprocess.run([binary(), "record", "drain", self.spool], check=True, timeout=60, capture_output=True)
        self.assertEqual([record["request"].rpartition(".")[2] for record in server.records(eb_id)], ["scan", "scan", "scan", "hang"])
        self.assertEqual((self.sessions(), server.get("/running")["running"]), ([], []))


class AShortCall(Running):
    after = 1.0

    def test_is_never_announced(self):
        asked, ask = [], _running._Archive.ask

        def asks(archive, method, key, body=None):
            asked.append(body)
            return ask(archive, method, key, body)

        eb_id = oda_helper.create_eb()
        with mock.patch.object(_running._Archive, "ask", asks):
            begun = time.monotonic()
            while time.monotonic() - begun < 2.5:  # the thread has looked by then
                scan(1)
                time.sleep(0.001)
            self.assertEqual(asked, [])
            begun = time.monotonic()
            with hanging():
                self.await_running(eb_id)
                self.assertGreater(time.monotonic() - begun, 1)
            self.assertEqual(len(asked), 1)


class AScript(Running):
    """A process that calls something that takes long."""

    hangs = """
from oda_helper import _running
_running.AFTER, _running.LEASE = 0.05, 5

@oda_helper.capture_request_response
def hang():
    time.sleep(60)
"""

    def test_that_is_killed_leaves_its_call_silent(self):
        eb_id = oda_helper.create_eb()
        process = self.script(self.hangs + "hang()", wait=False, EB_ID=eb_id)
        (call,) = self.await_running(eb_id)
        self.assertFalse(call["silent"])
        process.send_signal(signal.SIGKILL)
        wait_until(lambda: self.running(eb_id)[0]["silent"], "silence")
        self.assertEqual(self.running(eb_id)[0]["key"], call["key"])

    def test_that_is_stopped_ends_its_call(self):
        eb_id = oda_helper.create_eb()
        here = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"  # also in the background
        process = self.script(here + self.hangs + "hang()", wait=False, EB_ID=eb_id)
        self.await_running(eb_id)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        self.assertEqual(self.running(eb_id), [])
        self.assertIn("KeyboardInterrupt", self.server.records(eb_id)[0]["error"]["detail"])

    def test_ends_although_calls_go_on(self):
        eb_id = oda_helper.create_eb()
        begun = time.monotonic()
        self.script(
            self.hangs
            + """
import threading
threading.Thread(target=hang, daemon=True).start()
time.sleep(0.5)
""",
            EB_ID=eb_id, ODA_EXIT_TIMEOUT="30",
        )  # fmt: skip
        self.assertLess(time.monotonic() - begun, 25)

    def test_and_its_forked_children_announce_their_own(self):
        eb_id = oda_helper.create_eb()
        process = self.script(
            self.hangs
            + """
import threading
threading.Thread(target=hang, daemon=True).start()
while _running and not oda_helper._process.recorder().running._archives:
    time.sleep(0.01)

@oda_helper.capture_request_response
def fork():
    return os.fork()

if not fork():
    hang()
    os._exit(0)
hang()
""",
            wait=False, EB_ID=eb_id,
        )  # fmt: skip
        found = self.await_running(eb_id, 3)
        sessions = [call["key"].partition("-")[0] for call in found]
        self.assertEqual(sorted(map(sessions.count, set(sessions))), [1, 2])
        self.assertEqual({call["request"] for call in found}, {"__main__.hang"})
        renewed = {call["key"]: call["renewed_on"] for call in found}
        wait_until(lambda: all(call["renewed_on"] > renewed[call["key"]] for call in self.running(eb_id)), "a renewal of all")
        self.assertEqual(len(self.running(eb_id)), 3)
        process.kill()


class AnOutage(Running):
    needs_server = False

    def test_is_survived_by_what_goes_on(self):
        self.server = Server().start()
        self.addCleanup(self.server.remove)
        os.environ["ODA_URL"] = self.server.url
        eb_id = oda_helper.create_eb()
        with hanging():
            (call,) = self.await_running(eb_id)
            self.server.stop()
            with hanging():  # begins during the outage
                self.server.start()
                self.await_running(eb_id, 2)
                self.assertIn(call["key"], {each["key"] for each in self.running(eb_id)})
        self.flushed()
        self.assertEqual((self.running(eb_id), len(self.server.records(eb_id))), ([], 2))

    def test_that_has_the_block_made_here_announces_the_call_once_the_archive_has_it(self):
        self.server = Server()
        self.addCleanup(self.server.remove)
        os.environ["ODA_URL"] = self.server.url
        eb_id = oda_helper.create_eb()
        with hanging():
            self.server.start()
            wait_until(lambda: self.server.get("/running")["running"], "the call")
            self.assertEqual(self.running(eb_id)[0]["request"], "test_running.hang")


class Answers(BaseHTTPRequestHandler):
    """An archive that answers everything with the same."""

    protocol_version = "HTTP/1.1"
    status, hold, heard = 503, None, []

    def do_PUT(self):
        self.heard.append((self.path, self.headers.get("Authorization")))
        if self.hold:
            self.hold.wait(PATIENCE)
        body = json.dumps({"type": "urn:oda:problem:forbidden", "title": "No"}).encode()
        self.send_response(self.status)
        self.send_header("Content-Type", "application/problem+json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_DELETE = do_PUT

    def log_message(self, *_):
        pass


class TheCallerNoticesNothing(Running):
    after = 0.02

    def answering(self, **members):
        """The address of an archive that answers so, and what it hears."""
        handler = type("Handler", (Answers,), dict(members, heard=[]))
        server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return "http://127.0.0.1:%d" % server.server_port, handler.heard

    def test_of_an_archive_that_is_away_or_slow_or_refuses(self):
        never = threading.Event()
        self.addCleanup(never.set)
        urls = {
            "up": self.server.url, "away": "http://127.0.0.1:%d" % free_port(),
            "refusing": self.answering(status=403)[0], "hanging": self.answering(hold=never)[0],
        }  # fmt: skip
        up = oda_helper.create_eb()
        with contextlib.ExitStack() as calls:
            for url in urls.values():  # something to announce to each of them, again and again
                os.environ.update(ODA_URL=url)
                calls.enter_context(hanging(count=5))
            for tries in range(3):  # the machine may be busy
                p99 = self.measure(urls)
                if all(p99[name] <= AS_MUCH * p99["up"] for name in p99):
                    break
            self.assertEqual(len(self.await_running(up, 5)), 5)
        self.assertTrue(all(p99[name] <= AS_MUCH * p99["up"] for name in p99), p99)

    def measure(self, urls):
        """The p99 of a call that does nothing, with each archive in turn."""
        took = {name: [] for name in urls}
        for n in range(MANY):
            for name, url in urls.items():
                os.environ["ODA_URL"] = url
                begun = time.perf_counter()
                scan(n)
                took[name].append(time.perf_counter() - begun)
            time.sleep(0.001)
        return {name: sorted(times)[int(MANY * 0.99)] for name, times in took.items()}

    def test_if_no_thread_can_be_started(self):
        oda_helper.create_eb()
        scan(0)
        with mock.patch.object(threading.Thread, "start", side_effect=RuntimeError("too many threads")):
            self.assertEqual(scan(1), 1)
        self.flushed()

    def test_and_the_token_goes_to_the_archive_of_its_settings(self):
        url, heard = self.answering(status=403)
        os.environ.update(ODA_URL=url, ODA_TOKEN="mine", EB_ID="eb-1")
        with hanging():
            wait_until(lambda: [each for each in heard if "/running/" in each[0]], "the call")
            os.environ["ODA_URL"] = NOBODY
        self.assertEqual({token for _, token in heard}, {"Bearer mine"})


class TheThread(Running):
    def setUp(self):
        super().setUp()
        self.before = set(threading.enumerate())

    def threads(self):
        return [each for each in threading.enumerate() if each.name == "oda_helper_running" and each not in self.before]

    def test_ends_when_the_recorder_is_closed(self):
        eb_id = oda_helper.create_eb()
        with hanging():
            self.await_running(eb_id)
            self.assertEqual(len(self.threads()), 1)
        self.assertTrue(oda_helper.close(PATIENCE))
        wait_until(lambda: not self.threads(), "the end of the thread")
        with hanging():  # it is there again when it is needed
            self.await_running(eb_id)

    def test_is_one_however_many_call(self):
        oda_helper.create_eb()
        with hanging(count=20):
            self.assertEqual(len(self.threads()), 1)

    def test_rests_when_no_call_goes_on(self):
        oda_helper.create_eb()
        scan(1)
        running = _process.recorder().running
        wait_until(lambda: running._resting, "the rest")
        self.assertEqual(running.going_on(), [])
