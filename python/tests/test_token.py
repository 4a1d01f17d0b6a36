import json
import logging
import os
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from unittest import mock

import oda_helper
from oda_helper import _http
from oda_helper import capture_request_response as capture
from support import PATIENCE, Case, Server, binary, free_port, wait_until


@capture
def scan(n):
    return n


class AnArchiveThatWantsAToken(Case):
    """Tokens are made and revoked while the archive runs."""

    needs_server = False

    def setUp(self):
        super().setUp()
        self.server = Server()
        self.addCleanup(self.server.remove)
        self.tokens = os.path.join(self.server.folder, "tokens")
        self.own = os.path.join(self.server.folder, "own")
        self.server._flags = ("--tokens", self.tokens)
        self.reader = self.token("create", "--name", "reader", "--role", "reader")
        os.environ.update(ODA_URL=self.server.url, ODA_TOKEN_FILE=self.own)

    def token(self, command, *flags):
        done = subprocess.run(
            [binary(), "token", command, "--file", self.tokens, *flags], check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    def renew(self, name, role, *flags):
        with open(self.own, "w") as file:
            file.write(self.token("create", "--name", name, "--role", role, *flags))
        if self.server._process:
            wait_until(lambda: self.status() != 401, "the archive follows the file")

    def status(self):
        """What the archive answers to the own token."""
        client = _http.Client(self.server.url + "/api/v1")
        try:
            return client.request("GET", "/openapi.json").status
        finally:
            client.close()

    def records(self, eb_id):
        client = _http.Client(self.server.url + "/api/v1")
        self.addCleanup(client.close)
        with mock.patch.dict(os.environ, ODA_TOKEN=self.reader):
            answer = client.request("GET", "/ebs/" + eb_id)
        return [each["request_args"]["args"][0] for each in answer.document().get("request_responses", [])]

    def test_gets_everything_when_a_revoked_token_is_renewed(self):
        self.renew("night", "recorder")
        self.server.start()
        eb_id = oda_helper.create_eb()
        for n in range(10):
            scan(n)
        self.flushed()
        self.token("revoke", "--name", "night")
        with self.assertLogs("oda_helper", "WARNING") as logs:
            wait_until(lambda: self.status() == 401, "the archive follows the file")
            for n in range(10, 20):
                scan(n)
            wait_until(lambda: any("does not accept the token (401" in line for line in logs.output), "the warning")
            self.assertFalse(oda_helper.flush(1.5))
            self.assertGreaterEqual(oda_helper.lag(), 10)
        self.assertEqual(len(logs.output), 1, logs.output)
        self.assertNotIn("oda_", "".join(logs.output).replace("oda_helper", ""))
        self.renew("day", "recorder")
        self.flushed()
        self.assertEqual(self.records(eb_id), list(range(20)))

    def test_gets_a_block_that_was_made_with_a_token_of_too_small_a_role(self):
        self.renew("night", "reader")
        self.server.start()
        with self.assertLogs("oda_helper", "ERROR") as logs:
            eb_id = oda_helper.create_eb("ska_mid")
            for n in range(10):
                scan(n)
            wait_until(lambda: logs.output, "the message")
            self.assertFalse(oda_helper.flush(1.5))
        told = [line for line in logs.output if eb_id in line]  # a thread of another test may end later
        self.assertEqual(len(told), 1, logs.output)
        self.assertIn("403", told[0])
        self.renew("day", "recorder")
        self.flushed()
        self.assertEqual(self.records(eb_id), list(range(10)))

    def test_gets_everything_when_the_file_with_the_token_is_there(self):
        self.server.start()
        with self.assertLogs("oda_helper", "WARNING") as logs:
            eb_id = oda_helper.create_eb()
            scan(1)
            wait_until(lambda: logs.output, "the message")
        self.assertIn("ODA_TOKEN_FILE", logs.output[0])
        self.renew("night", "recorder")
        self.flushed()
        self.assertEqual(self.records(eb_id), [1])

    def test_refuses_to_save_without_one(self):
        self.renew("night", "recorder")
        self.server.start()
        with self.assertRaises(oda_helper.OdaError) as raised:
            oda_helper.save({"telescope": "ska_mid"})
        self.assertEqual(raised.exception.status, 403)

    def test_finds_no_token_in_the_spool(self):
        self.renew("night", "recorder")
        oda_helper.create_eb()
        scan(1)
        with open(self.own) as file:
            token = file.read().strip()
        for folder, _, names in os.walk(self.spool):
            for name in names:
                with open(os.path.join(folder, name), "rb") as file:
                    self.assertNotIn(token.encode(), file.read(), name)


class AToken(Case):
    needs_server = False

    def test_is_not_sent_to_another_server_by_a_redirect(self):
        heard = []

        class Redirecting(BaseHTTPRequestHandler):
            def do_GET(self):
                heard.append((self.path, self.headers.get("Authorization")))
                self.send_response(307)
                self.send_header("Location", "http://127.0.0.1:%d/other" % self.server.server_port)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        with HTTPServer(("127.0.0.1", 0), Redirecting) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            self.addCleanup(server.shutdown)
            client = _http.Client("http://127.0.0.1:%d/api/v1" % server.server_port)
            with mock.patch.dict(os.environ, ODA_TOKEN="secret"):
                answer = client.request("GET", "/ebs/x")
            client.close()
            server.shutdown()
        self.assertEqual(answer.status, 307)
        self.assertEqual(heard, [("/api/v1/ebs/x", "Bearer secret")])

    def test_is_never_sent_to_a_server_that_only_the_spool_names(self):
        heard = []

        class Other(BaseHTTPRequestHandler):
            def do_POST(self):
                self.rfile.read(int(self.headers["Content-Length"]))
                if "eb-1" in self.path:
                    heard.append(self.headers.get("Authorization"))
                self.send_response(503)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        with HTTPServer(("127.0.0.1", 0), Other) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            self.addCleanup(server.shutdown)
            threads = set(threading.enumerate())
            other = "http://127.0.0.1:%d" % server.server_port
            self.script("scan(1)", ODA_URL=other, EB_ID="eb-1", ODA_EXIT_TIMEOUT="0")
            del heard[:]
            os.environ.update(ODA_TOKEN="secret", ODA_URL="http://127.0.0.1:%d" % free_port(), EB_ID="eb-2")
            scan(2)
            wait_until(lambda: heard, "the record of the other run")
            self.assertEqual(set(heard), {None})
            del heard[:]
            # A try that is in progress when somebody asks may be the one before.
            wait_until(lambda: oda_helper.drain(0.5) or heard, "the record that was asked for")
            self.assertEqual(set(heard), {None})
            self.fresh()
            wait_until(lambda: set(threading.enumerate()) <= threads, "the end of the last try")
            del heard[:]
            os.environ["ODA_URL"] = other + "/elsewhere/"  # the same server
            scan(3)
            wait_until(lambda: heard, "the record that this run sends")
            self.assertEqual(set(heard), {"Bearer secret"})
            server.shutdown()

    def test_that_others_can_read_is_reported_once(self):
        _http._plain.clear()
        with mock.patch.dict(os.environ, ODA_TOKEN="secret"), self.assertLogs("oda_helper", "WARNING") as logs:
            logging.getLogger("oda_helper").warning("so that there is one")
            for url in ("http://archive.invalid", "https://archive.invalid", "http://127.0.0.1:1", "http://archive.invalid"):
                client = _http.Client(url + "/api/v1", connect=PATIENCE)
                with mock.patch.object(client, "_once", side_effect=ConnectionRefusedError):
                    with self.assertRaises(ConnectionRefusedError):
                        client.request("GET", "/")
        self.assertEqual(len(logs.output), 2, logs.output)
        self.assertIn("archive.invalid over plain http", logs.output[1])
        self.assertNotIn("secret", json.dumps(logs.output))


class AProxy(Case):
    """Requests to other machines go through the proxy that the environment names."""

    def test_gets_the_address_of_the_archive_and_its_own_credentials(self):
        heard = []

        class Forwarding(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                heard.append((self.path, self.headers["Host"], self.headers["Proxy-Authorization"]))
                body = b'{"sbd_id":"sbd-1"}'
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_CONNECT(self):
                heard.append((self.path, None, self.headers["Proxy-Authorization"]))
                self.send_error(403)

            def log_message(self, *_):
                pass

        with HTTPServer(("127.0.0.1", 0), Forwarding) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            self.addCleanup(server.shutdown)
            proxy = "http://u:p%%40@127.0.0.1:%d" % server.server_port
            os.environ.update(http_proxy=proxy, https_proxy=proxy)
            client = _http.Client("http://archive.invalid:8080/api/v1")
            for _ in range(2):
                self.assertEqual(client.request("GET", "/sbds/sbd-1").status, 200)
            client.close()
            with self.assertRaisesRegex(OSError, "403"):
                _http.Client("https://archive.invalid/api/v1").request("GET", "/sbds/sbd-1")
            oda_helper.create_eb()  # the archive on this machine is reached without it
            scan(1)
            self.flushed()
            server.shutdown()
        basic = "Basic dTpwQA=="
        want = ("http://archive.invalid:8080/api/v1/sbds/sbd-1", "archive.invalid:8080", basic)
        self.assertEqual(heard, [want, want, ("archive.invalid:443", None, basic)])
