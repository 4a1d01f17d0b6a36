"""Measures what a recorded call costs its caller.

    python3 python/bench.py [--calls N] [--pause SECONDS]

The archive is a real one (ODA_BIN, or built with go): up, slow (every answer comes
200 ms later, through a proxy that is a process of its own) and down. Each time is that
of a decorated function that does nothing. ``--pause`` is the time between two calls;
0 calls without a break, which fights with the sending thread for the interpreter.
It ends with 1 where the 99th percentile is over 1 ms.
"""

import argparse
import logging
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "src"), os.path.join(HERE, "tests")]

import oda_helper  # noqa: E402
from support import Server, free_port  # noqa: E402

BOUND_MS = 1.0


@oda_helper.capture_request_response
def observe(scan_id, target, **options):
    return {"scan_id": scan_id, "state": "done"}


def measure(calls, pause):
    """Prints the row for one kind of archive, measured in this process."""
    logging.getLogger("oda_helper").setLevel(logging.CRITICAL)
    oda_helper.create_eb()
    times = []
    for n in range(calls):
        begin = time.perf_counter()
        observe(n, "polaris", frequency=0.35e9, beams=[1, 2, 3], label="commissioning")
        times.append((time.perf_counter() - begin) * 1000)
        if pause:
            time.sleep(pause)
    stored = calls - oda_helper.lag()
    times.sort()
    p99 = times[int(calls * 0.99)]
    print("%.3f | %.3f | %.2f | %d |" % (times[calls // 2], p99, times[-1], stored), flush=True)
    return 1 if p99 > BOUND_MS else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=5000, help="calls of each kind (default 5000)")
    parser.add_argument("--pause", type=float, default=0.001, help="seconds between calls (default 0.001)")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        return measure(given.calls, given.pause)
    slow, server = None, Server()
    over = 0
    try:
        server.start()
        slow = subprocess.Popen(
            [sys.executable, os.path.join(HERE, "tests", "proxy.py"), str(server.port), "0.2"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        ports = [("up", server.port), ("slow (200 ms)", int(slow.stdout.readline())), ("down", free_port())]
        print("| archive | p50 (ms) | p99 (ms) | max (ms) | stored meanwhile |")
        print("|---|---|---|---|---|")
        for name, port in ports:
            with tempfile.TemporaryDirectory() as spool:
                print("| %s | " % name, end="", flush=True)
                env = dict(os.environ, ODA_URL="http://127.0.0.1:%d" % port, ODA_SPOOL=spool)
                env["ODA_EXIT_TIMEOUT"] = "0" if name == "down" else "60"
                command = [sys.executable, __file__, "--one", "--calls", str(given.calls)]
                over |= subprocess.run(command + ["--pause", str(given.pause)], env=env).returncode
    finally:
        if slow is not None:
            slow.stdin.close()
            slow.wait()
            slow.stdout.close()
        server.remove()
    return over


if __name__ == "__main__":
    sys.exit(main())
