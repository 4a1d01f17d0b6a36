import glob
import os
import subprocess
import sys
import tempfile
import unittest

from support import TREE


class Installing(unittest.TestCase):
    def test_from_a_wheel_that_pip_builds(self):
        with tempfile.TemporaryDirectory() as folder:
            self.pip("wheel", "--no-deps", "--wheel-dir", folder, os.path.join(TREE, "python"))
            (wheel,) = glob.glob(os.path.join(folder, "oda_helper-*-py3-none-any.whl"))
            # Installing the wheel needs no network.
            target = os.path.join(folder, "installed")
            self.pip("install", "--no-index", "--no-compile", "--target", target, wheel)
            # The package is imported from the wheel, not the checkout, and is
            # complete.
            code = "import oda_client, oda_helper, oda_helper.__main__ as m; print(m.__file__, oda_helper.__version__)"
            env = dict(os.environ, PYTHONPATH=target, PYTHONDONTWRITEBYTECODE="1")
            run = subprocess.run([sys.executable, "-c", code], env=env, cwd="/", capture_output=True, text=True)
            self.assertTrue(run.stdout.startswith(target), run.stdout + run.stderr)
            version = run.stdout.split()[-1]
            self.assertIn("-%s-" % version, os.path.basename(wheel))
            for package in ("oda_client", "oda_helper"):
                self.assertTrue(os.path.exists(os.path.join(target, package, "py.typed")), package)
            with open(os.path.join(TREE, "LICENSE")) as own:
                (shipped,) = glob.glob(os.path.join(target, "*.dist-info", "licenses", "LICENSE"))
                with open(shipped) as file:
                    self.assertEqual(file.read(), own.read())
            self.assertEqual(sorted(os.listdir(target)), ["oda_client", "oda_helper", "oda_helper-%s.dist-info" % version])

    def pip(self, *arguments):
        command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments]
        done = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
