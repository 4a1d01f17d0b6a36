"""``python3 -m oda_helper [SECONDS]`` sends the records left in the spool.

It does the same as ``oda record drain``, for machines with Python but without oda. The
exit code is 0 if nothing is left to send.
"""

import logging
import sys

from . import drain


def main() -> int:
    """Sends for at most 60 seconds, or as many as given."""
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    try:
        seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    except ValueError:
        print("usage: python3 -m oda_helper [SECONDS]", file=sys.stderr)
        return 2
    return 0 if drain(seconds) else 1


if __name__ == "__main__":
    sys.exit(main())
