import doctest
import os
import subprocess
import tempfile
import unittest
from unittest import mock

from oda_helper import _mint, _settings
from support import binary


class TheEnvironment(unittest.TestCase):
    def test_url_in_any_form(self):
        want = "http://archive:8080/api/v1"
        for raw in ("http://archive:8080", "http://archive:8080/", " http://archive:8080/api/v1//", "archive:8080/api/v1"):
            self.assertEqual(_settings.normalise(raw), want, raw)
        self.assertEqual(_settings.normalise("https://h/ns/oda/"), "https://h/ns/oda/api/v1")
        for end in ("/api/v1/ui/", "/api/v17", "/ebs", "/sbds/sbd-1/?version=2#x", "/night?date=2026-01-01", "/readyz"):
            self.assertEqual(_settings.normalise("https://h/ns/oda" + end), "https://h/ns/oda/api/v1", end)
        # A prefix of its own stays, whatever it looks like.
        for prefix in ("/api", "/night/oda", "/gateway/api/v2/oda", "/search/oda"):
            self.assertEqual(_settings.normalise("https://h" + prefix), "https://h%s/api/v1" % prefix)
            self.assertEqual(_settings.normalise("https://h%s/api/v1/ebs/eb-1" % prefix), "https://h%s/api/v1" % prefix)
        self.assertEqual(doctest.testmod(_settings).failed, 0)
        self.assertEqual(_settings.normalise("http://[::1]:80"), "http://[::1]:80/api/v1")

    def test_the_default_url_is_that_of_the_commands(self):
        with mock.patch.dict(os.environ, clear=True):
            self.assertEqual(_settings.archive_url(), _settings.DEFAULT_URL + "/api/v1")
        help = subprocess.run([binary(), "whoami", "--help"], capture_output=True, text=True, check=True).stdout
        self.assertIn("(default %s)" % _settings.DEFAULT_URL, " ".join(help.split()))

    def test_says_what_is_wrong_with_the_url(self):
        for raw, says in (
            ("ftp://x", "must begin with http:// or https://"),
            ("http://", "names no host"),
            ("http://x:port", "names a port that is not a number from 1 to 65535"),
            ("http://x:99999", "names a port that is not a number from 1 to 65535"),
            ("http://x:0", "names a port that is not a number from 1 to 65535"),
            ("http://[::1", "is not well-formed"),
            ("http://a b", "has characters"),
            ("http://h/a b", "has characters"),
        ):
            with mock.patch.dict(os.environ, {"ODA_URL": raw}):
                os.environ.pop("ODA_URI", None)
                self.assertIsNone(_settings.archive_url(), raw)
                self.assertIn(says, _settings.url_fault(), raw)

    def test_values_that_cannot_be_used_count_as_missing(self):
        bad = {"ODA_EXIT_TIMEOUT": "soon", "ODA_SPOOL_LIMIT": "much", "ODA_SPOOL_SYNC": "x", "ODA_USER": "a\nb"}
        with mock.patch.dict(os.environ, bad):
            self.assertEqual(_settings.exit_timeout(), 10)
            self.assertEqual(_settings.spool_limit(), 1 << 30)
            self.assertEqual(_settings.sync_policy(), "interval")
            self.assertNotEqual(_settings.user(), "a\nb")
        with mock.patch.dict(os.environ, {"ODA_SPOOL_LIMIT": "2 MiB", "ODA_EXIT_TIMEOUT": "0.5"}):
            self.assertEqual(_settings.spool_limit(), 2 << 20)
            self.assertEqual(_settings.exit_timeout(), 0.5)

    def test_the_user_is_whoever_works_here(self):
        here = subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()
        for env, want in (
            ({}, here),
            ({"USER": "somebody-else"}, here),
            ({"JUPYTERHUB_USER": "hub"}, "hub"),
            ({"JUPYTERHUB_USER": "hub", "ODA_USER": "ada ä"}, "ada ä"),
            ({"ODA_USER": " ", "JUPYTERHUB_USER": "a\x01b"}, here),
            ({"ODA_TOKEN": "x", "JUPYTERHUB_USER": "hub"}, None),
            ({"ODA_TOKEN_FILE": "/none", "JUPYTERHUB_USER": "hub"}, None),
            ({"ODA_TOKEN": "x", "ODA_USER": "ada"}, "ada"),
        ):
            with self.subTest(env=env), mock.patch.dict(os.environ, env, clear=True):
                self.assertEqual(_settings.user(), want)
        with mock.patch.object(_settings.os, "getuid", return_value=2**31 - 5):  # a number without a name
            with mock.patch.dict(os.environ, {"USER": "jovyan"}, clear=True):
                self.assertEqual(_settings.user(), "jovyan")
            with mock.patch.dict(os.environ, {}, clear=True):
                self.assertIsNone(_settings.user())

    def test_one_server_has_many_addresses(self):
        for one, other, same in (
            ("http://a/api/v1", "http://A:80/oda/api/v1", True), ("https://a/api/v1", "https://a:443/api/v1", True),
            ("http://a/api/v1", "https://a/api/v1", False), ("http://a:80/x", "http://a:81/x", False), ("http://a/x", "http://b/x", False),
        ):  # fmt: skip
            self.assertEqual(_settings.same_server(one, other), same, (one, other))

    def test_a_proxy_is_for_other_machines(self):
        env = {"http_proxy": "http://u:p%40@proxy:3128", "https_proxy": "proxy:3129", "no_proxy": ".inside,archive:8080"}
        with mock.patch.dict(os.environ, env, clear=True):
            for secure, host, port, want in (
                (False, "outside", 80, ("proxy", 3128)), (True, "outside", None, ("proxy", 3129)), (False, "127.0.0.1", 80, None),
                (False, "localhost", 80, None), (False, "a.inside", 80, None), (False, "archive", 8080, None), (False, "archive", 80, ("proxy", 3128)),
            ):  # fmt: skip
                found = _settings.proxy(secure, host, port)
                self.assertEqual(found and (found.hostname, found.port), want, host)
        with mock.patch.dict(os.environ, {"all_proxy": "socks5://proxy"}, clear=True), self.assertRaisesRegex(ValueError, "http://"):
            _settings.proxy(False, "outside", 80)

    def test_a_proxy_that_cannot_be_used_is_not_shown(self):
        for address in (
            "http://user:geheim#1@proxy:3128", "http://user:12#geheim@proxy:3128", "http://user:12/geheim@proxy", "user:12?geheim@proxy:3128",
            "http://user:[geheim@proxy:3128", "http://user:geheim\u2100@proxy:3128", "geheim://user:geheim@proxy", "http://proxy:geheim",
        ):  # fmt: skip
            with mock.patch.dict(os.environ, {"http_proxy": address}, clear=True):
                with self.subTest(address), self.assertRaises(ValueError) as raised:
                    _settings.proxy(False, "outside", 80)
            self.assertIn("http://user:password@proxy:3128", str(raised.exception))
            self.assertNotIn("geheim", str(raised.exception))

    def test_a_token_is_in_a_variable_or_in_a_file_that_is_read_each_time(self):
        with tempfile.NamedTemporaryFile("w") as file:
            with mock.patch.dict(os.environ, {"ODA_TOKEN": "", "ODA_TOKEN_FILE": ""}):
                self.assertIsNone(_settings.token())
            with mock.patch.dict(os.environ, {"ODA_TOKEN": " typed\n", "ODA_TOKEN_FILE": file.name}):
                self.assertEqual(_settings.token(), "typed")
            with mock.patch.dict(os.environ, {"ODA_TOKEN": "", "ODA_TOKEN_FILE": file.name}):
                for text in ("first", "other"):  # of one length, within one tick of the clock
                    file.seek(0)
                    file.write(text + "\n")
                    file.flush()
                    self.assertEqual(_settings.token(), text)

    def test_a_token_that_cannot_be_sent_is_not_shown(self):
        with tempfile.TemporaryDirectory() as folder:
            empty, two = os.path.join(folder, "empty"), os.path.join(folder, "two")
            for path, text in ((empty, "\n"), (two, "secret-one\nsecret-two\n")):
                with open(path, "w") as file:
                    file.write(text)
                os.chmod(path, 0o600)
            shared = os.path.join(folder, "shared")
            with open(shared, "w") as file:
                file.write("secret-one\n")
            os.chmod(shared, 0o620)
            for text, path, says in (
                ("", shared, "chmod go-w " + shared),
                ("", os.path.join(folder, "none"), "cannot be read: No such file"),
                ("", folder, "cannot be read: Is a directory"),
                ("", empty, "is empty"),
                ("", two, "is not one token"),
                ("secret-one secret-two", "", "ODA_TOKEN is not one token"),
            ):
                with mock.patch.dict(os.environ, {"ODA_TOKEN": text, "ODA_TOKEN_FILE": path}):
                    with self.assertRaises((OSError, ValueError)) as raised:
                        _settings.token()
                self.assertIn(says, str(raised.exception))
                self.assertNotIn("secret", str(raised.exception))

    def test_this_machine(self):
        for host in ("127.0.0.1", "127.3.2.1", "::1", "localhost", "oda.localhost"):
            self.assertTrue(_settings.loopback(host), host)
        for host in ("192.0.2.7", "archive", "localhost.example", "127.0.0.1.example", ""):
            self.assertFalse(_settings.loopback(host), host)


class Identifiers(unittest.TestCase):
    def test_contain_time_generator_and_random_bits(self):
        self.assertEqual(_mint.encode(0), "0")
        self.assertEqual(_mint.encode(32 * 31 + 17), "zh")
        minter = _mint.Minter(lambda: 1767744000.0 + 1)
        number = 0
        for digit in minter.next("eb")[3:]:
            number = number * 32 + _mint._DIGITS.index(digit)
        self.assertEqual(number >> 21, 1000)

    def test_are_never_repeated_if_the_clock_is_set_back(self):
        times = iter([5e9, 4e9, 4e9, 5e9, 0])
        minter = _mint.Minter(lambda: next(times))
        found = [minter.next("eb") for _ in range(5)]
        self.assertEqual(len(set(found)), 5)
        self.assertEqual(found, sorted(found))
