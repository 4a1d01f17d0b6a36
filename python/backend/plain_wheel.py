"""Builds the wheel of oda_helper, with nothing but Python.

pip asks a build backend for a wheel, and would download one: not where there is
no network, as at a telescope. A wheel of pure Python is an archive of the files
with three files about them, so this makes it (PEP 517), and pip install works
anywhere and leaves nothing behind in the checkout.
"""

import base64
import hashlib
import os
import re
import zipfile

NAME = "oda_helper"
METADATA = """Metadata-Version: 2.1
Name: oda-helper
Version: %s
Summary: Records what a script does with the telescope in the observation archive
Requires-Python: >=3.9
Description-Content-Type: text/markdown

%s"""
WHEEL = """Wheel-Version: 1.0
Generator: plain_wheel
Root-Is-Purelib: true
Tag: py3-none-any
"""

_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_PACKAGE = os.path.join(_HERE, "src", NAME)
_TIME = (1980, 1, 1, 0, 0, 0)  # the same files make the same wheel


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Writes the wheel to a folder and gives its name."""
    files = {
        "%s/%s" % (NAME, name): _read(os.path.join(_PACKAGE, name))
        for name in sorted(os.listdir(_PACKAGE))
        if name.endswith(".py")
    }
    return _write(wheel_directory, files)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """Writes a wheel that leads to the checkout, for pip install --editable."""
    return _write(wheel_directory, {NAME + ".pth": os.path.dirname(_PACKAGE).encode() + b"\n"})


def build_sdist(sdist_directory, config_settings=None):
    """There is no archive of the sources: they are a part of the archive's tree."""
    raise NotImplementedError("build a wheel; the sources are in the repository")


def _write(folder, files):
    found = re.search(rb'^__version__ = "(.+)"$', _read(os.path.join(_PACKAGE, "__init__.py")), re.M)
    version = found.group(1).decode()
    about = "%s-%s.dist-info/" % (NAME, version)
    readme = _read(os.path.join(_HERE, "README.md")).decode()
    files[about + "METADATA"] = (METADATA % (version, readme)).encode()
    files[about + "WHEEL"] = WHEEL.encode()
    lines = ["%s,%s,%d" % (name, _digest(text), len(text)) for name, text in files.items()]
    files[about + "RECORD"] = ("\n".join(lines) + "\n%sRECORD,,\n" % about).encode()
    wheel = "%s-%s-py3-none-any.whl" % (NAME, version)
    with zipfile.ZipFile(os.path.join(folder, wheel), "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            entry = zipfile.ZipInfo(name, _TIME)
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, text, zipfile.ZIP_DEFLATED)
    return wheel


def _digest(text):
    digest = base64.urlsafe_b64encode(hashlib.sha256(text).digest())
    return "sha256=" + digest.rstrip(b"=").decode()


def _read(path):
    with open(path, "rb") as file:
        return file.read()
