"""A service in Python that lets a Chatelaine node decide about API keys, and needs no HTTP for those that the node has
in its table:
    client.py /run/chatelaine/table.sock 8081
Reads API keys from stdin, one in a line, each as if a request GET /v1/patients had come with it, and prints what was
decided, and by whom. The node's internal listener is at that port of this machine."""
import ctypes
import http.client
import os
import sys
import time

PATH = "/v1/patients"
PATIENTS_READ = 1 << 2  # enum chatelaine_scope in chatelaine/check.h
REFRESH_S = 1


class Answer(ctypes.Structure):
    """struct chatelaine_answer in chatelaine/library.h"""

    _fields_ = [
        ("account", ctypes.c_char * 32),
        ("principal", ctypes.c_char * 32),
        ("scopes", ctypes.c_uint32),
        ("is_device", ctypes.c_uint8),
        ("is_live", ctypes.c_uint8),
        ("unused", ctypes.c_uint8 * 2),
    ]


def load_library():
    library = ctypes.CDLL(os.environ.get("CHATELAINE_LIBRARY", "libchatelaine-check.so.1"))
    handle = ctypes.c_void_p
    library.chatelaine_open.restype = handle
    library.chatelaine_open.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_int64]
    library.chatelaine_refresh.argtypes = [handle]
    library.chatelaine_ask.argtypes = [
        handle,
        ctypes.c_char_p,
        ctypes.c_size_t,
        ctypes.c_uint32,
        ctypes.POINTER(Answer),
    ]
    library.chatelaine_trouble.restype = ctypes.c_char_p
    library.chatelaine_trouble.argtypes = [handle]
    library.chatelaine_close.restype = None
    library.chatelaine_close.argtypes = [handle]
    return library


class Table:
    """For one thread; each thread has its own."""

    def __init__(self, path):
        self._library = load_library()
        self._handle = self._library.chatelaine_open(path.encode(), None, -1)
        if not self._handle:
            raise MemoryError
        self._refreshed = None

    def refresh(self):
        """A service with a loop does this by a timer."""
        now = time.monotonic()
        if self._refreshed is not None and now - self._refreshed < REFRESH_S:
            return
        if self._library.chatelaine_refresh(self._handle):
            self._refreshed = now
        else:
            print("no table:", self._library.chatelaine_trouble(self._handle).decode(), file=sys.stderr)

    def ask(self, secret, scopes):
        """Who asks, or None: then ask the node."""
        answer = Answer()
        if self._library.chatelaine_ask(self._handle, secret, len(secret), scopes, answer):
            return answer
        return None

    def close(self):
        self._library.chatelaine_close(self._handle)


def ask_node(port, secret):
    """The node's answer is final: what it refuses is refused."""
    node = http.client.HTTPConnection("127.0.0.1", port)
    headers = {
        "Authorization": "Bearer " + secret.decode(),
        "X-Original-Method": "GET",
        "X-Original-URI": PATH,
    }
    node.request("GET", "/check/auth-request", headers=headers)
    answer = node.getresponse()
    answer.read()
    node.close()
    return answer.status, answer.getheader("X-Auth-Account", ""), answer.getheader("X-Auth-Principal", "")


def main(path, port):
    table = Table(path)
    for line in sys.stdin.buffer:
        secret = line.rstrip(b"\n")
        table.refresh()
        who = table.ask(secret, PATIENTS_READ)
        if who:
            print("table", 200, who.account.decode(), who.principal.decode(), flush=True)
        else:
            print("http", *ask_node(int(port), secret), flush=True)
    table.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
