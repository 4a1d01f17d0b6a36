import os
import signal
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from unittest import mock

import oda_client
import oda_helper
from oda_helper import _archive, _delivery, _process, _recorder, _spool
from oda_helper import capture_request_response as capture
from oda_helper._http import Client
from proxy import Proxy
from support import PATIENCE, Case, Server, free_port, wait_until

@capture
def scan(n):
    return n


def numbers(records):
    return [record["request_args"]["args"][0] for record in records]


class AnUnavailableArchive(Case):
    """Each test has its own archive, which it stops and starts."""

    needs_server = False

    def setUp(self):
        super().setUp()
        self.server = Server()
        self.addCleanup(self.server.remove)
        os.environ["ODA_URL"] = self.server.url

    def test_gets_the_block_and_every_record_when_it_is_back(self):
        with self.assertLogs("oda_helper", "WARNING") as logs:
            eb_id = oda_helper.create_eb("ska_low")
            for n in range(50):
                scan(n)
            self.assertFalse(oda_helper.flush(0.5))
            self.assertEqual(oda_helper.lag(), 50)
        self.assertEqual(len(logs.output), 1, logs.output)
        self.server.start()
        self.flushed()
        self.assertEqual(numbers(self.server.records(eb_id)), list(range(50)))
        self.assertEqual(self.server.get("/ebs/" + eb_id)["telescope"], "ska_low")
        self.assertEqual(oda_helper.lag(), 0)

    def test_that_is_killed_repeatedly_loses_and_repeats_nothing(self):
        self.server.start()
        eb_id = oda_helper.create_eb()
        for n in range(300):
            scan(n)
            if n % 60 == 30:
                self.server.stop()
                self.server.start()
            time.sleep(0.001)
        self.flushed()
        self.assertEqual(numbers(self.server.records(eb_id)), list(range(300)))

    def test_does_not_delay_the_end_of_a_process_for_long(self):
        begun = time.monotonic()
        process = self.script(
            """
            oda_helper.create_eb()
            [scan(n) for n in range(10)]
            """,
            ODA_EXIT_TIMEOUT="1.5",
        )
        self.assertLess(time.monotonic() - begun, 12)
        self.assertEqual(process.out, "")
        self.assertIn("10 records could not be sent in time", process.err)
        self.assertEqual(len(self.sessions()), 1)
        self.server.start()
        # Any later process sends them at its first call.
        second = self.script("scan(99)", EB_ID=oda_helper.create_eb())
        self.assertEqual((second.out, second.err), ("", ""))
        ids = self.server.get("/ebs?created_after=1970-01-01")
        self.assertEqual([numbers(self.server.records(eb_id)) for eb_id in ids], [[99], list(range(10))])

    def test_that_hangs_does_not_delay_the_end_of_a_process_for_long(self):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            url = "http://127.0.0.1:%d" % silent.getsockname()[1]
            begun = time.monotonic()
            self.script("scan(1)", EB_ID="eb-1", ODA_URL=url, ODA_EXIT_TIMEOUT="1")
            self.assertLess(time.monotonic() - begun, 12)
            begun = time.monotonic()
            os.environ["ODA_URL"] = url
            self.assertTrue(oda_helper.create_eb().startswith("eb-"))
            self.assertLess(time.monotonic() - begun, 10)

    def test_gets_a_block_without_records_too(self):
        process = self.script("import oda_helper; oda_helper.create_eb('ska_mid')", ODA_EXIT_TIMEOUT="0.2")
        self.assertEqual(process.out, "")
        self.server.start()
        self.assertTrue(oda_helper.drain(PATIENCE))
        (eb_id,) = self.server.get("/ebs?created_after=1970-01-01")
        self.assertEqual(self.server.get("/ebs/" + eb_id)["telescope"], "ska_mid")
        self.assertEqual(self.sessions(), [])

    def test_has_a_block_that_is_corrected_once_it_is_stored(self):
        eb_id = oda_helper.create_eb("ska_low")
        self.server.start()
        scan(1)
        self.flushed()
        archive = oda_client.Archive(self.server.url)
        block = archive.get(eb_id)
        block["telescope"] = "ska_mid"
        archive.put(block, keep_records=True)
        _process._recorder = _process.recorder().abandon()  # as in a forked child
        scan(2)
        self.flushed()
        self.assertEqual(numbers(self.server.records(eb_id)), [1, 2])

    def test_is_reported_once_when_it_is_back_after_a_long_outage(self):
        for patience, level in ((0.0, "WARNING"), (3600.0, "INFO")):
            with self.subTest(level), mock.patch.object(_delivery, "LONG_OUTAGE", patience):
                self.fresh()
                with self.assertLogs("oda_helper", "INFO") as logs:
                    oda_helper.create_eb()
                    for n in range(30):
                        scan(n)
                    wait_until(lambda: any("is unavailable" in line for line in logs.output), "the warning")
                    self.server.start()
                    self.flushed()
                    scan(30)
                    self.assertTrue(oda_helper.close())
                back = [line for line in logs.output if "is back," in line]
                self.assertEqual(len(back), 1, logs.output)
                self.assertRegex(back[0], r"%s:oda_helper:The archive at http://127.0.0.1:\d+/api/v1 is back, 3[01] records sent\." % level)
                self.server.stop()

    def test_is_reported_when_it_is_back_while_the_script_goes_on(self):
        with mock.patch.object(_delivery, "LONG_OUTAGE", 0.0), self.assertLogs("oda_helper", "WARNING") as logs:
            with mock.patch.object(_archive, "CREATE_TIMEOUT", 0.2):
                for _ in range(_recorder.MAX_SESSIONS + 2):  # some sessions are sent as leftovers
                    oda_helper.create_eb()
                    scan(0)
            wait_until(lambda: logs.output, "the warning")
            self.server.start()
            n = 0
            while not any("is back," in line for line in logs.output) and n < 20000:
                scan(n)
                n += 1
                time.sleep(0.001)
            self.flushed()
        back = [line for line in logs.output if "is back," in line]
        self.assertEqual(len(back), 1, logs.output)
        self.assertGreaterEqual(int(back[0].split(" records sent")[0].split()[-1]), _recorder.MAX_SESSIONS + 2)

    def test_that_is_known_only_later(self):
        os.environ["ODA_URL"] = "ftp://x"
        eb_id = oda_helper.create_eb()
        self.server.start()
        os.environ["ODA_URL"] = self.server.url
        scan(1)
        self.flushed()
        self.assertEqual(numbers(self.server.records(eb_id)), [1])


class ATryInProgress(Case):
    """Somebody asks for everything to be sent while one session is being tried."""

    needs_server = False

    def test_does_not_swallow_the_question(self):
        tries, asked = [], threading.Event()

        class Busy(BaseHTTPRequestHandler):
            def do_POST(self):
                self.rfile.read(int(self.headers["Content-Length"]))
                if "eb-1" in self.path:
                    tries.append(time.monotonic())
                    asked.wait(PATIENCE)
                self.send_response(503)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        with ThreadingHTTPServer(("127.0.0.1", 0), Busy) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            self.addCleanup(server.shutdown)
            self.addCleanup(asked.set)
            other = "http://127.0.0.1:%d" % server.server_port
            self.script("scan(1)", ODA_URL=other, EB_ID="eb-1", ODA_EXIT_TIMEOUT="0")
            del tries[:]
            os.environ.update(ODA_URL="http://127.0.0.1:%d" % free_port(), EB_ID="eb-2")
            scan(2)
            wait_until(lambda: tries, "the first try")
            self.assertFalse(oda_helper.drain(0.1))
            asked.set()
            # Nobody but the one who asks tries the archive of another run so soon.
            wait_until(lambda: len(tries) > 1, "the try that was asked for")
            server.shutdown()


class AKilledProcess(Case):
    def test_leaves_everything_to_the_next(self):
        eb_id, down = oda_helper.create_eb(), free_port()
        process = self.script(
            """
            [scan(n) for n in range(2000)]
            print("done", flush=True)
            time.sleep(60)
            """,
            wait=False,
            ODA_URL="http://127.0.0.1:%d" % down,
        )
        self.assertEqual(process.stdout.readline(), "done\n")
        process.send_signal(signal.SIGKILL)
        process.wait()
        for folder in self.sessions():  # the archive has moved in the meantime
            _repoint(folder, down, self.server.port)
        self.assertTrue(oda_helper.drain(PATIENCE))
        self.assertEqual(numbers(self.server.records(eb_id)), list(range(2000)))

    def test_while_it_ships_repeats_nothing(self):
        eb_id = oda_helper.create_eb()
        for round in range(3):
            process = self.script(
                """
                n = int(os.environ["FROM"])
                while True:
                    scan(n)
                    n += 1
                    print(n, flush=True)
                """,
                wait=False,
                FROM=str(round * 10**6),
            )
            for _ in range(300):
                process.stdout.readline()
            process.kill()
            process.wait()
        self.assertTrue(oda_helper.drain(PATIENCE))
        found = numbers(self.server.records(eb_id))
        for round in range(3):
            part = [n - round * 10**6 for n in found if n // 10**6 == round]
            self.assertEqual(part, list(range(len(part))))
            self.assertGreaterEqual(len(part), 300)


class ALostAnswer(Case):
    def test_stores_each_record_and_each_block_once(self):
        proxy = Proxy(self.server.port, lose=3)
        self.addCleanup(proxy.close)
        os.environ["ODA_URL"] = proxy.url
        before = len(self.server.get("/ebs?created_after=1970-01-01"))
        eb_id = oda_helper.create_eb("ska_low")
        for n in range(20):
            scan(n)
        self.flushed()
        self.assertEqual(proxy.lost, 3)
        self.assertEqual(numbers(self.server.records(eb_id)), list(range(20)))
        # Creation was tried twice under one key, then with PUT.
        self.assertLessEqual(len(self.server.get("/ebs?created_after=1970-01-01")), before + 2)

    def test_to_a_put_is_resolved_by_comparing(self):
        down = free_port()
        os.environ["ODA_URL"] = "http://127.0.0.1:%d" % down
        eb_id = oda_helper.create_eb("ska_low")
        scan(1)
        self.fresh()
        (folder,) = self.sessions()
        proxy = Proxy(self.server.port, lose=1)
        self.addCleanup(proxy.close)
        _repoint(folder, down, proxy.port)
        self.assertTrue(oda_helper.drain(PATIENCE))
        self.assertEqual(proxy.lost, 1)
        self.assertEqual(numbers(self.server.records(eb_id)), [1])

    def test_leaves_another_block_of_that_name_alone(self):
        down = free_port()
        os.environ["ODA_URL"] = "http://127.0.0.1:%d" % down
        eb_id = oda_helper.create_eb("ska_low")
        scan(1)
        self.fresh()
        (folder,) = self.sessions()
        _repoint(folder, down, self.server.port)
        other = Client(self.server.url + "/api/v1")
        self.assertEqual(other.request("PUT", "/ebs/" + eb_id, b'{"telescope":"ska_mid"}').status, 200)
        other.close()
        with self.assertLogs("oda_helper", "ERROR") as logs:
            self.assertFalse(oda_helper.drain(PATIENCE))
        self.assertIn("another ExecutionBlock", logs.output[0])
        self.assertEqual(self.server.records(eb_id), [])
        self.assertEqual(self.sessions(), [folder])


def _repoint(folder, old, new):
    path = os.path.join(folder, "block.json")
    began = os.stat(path).st_mtime_ns
    with open(path) as file:
        text = file.read()
    with open(path, "w") as file:
        file.write(text.replace(":%d/" % old, ":%d/" % new))
    os.utime(path, ns=(began, began))


class AForkedChild(Case):
    def test_records_in_its_own_session(self):
        proxy = Proxy(self.server.port, delay=0.1)  # the parent is sending when it forks
        self.addCleanup(proxy.close)
        eb_id = oda_helper.create_eb()
        process = self.script(
            """
            children = []
            for n in range(4):
                scan(n)
                time.sleep(0.07)
                child = os.fork()
                if child == 0:
                    for k in range(25): scan(1000 * (n + 1) + k)
                    sys.exit(0)
                children.append(child)
            scan(4)
            assert [os.waitpid(child, 0)[1] for child in children] == [0] * 4
            """,
            ODA_URL=proxy.url,
            PYTHONWARNINGS="ignore",  # Python 3.12 warns about forks with threads
        )
        self.assertEqual((process.out, process.err), ("", ""))
        found = numbers(self.server.records(eb_id))
        self.assertEqual([n for n in found if n < 1000], list(range(5)))
        for child in range(1, 5):
            part = [n % 1000 for n in found if n // 1000 == child]
            self.assertEqual(part, list(range(25)))
        oda_helper.close()
        self.assertEqual(self.sessions(), [])

    def test_does_not_keep_what_its_parent_was_sending(self):
        down = free_port()
        self.script("scan(1)", EB_ID="eb-1", ODA_URL="http://127.0.0.1:%d" % down, ODA_EXIT_TIMEOUT="0")
        (folder,) = self.sessions()
        with socket.create_server(("127.0.0.1", 0)) as silent:
            _repoint(folder, down, silent.getsockname()[1])
            parent = self.script(
                """
                oda_helper.drain(0)
                sys.stdin.readline()
                if os.fork() == 0:
                    print(os.getpid(), flush=True)
                time.sleep(60)
                """,
                wait=False,
                PYTHONWARNINGS="ignore",
            )
            with silent.accept()[0]:  # the parent sends, and waits for an answer
                parent.stdin.write("\n")
                parent.stdin.flush()
                child = int(parent.stdout.readline())
                self.addCleanup(os.kill, child, signal.SIGKILL)
                parent.kill()
                parent.wait()
        guard = _spool.take_lock(_spool.enter(folder))
        self.assertIsNotNone(guard)
        os.close(guard)

    def test_sends_although_a_thread_of_its_parent_was_importing(self):
        eb_id = oda_helper.create_eb()
        self.script(
            """
            import threading
            begun = threading.Event()
            class Slow:
                def find_spec(name, *_):
                    if name == "urllib.request":
                        begun.set()
                        time.sleep(0.3)
            sys.meta_path.insert(0, Slow)
            scan(0)
            begun.wait(20)
            if os.fork() == 0:
                scan(1)
                os._exit(0 if oda_helper.flush(10) else 1)
            assert os.wait()[1] == 0
            """,
            PYTHONWARNINGS="ignore",
        )
        self.assertEqual(sorted(numbers(self.server.records(eb_id))), [0, 1])

    def test_of_multiprocessing_is_shipped_by_its_parent(self):
        eb_id = oda_helper.create_eb()
        self.script(
            """
            import multiprocessing
            with multiprocessing.get_context("fork").Pool(2) as pool:
                pool.map(scan, range(40))
            """
        )
        self.assertTrue(oda_helper.drain(PATIENCE))
        self.assertEqual(sorted(numbers(self.server.records(eb_id))), list(range(40)))

    def test_stores_the_block_that_its_parent_could_not(self):
        down = free_port()
        process = self.script(
            """
            oda_helper.create_eb()
            if os.fork() == 0:
                scan(1)
                sys.exit(0)
            os.wait()
            os.kill(os.getpid(), 9)
            """,
            wait=False,
            ODA_URL="http://127.0.0.1:%d" % down,
            ODA_EXIT_TIMEOUT="0.1",
        )
        process.wait(60)
        for folder in self.sessions():
            _repoint(folder, down, self.server.port)
        self.assertTrue(oda_helper.drain(PATIENCE))
        eb_id = self.server.get("/ebs?created_after=1970-01-01")[-1]
        self.assertEqual(numbers(self.server.records(eb_id)), [1])


class ManyAtOnce(Case):
    def test_processes_record_into_one_block(self):
        eb_id = oda_helper.create_eb()
        text = "[scan(int(os.environ['FROM']) + n) for n in range(200)]"
        processes = [self.script(text, wait=False, FROM=str(1000 * i)) for i in range(3)]
        self.assertEqual([process.wait(60) for process in processes], [0, 0, 0])
        found = numbers(self.server.records(eb_id))
        for i in range(3):
            self.assertEqual([n % 1000 for n in found if n // 1000 == i], list(range(200)))

    def test_blocks_of_one_process_need_few_open_files(self):
        proxy = Proxy(free_port())  # nobody listens there
        os.environ["ODA_URL"] = proxy.url
        blocks = []
        before = len(os.listdir("/dev/fd"))
        for n in range(50):
            blocks.append(oda_helper.create_eb())
            scan(n)
        oda_helper.flush(1)
        self.assertLess(len(os.listdir("/dev/fd")) - before, 60)
        self.assertEqual(oda_helper.lag(), 50)
        proxy.forward(self.server.port)
        self.addCleanup(proxy.close)
        self.flushed()
        self.assertEqual(oda_helper.lag(), 0)
        self.assertEqual([numbers(self.server.records(b)) for b in blocks], [[n] for n in range(50)])


class ASignalHandler(Case):
    def test_may_record_in_the_middle_of_a_recording(self):
        eb_id = oda_helper.create_eb()
        process = self.script(
            """
            import signal
            fired = []
            def handler(*_):
                fired.append(1)
                scan(-1)
            scan(0)  # opens the session, which takes longer than a tick
            signal.signal(signal.SIGALRM, handler)
            signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
            for n in range(1, 3000): scan(n)
            signal.setitimer(signal.ITIMER_REAL, 0)
            assert oda_helper.flush(20)
            print(len(fired))
            """
        )
        found = numbers(self.server.records(eb_id))
        self.assertEqual([n for n in found if n >= 0], list(range(3000)))
        self.assertEqual(found.count(-1), int(process.out))


    def test_may_wait_in_the_middle_of_a_recording(self):
        eb_id = oda_helper.create_eb()
        process = self.script(
            """
            import signal
            signal.signal(signal.SIGTERM, lambda *_: print(oda_helper.flush(10)))
            write = os.write
            def interrupted(*args):
                os.write = write
                os.kill(os.getpid(), signal.SIGTERM)
                return write(*args)
            scan(1)
            os.write = interrupted
            scan(2)
            print(oda_helper.close(10))
            """
        )
        self.assertEqual(process.out, "True\nTrue\n")
        self.assertEqual(numbers(self.server.records(eb_id)), [1, 2])


class RecordsStayInTheSpool(Case):
    def test_if_something_else_answers(self):
        for text in (b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nlogin!", b"HTTP/1.1 400 No\r\n\r\n", b"x"):
            with self.subTest(text=text), socket.create_server(("127.0.0.1", 0)) as listener:
                self.fresh()

                def answer(listener=listener, text=text):
                    while True:
                        try:
                            near, _ = listener.accept()
                        except OSError:
                            return
                        with near:
                            near.recv(1 << 16)
                            near.sendall(text)

                thread = threading.Thread(target=answer, daemon=True)
                thread.start()
                os.environ.update(ODA_URL="http://127.0.0.1:%d" % listener.getsockname()[1], EB_ID="eb-1")
                with self.assertLogs("oda_helper", "WARNING") as logs:
                    scan(1)
                    wait_until(lambda: logs.records, "a warning about the answer")
                    self.assertFalse(oda_helper.flush(0.1))
                self.assertEqual(oda_helper.lag(), 1)
                listener.shutdown(socket.SHUT_RDWR)
                thread.join()

    def test_if_the_block_is_unknown(self):
        os.environ["EB_ID"] = "eb-unknown"
        with self.assertLogs("oda_helper", "ERROR") as logs:
            scan(1)
            wait_until(lambda: logs.records, "the error")
            self.assertFalse(oda_helper.flush(0.1))
        self.assertEqual(len(logs.output), 1)
        self.assertIn("could not be found", logs.output[0])
        self.assertEqual(oda_helper.lag(), 1)


class ASlowArchive(Case):
    def test_is_not_waited_for(self):
        proxy = Proxy(self.server.port, delay=0.5)
        self.addCleanup(proxy.close)
        os.environ.update(ODA_URL=proxy.url, EB_ID=oda_helper.create_eb())
        begun = time.monotonic()
        for n in range(300):
            scan(n)
        self.assertLess(time.monotonic() - begun, 5)
        wait_until(lambda: oda_helper.lag() == 0, "the records are shipped")
