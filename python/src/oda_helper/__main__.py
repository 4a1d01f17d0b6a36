"""``python3 -m oda_helper [SECONDS]`` sends what is left in the spool.

It does what ``oda record drain`` does, where there is Python but no oda. It ends with
0 when nothing is left to send.
"""

import logging
import sys

from . import drain


def main() -> int:
    """Sends what is left, for 60 seconds or as many as were given."""
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    try:
        seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    except ValueError:
        print("usage: python3 -m oda_helper [SECONDS]", file=sys.stderr)
        return 2
    return 0 if drain(seconds) else 1


if __name__ == "__main__":
    sys.exit(main())
