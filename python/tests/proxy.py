"""A TCP proxy that makes an archive slow, or loses its answers.

Run as a program it prints its port: ``python3 proxy.py PORT SECONDS``.
"""

import socket
import sys
import threading
import time


class Proxy:
    """Forwards connections to a port of this machine.

    Answers are held back for ``delay`` seconds. While ``lose`` is more than 0, an
    answer is not passed on and its connection is cut, after the archive has sent it.
    ``rate`` is how many bytes a second get through to the archive, 0 for any number.
    """

    def __init__(self, port, delay=0.0, lose=0):
        self.delay, self.lose, self.lost, self.rate = delay, lose, 0, 0
        self._to = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.url = "http://127.0.0.1:%d" % self.port
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._connection, args=(near,), daemon=True).start()

    def _connection(self, near):
        try:
            far = socket.create_connection(("127.0.0.1", self._to))
        except OSError:
            near.close()
            return
        back = threading.Thread(target=self._pump, args=(near, far), daemon=True)
        back.start()
        self._pump(far, near, answers=True)
        back.join()
        near.close()
        far.close()

    def _pump(self, source, target, answers=False):
        try:
            while True:
                piece = source.recv(1 << 16 if answers else 1 << 11)
                if not piece:
                    break
                if answers:
                    time.sleep(self.delay)
                    if self.lose > 0:
                        self.lose -= 1
                        self.lost += 1
                        break
                elif self.rate:
                    time.sleep(len(piece) / self.rate)
                target.sendall(piece)
        except OSError:
            pass
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def forward(self, port):
        """Forwards new connections to another port."""
        self._to = port

    def close(self):
        """Takes no more connections."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


if __name__ == "__main__":
    print(Proxy(int(sys.argv[1]), float(sys.argv[2])).port, flush=True)
    sys.stdin.read()
