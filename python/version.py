"""The version of the wheel: that of the archive's sources (scripts/version)."""

import os
import pathlib
import subprocess


def version() -> str:
    script = pathlib.Path(__file__).parent.parent / "scripts" / "version"
    if not script.exists():
        return "0.0.0.dev0"  # somebody has copied this folder
    return subprocess.run([os.fspath(script), "python"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
