import errno
import glob
import json
import os
import shutil
import subprocess
import threading
import time
import unittest
import urllib.request
import zlib
from unittest import mock

import oda_helper
from oda_helper import _delivery, _folder, _outbox, _recorder, _session, _settings, _spool
from oda_helper import capture_request_response as capture
from oda_helper._delivery import Delivery
from oda_helper._leftovers import Leftovers
from oda_helper._outbox import Outbox
from support import PATIENCE, Case, binary, free_port, wait_until
from test_outage import _repoint, numbers


@capture
def scan(n):
    return n


class TheFolder(Case):
    """Where the spool is."""

    def setUp(self):
        super().setUp()
        self.eb_id = oda_helper.create_eb()
        self.assertTrue(oda_helper.close())
        self.blocked = os.path.join(self.spool, "file", "spool")
        with open(os.path.dirname(self.blocked), "w"):
            pass

    def test_for_temporary_files_is_not_needed_if_the_spool_can_be_used(self):
        with mock.patch("tempfile.gettempdir", side_effect=FileNotFoundError("no folder for temporary files")):
            scan(1)
            self.flushed()
            self.assertEqual(oda_helper.status().spool, self.spool)
            self.assertTrue(oda_helper.drain(PATIENCE))
        self.assertEqual(numbers(self.server.records(self.eb_id)), [1])

    def test_may_be_missing_altogether(self):
        os.environ["ODA_SPOOL"] = self.blocked
        with mock.patch("tempfile.gettempdir", side_effect=FileNotFoundError("no folder for temporary files")):
            with self.assertLogs("oda_helper", "ERROR") as logs:
                self.assertFalse(oda_helper.drain(PATIENCE))
            self.assertEqual(oda_helper.status().spool, self.blocked)
        self.assertIn("no folder for temporary files", logs.output[0])

    def test_is_chosen_again_after_close_whatever_a_thread_was_doing(self):
        recorder = _recorder.Recorder({})

        class ClosedMeanwhile(dict):
            def values(self):
                recorder._threads = recorder._spool = None
                return []

        recorder._threads, recorder._live = token, _ = object(), ClosedMeanwhile()
        recorder._leftover(token)
        self.assertIsNone(recorder.spool())

    def test_that_is_spare_is_sent_from_when_the_other_can_be_used_again(self):
        down = free_port()
        env = {"ODA_SPOOL": self.blocked, "ODA_URL": "http://127.0.0.1:%d" % down, "ODA_EXIT_TIMEOUT": "0"}
        first = self.script("scan(1)", **env)
        self.assertIn("Records are kept in " + self.spare, first.err)
        (name,) = os.listdir(self.spare)
        _repoint(os.path.join(self.spare, name), down, self.server.port)
        self.assertTrue(oda_helper.drain(PATIENCE))
        self.assertEqual(numbers(self.server.records(self.eb_id)), [1])
        self.assertEqual(os.listdir(self.spare), [])

    def test_that_is_spare_and_belongs_to_another_user_is_left_alone(self):
        with mock.patch.object(_settings.os, "geteuid", return_value=os.geteuid() + 1):
            os.mkdir(_settings.spare_folder())
            self.assertEqual(_settings.search_folders(self.spool), [self.spool])


    def test_that_is_removed_is_made_again(self):
        scan(1)
        self.flushed()
        shutil.rmtree(self.spool)
        self.assertTrue(oda_helper.drain(PATIENCE))
        self.assertEqual(self.sessions(), [])

    def test_that_cannot_be_searched_is_searched_again_soon(self):
        search, fails = Leftovers._search, [True]

        def once(*args):
            if fails:
                fails.pop()
                raise OSError(errno.EMFILE, "Too many open files")
            return search(*args)

        with mock.patch.object(Leftovers, "_search", once), mock.patch.object(_recorder, "TRY_AGAIN", 0.05):
            self.assertTrue(oda_helper.drain(PATIENCE))

    def test_that_cannot_be_searched_does_not_delay_the_end_of_a_process(self):
        scan(1)
        self.flushed()
        fails = mock.Mock(side_effect=PermissionError(errno.EACCES, "Permission denied"))
        with mock.patch.object(Leftovers, "_search", fails), self.assertLogs("oda_helper", "ERROR"):
            begun = time.monotonic()
            self.assertTrue(oda_helper.close(PATIENCE))
            self.assertLess(time.monotonic() - begun, 3)
            self.assertFalse(oda_helper.drain(0.3))

    def test_that_cannot_be_read_is_not_tried_all_the_time_while_somebody_waits(self):
        fails = mock.Mock(side_effect=OSError(errno.EMFILE, "Too many open files"))
        scan(1)
        self.flushed()
        with self.assertLogs("oda_helper", "ERROR") as logs:
            with mock.patch.object(Leftovers, "_search", fails), mock.patch.object(Outbox, "batch", fails):
                scan(2)
                if oda_helper.flush(0.5):  # the sender had begun to read before it failed
                    scan(3)
                    self.assertFalse(oda_helper.flush(0.5))
                self.assertFalse(oda_helper.close(0.5))
        for what in ("cannot be read", "cannot be searched"):
            said = [line for line in logs.output if what in line]
            self.assertTrue(1 <= len(said) <= 3, logs.output)
        self.flushed()


class TheSpool(Case):
    """Sessions as an ended process leaves them, with or without damage."""

    def setUp(self):
        super().setUp()
        self.eb_id, self.down = oda_helper.create_eb(), free_port()
        self.assertTrue(oda_helper.close())

    def left(self, count=10, **env):
        """A session with records that were not shipped."""
        env.setdefault("ODA_URL", "http://127.0.0.1:%d" % self.down)
        self.script("[scan(n) for n in range(%d)]" % count, ODA_EXIT_TIMEOUT="0", **env)
        (folder,) = self.sessions()
        _repoint(folder, self.down, self.server.port)
        return folder

    def lines(self, folder, name="00000001.log"):
        with open(os.path.join(folder, name), "rb") as file:
            return file.read().splitlines(keepends=True)

    def write(self, folder, lines, name="00000001.log"):
        with open(os.path.join(folder, name), "wb") as file:
            file.write(b"".join(lines))

    def drained(self, well=True):
        self.assertEqual(oda_helper.drain(PATIENCE), well)
        return numbers(self.server.records(self.eb_id))

    def test_has_the_documented_format(self):
        folder = self.left(3, ODA_USER="ada")
        session = folder[-16:]
        self.assertEqual(os.path.basename(folder), "%s.%s" % (self.eb_id, session))
        with open(os.path.join(folder, "block.json")) as file:
            block = json.load(file)
        url = self.server.url + "/api/v1"
        self.assertEqual(block, {"spool": 2, "eb_id": self.eb_id, "url": url, "user": "ada", "create": None})
        for n, line in enumerate(self.lines(folder), 1):
            crc, body = line[:-1].split(b" ", 1)
            key, sort, record = body.split(b" ", 2)
            self.assertEqual(crc, b"%08x" % zlib.crc32(body))
            self.assertEqual((key, sort), (b"%s-%d" % (session.encode(), n), b"record"))
            self.assertEqual(json.loads(record)["request_args"]["args"], [n - 1])
        self.assertEqual(oct(os.stat(folder).st_mode)[-3:], "700")
        self.assertEqual(self.drained(), [0, 1, 2])
        self.assertEqual(self.sessions(), [])

    def test_of_another_program_is_read(self):
        # As the Go recorder writes it.
        eb_id, session = self.eb_id + "x", "2c81153aee1a11b8"
        folder = os.path.join(self.spool, "%s.%s" % (eb_id, session))
        os.mkdir(folder)
        block = '{"spool":2,"eb_id":"%s","url":"%s/api/v1","user":"g\u00f6","create":{"n":1.50}}\n'
        self.write(folder, [(block % (eb_id, self.server.url)).encode()], "block.json")
        self.write(
            folder,
            [
                'ce740ca6 2c81153aee1a11b8-1 record {"request":"go","n":0,"t":"é<>"}\n'.encode(),
                '30f2098d 2c81153aee1a11b8-2 record {"request":"go","n":1.50}\n'.encode(),
            ],
        )
        self.assertTrue(oda_helper.drain(PATIENCE))
        stored = self.server.get("/ebs/" + eb_id)
        self.assertEqual([r["n"] for r in stored["request_responses"]], [0, 1.5])
        self.assertEqual((stored["n"], stored["metadata"]["created_by"]), (1.5, "gö"))
        self.assertEqual(self.sessions(), [])

    def test_is_sent_by_one_thread_at_a_time(self):
        self.left()
        leftovers = Leftovers(lambda url: True, lambda eb_id: None)
        self.addCleanup(leftovers.close)
        begun, steps = threading.Event(), Delivery.steps

        def slow(delivery):
            begun.set()
            time.sleep(0.3)
            return steps(delivery)

        with mock.patch.object(Delivery, "steps", slow):
            first = threading.Thread(target=leftovers.round, args=([self.spool], set()))
            first.start()
            self.addCleanup(first.join)
            self.assertTrue(begun.wait(PATIENCE))
            leftovers.round([self.spool], set())
        self.assertTrue(leftovers.empty())
        self.assertEqual(numbers(self.server.records(self.eb_id)), list(range(10)))

    def test_that_becomes_one_of_this_process_during_a_look_is_kept_in_mind(self):
        folder = self.left(1)
        session = _spool.enter(folder)
        block = _spool.read_block(session)
        self.addCleanup(os.close, _spool.take_lock(session))
        leftovers, take = Leftovers(lambda url: True, lambda eb_id: None), _spool.take_lock

        def meanwhile(path):
            leftovers.add(folder, block, 1)
            return take(path)

        with mock.patch.object(_spool, "take_lock", meanwhile):
            leftovers.round([self.spool], set())
        self.assertEqual((leftovers.own(), leftovers.lag()), ({os.path.basename(folder)}, 1))

    def test_that_could_not_be_opened_once_is_sent_later(self):
        for name in ("read_block", "take_lock"):
            with self.subTest(name):
                self.left()
                leftovers = Leftovers(lambda url: True, lambda eb_id: None)
                self.addCleanup(leftovers.close)
                fails = mock.Mock(side_effect=OSError(errno.EMFILE, "Too many open files"))
                with mock.patch.object(_spool, name, fails), self.assertLogs("oda_helper", "INFO") as logs:
                    leftovers.round([self.spool], set())
                    leftovers.hurry()
                    leftovers.round([self.spool], set())
                self.assertEqual(len(logs.output), 1, logs.output)
                self.assertEqual(len(leftovers.unsent), 1)
                leftovers.hurry()
                leftovers.round([self.spool], set())
                self.assertEqual((self.sessions(), leftovers.unsent), ([], set()))

    def test_of_this_process_that_could_not_be_opened_once_is_kept_in_mind(self):
        folder = self.left()
        leftovers = Leftovers(lambda url: True, lambda eb_id: None)
        self.addCleanup(leftovers.close)
        leftovers.add(folder, _spool.read_block(_spool.enter(folder)), 10)
        fails = mock.Mock(side_effect=OSError(errno.EMFILE, "Too many open files"))
        with mock.patch.object(_spool, "take_lock", fails), self.assertLogs("oda_helper", "ERROR"):
            self.assertGreater(leftovers.round([self.spool], set()), 1)
        self.assertEqual((leftovers.lag(), leftovers.lost), (10, 0))
        leftovers.hurry()
        leftovers.round([self.spool], set())
        self.assertEqual((leftovers.lag(), leftovers.lost, leftovers.unsent), (0, 0, set()))
        self.assertEqual(self.sessions(), [])

    def test_is_freed_of_what_killed_processes_were_making_or_removing(self):
        for name, age in ((".done-%016d" % 1, 0), (".new-%016d" % 2, 7200), (".new-%016d" % 3, 0), ("notes", 7200)):
            folder = os.path.join(self.spool, name)
            os.mkdir(folder)
            self.write(folder, [b"x"], "lock")
            os.utime(folder, (time.time() - age,) * 2)
        self.assertTrue(oda_helper.drain(PATIENCE))
        self.assertEqual(sorted(os.listdir(self.spool)), [".new-%016d" % 3, "notes"])

    def test_keeps_the_spelling_of_numbers_in_a_block_to_be_stored(self):
        self.script("oda_helper.create_eb()\nscan(1)", ODA_URL="http://127.0.0.1:%d" % self.down, ODA_EXIT_TIMEOUT="0")
        (folder,) = self.sessions()
        _repoint(folder, self.down, self.server.port)
        path, spelled = os.path.join(folder, _spool.BLOCK), b'"x":0.1234567890123456789012345,"y":1E400'
        with open(path, "rb") as file:
            text = file.read()
        with open(path, "wb") as file:
            file.write(text.replace(b'"create":{', b'"create":{' + spelled + b",").replace(spelled + b",}", spelled + b"}"))
        self.assertTrue(oda_helper.drain(PATIENCE))
        with urllib.request.urlopen("%s/api/v1/ebs/%s" % (self.server.url, os.path.basename(folder)[:-17])) as answer:
            self.assertIn(spelled, answer.read())

    def test_is_tried_once_more_at_the_end_of_a_process(self):
        folder = self.left(1, EB_ID="eb-nobody-has-this")
        # A later session of the block has its turn after the first.
        later = shutil.copytree(folder, folder[:-16] + "0123456789abcdef")
        self.write(later, [_spool.line(b"0123456789abcdef", 1, _spool.RECORD, b'{"request":"x"}')])
        leftovers = Leftovers(lambda url: True, lambda eb_id: None)
        self.addCleanup(leftovers.close)
        leftovers.round([self.spool], set())
        self.assertTrue(leftovers.finished(0))
        leftovers.hurry()
        self.assertFalse(leftovers.finished(0))
        leftovers.round([self.spool], set())
        self.assertTrue(leftovers.finished(0))
        self.assertFalse(leftovers.empty())

    def test_damaged_lines_are_put_aside_and_the_rest_is_shipped(self):
        folder = self.left()
        lines = self.lines(folder)
        flipped = bytearray(lines[2])
        flipped[40] ^= 1
        lines[2] = bytes(flipped)
        lines[4] = b"garbage\n"
        foreign = b"0123456789abcdef-1 {}"
        lines[5] = b"%08x %s\n" % (zlib.crc32(foreign), foreign)
        lines[6] = lines[6][:30]  # without its line break, it spoils the next
        lines[9] = lines[9][:-5]
        self.write(folder, lines)
        with self.assertLogs("oda_helper", "ERROR") as logs:
            self.assertEqual(self.drained(well=False), [0, 1, 3, 8])
        self.assertIn("damaged.log", logs.output[0])
        kept = self.lines(folder, "damaged.log")
        self.assertEqual(kept[1::2], [lines[2], lines[4], lines[5], lines[6] + lines[7], lines[9] + b"\n"])
        offsets = [0]
        for line in lines:
            offsets.append(offsets[-1] + len(line))
        want = [(2, "checksum"), (4, "not a line"), (5, "key"), (6, "checksum"), (9, "cut off")]
        for comment, (line, why) in zip(kept[::2], want):
            self.assertRegex(comment.decode(), r"^# 1 %d .*%s" % (offsets[line], why))
        # A second pass neither sends nor reports them again.
        self.fresh()
        with self.assertNoErrors():
            self.assertEqual(self.drained(), [0, 1, 3, 8])
        self.assertEqual(self.lines(folder, "damaged.log"), kept)

    def assertNoErrors(self):
        test = self

        class Watch:
            def __enter__(self):
                self.logs = test.assertLogs("oda_helper", "DEBUG")
                self.found = self.logs.__enter__()
                oda_helper._capture._log.debug("a line, since none would fail")

            def __exit__(self, *error):
                self.logs.__exit__(*error)
                test.assertEqual([r for r in self.found.records if r.levelname == "ERROR"], [])

        return Watch()

    def test_refused_records_are_put_aside_and_the_rest_is_shipped(self):
        folder = self.left(5)
        lines = self.lines(folder)
        session = folder[-16:].encode()
        lines[1] = _spool.line(session, 2, b"record", b'{"status":"OK"}')
        lines[3] = _spool.line(session, 4, b"record", b'{"request":"a","response":5}')
        self.write(folder, lines)
        with self.assertLogs("oda_helper", "ERROR") as logs:
            self.assertEqual(self.drained(well=False), [0, 2, 4])
        self.assertEqual(len([text for text in logs.output if "refused" in text]), 2)
        kept = self.lines(folder, "refused.log")
        self.assertEqual(kept[1::2], [lines[1], lines[3]])
        self.assertRegex(kept[0].decode(), r"^# 400 urn:oda:problem:invalid-request \S")

    def test_is_shipped_from_the_saved_position(self):
        folder = self.left(4)
        lines = self.lines(folder)
        for note, want in [
            (b"1 %d\n" % len(lines[0] + lines[1]), [2, 3]),
            (b"nonsense", [2, 3, 0, 1]),  # sending again stores nothing twice
        ]:
            self.write(folder, [note], "shipped")
            block = self.lines(folder, "block.json")
            self.assertEqual(self.drained(), want)
            self.fresh()
            if not os.path.exists(folder):
                os.mkdir(folder)
                self.write(folder, lines)
                self.write(folder, block, "block.json")

    def test_of_several_segments_is_shipped_in_order(self):
        folder = self.left(9)
        lines = self.lines(folder)
        self.write(folder, lines[:3])
        self.write(folder, lines[3:6] + [b"torn"], "00000002.log")
        self.write(folder, lines[6:], "00000004.log")
        with self.assertLogs("oda_helper", "ERROR"):
            self.assertEqual(self.drained(well=False), list(range(9)))  # one line is damaged
        self.assertEqual([os.path.basename(f) for f in glob.glob(folder + "/0*.log")], ["00000004.log"])

    def test_begins_a_new_segment_and_removes_what_is_shipped(self):
        before = _spool.SEGMENT_BYTES
        _spool.SEGMENT_BYTES = 2000
        self.addCleanup(setattr, _spool, "SEGMENT_BYTES", before)
        for n in range(100):
            scan(n)
        self.flushed()
        self.assertEqual(numbers(self.server.records(self.eb_id)), list(range(100)))
        (folder,) = self.sessions()
        (newest,) = glob.glob(folder + "/0*.log")
        self.assertGreater(int(os.path.basename(newest)[:8]), 5)

    def test_that_is_held_is_left_alone(self):
        scan(1)
        (folder,) = self.sessions()
        self.script("assert oda_helper.drain(10)")
        self.assertEqual(self.sessions(), [folder])

    def test_that_is_full_drops_new_records_and_says_so(self):
        os.environ.update(ODA_URL="http://127.0.0.1:%d" % self.down, ODA_SPOOL_LIMIT="2000")
        with self.assertLogs("oda_helper", "ERROR") as logs:
            for n in range(50):
                self.assertEqual(scan(n), n)
        self.assertEqual(len(logs.output), 1, logs.output)  # and then every 10 s
        self.assertIn("RECORDS ARE LOST: 1 dropped so far; the spool is full", logs.output[0])
        waiting = oda_helper.lag()
        self.assertTrue(0 < waiting < 50)
        self.fresh()
        (folder,) = self.sessions()
        _repoint(folder, self.down, self.server.port)
        self.assertEqual(self.drained(), list(range(waiting)))

    def test_on_a_failing_disk_keeps_complete_lines_and_goes_on(self):
        # A limit on the file size cuts a line in the middle, like a full disk.
        process = self.script(
            """
            import resource
            scan(0)
            resource.setrlimit(resource.RLIMIT_FSIZE, (900, resource.RLIM_INFINITY))
            for n in range(1, 20): assert scan(n) == n
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            scan(99)
            """,
            ODA_URL="http://127.0.0.1:%d" % self.down, ODA_EXIT_TIMEOUT="0",
        )  # fmt: skip
        self.assertIn("RECORDS ARE LOST", process.err)
        (folder,) = self.sessions()
        _repoint(folder, self.down, self.server.port)
        found = self.drained()
        self.assertEqual((found[0], found[-1]), (0, 99))
        self.assertEqual(found, sorted(found))
        self.assertEqual(self.sessions(), [])  # nothing was damaged

    def test_goes_on_after_a_call_was_interrupted_while_it_began_a_segment(self):
        opened = os.open

        def interrupted(path, flags, *args, **where):
            made = opened(path, flags, *args, **where)
            if str(path).endswith(".log") and flags & os.O_CREAT:  # not to send from it
                os.close(made)
                raise KeyboardInterrupt
            return made

        for n in range(2):  # the first segment, and a later one
            with mock.patch.object(_spool, "SEGMENT_BYTES", 1):
                with mock.patch.object(_session.os, "open", interrupted), self.assertRaises(KeyboardInterrupt):
                    scan(-1)
                scan(n)
        self.flushed()
        self.assertEqual(numbers(self.server.records(self.eb_id)), [0, 1])

    def test_on_a_disk_that_was_full_is_sent_and_removed(self):
        scan(1)
        self.flushed()
        full = mock.Mock(side_effect=OSError(errno.ENOSPC, "No space left on device"))
        with mock.patch("os.write", full), self.assertLogs("oda_helper", "ERROR"):
            scan(2)
            scan(3)  # this one begins a segment that stays empty
        self.assertFalse(oda_helper.close(PATIENCE))  # two records are lost
        self.assertEqual(self.sessions(), [])
        scan(4)
        wait_until(lambda: oda_helper.lag() == 0, "the record is stored")
        self.assertEqual(numbers(self.server.records(self.eb_id)), [1, 4])

    def test_on_a_full_disk_is_sent_once(self):
        folder, replace = self.left(10), _spool.replace
        leftovers = Leftovers(lambda url: True, lambda eb_id: None)
        self.addCleanup(leftovers.close)

        def full(session, name, content):
            if name == _spool.SHIPPED:
                raise OSError(errno.ENOSPC, "No space left on device")
            replace(session, name, content)

        with mock.patch.object(_spool, "replace", full), mock.patch.object(_delivery, "STEPS", 1):
            with mock.patch.object(_outbox, "BATCH_RECORDS", 3):
                for _ in range(6):
                    leftovers.round([self.spool], set())
        self.assertTrue(leftovers.empty())
        self.assertEqual(numbers(self.server.records(self.eb_id)), list(range(10)))
        self.assertEqual(leftovers.sent(self.server.url + "/api/v1"), 10)

    def test_on_a_full_disk_gets_no_half_sessions(self):
        full = mock.Mock(side_effect=OSError(errno.ENOSPC, "No space left on device"))
        for name in ("replace", "take_lock"):
            with mock.patch.object(_spool, name, full), self.assertRaises(OSError):
                _session.Session(_folder.Folder(self.spool), _spool.Block("eb-1", "http://x", None, None), 1 << 20, "never")
            self.assertEqual(self.sessions(), [])

    def test_that_is_removed_during_a_script_is_made_again(self):
        scan(1)
        self.flushed()
        (folder,) = self.sessions()
        shutil.rmtree(folder)
        with self.assertLogs("oda_helper", "ERROR"):
            scan(2)
            self.assertFalse(oda_helper.flush(PATIENCE))  # that record is lost
        scan(3)
        wait_until(lambda: oda_helper.lag() == 0, "the record is stored")
        self.assertEqual(numbers(self.server.records(self.eb_id))[-1], 3)

    def test_is_drained_by_the_archives_own_program(self):
        self.left(1500)
        subprocess.run([binary(), "record", "drain", self.spool], check=True, timeout=60, capture_output=True)
        self.assertEqual(numbers(self.server.records(self.eb_id)), list(range(1500)))
        self.assertEqual(self.sessions(), [])

    def test_is_drained_from_the_command_line(self):
        self.left(5)
        self.script("import runpy; sys.argv = ['x', '20']; runpy.run_module('oda_helper', run_name='x').get('main')()")
        self.assertEqual(numbers(self.server.records(self.eb_id)), list(range(5)))

    def test_a_session_that_cannot_be_used_does_not_stop_the_others(self):
        folder, n = self.left(2), 0
        with open(os.path.join(folder, "block.json")) as file:
            good = json.load(file)
        for wrong in ({"url": "http://127.0.0.1:99999/api/v1"}, {"url": 5}, {"url": "http:///api/v1"}, {"user": 5}, {"create": [1]}):
            n += 1
            bad = os.path.join(self.spool, "eb-bad.%016d" % n)
            os.mkdir(bad)
            self.write(bad, [json.dumps(dict(good, eb_id="eb-bad", **wrong)).encode()], "block.json")
            os.utime(os.path.join(bad, "block.json"), (n, n))  # it is older
        deep = os.path.join(self.spool, "eb-bad.%016d" % 0)
        os.mkdir(deep)
        self.write(deep, [b"[" * 200_000], "block.json")  # a RecursionError
        with self.assertLogs("oda_helper", "ERROR") as logs:
            self.assertEqual(self.drained(well=False), [0, 1])
        self.assertEqual(len(logs.output), 6, logs.output)
        self.assertEqual(len(self.sessions()), 6)

    def test_of_another_form_is_left_alone_and_named(self):
        folder = self.left(1)
        (block,), segment = self.lines(folder, "block.json"), self.lines(folder)
        for form in (b"1", b"3"):
            with self.subTest(form):
                self.fresh()
                self.write(folder, [block.replace(b'"spool":2', b'"spool":' + form)], "block.json")
                with self.assertLogs("oda_helper", "WARNING") as logs:
                    scan(7)  # a script that does something else learns of it, once
                    self.flushed()
                    wait_until(lambda: logs.output, "the warning")
                    self.assertTrue(oda_helper.close())
                said = "What is in %s cannot be sent: its block.json says that it is of form %s" % (folder, form.decode())
                self.assertEqual([said in text for text in logs.output], [True], logs.output)
                with self.assertLogs("oda_helper", "ERROR") as logs:
                    self.drained(well=False)
                self.assertIn(said, logs.output[0])
                self.assertEqual((self.sessions(), self.lines(folder)), ([folder], segment))
