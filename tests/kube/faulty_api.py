"""Between a program and the API server: what it sends is not done, or done and nobody says so, or refused."""

import contextlib
import ctypes
import http.client
import http.server
import json
import os
import socket
import threading
import urllib.parse

import drover

_NEW_NETWORK = 0x40000000
WRITES = ("POST", "PUT", "PATCH", "DELETE")

DONE, DROPPED, LOST = "done", "dropped", "lost"  # LOST: done, and the answer does not come


def listener_in(pid, address="127.0.0.1"):
    """A socket that listens on a free port of this address in the network of that process."""
    made = []

    def make():
        with open(f"/proc/{pid}/ns/net", "rb") as network:
            if ctypes.CDLL(None, use_errno=True).setns(network.fileno(), _NEW_NETWORK) != 0:  # of this thread alone
                made.append(OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno())))
                return
        made.append(socket.create_server((address, 0), backlog=128))

    thread = threading.Thread(target=make)
    thread.start()
    thread.join()
    if isinstance(made[0], OSError):
        raise made[0]
    return made[0]


class FaultyApi:
    """Serves a cluster's API in its network, at `kubeconfig`, with the rights of its admin. Events always pass.

    `fate` is asked about each request: fate(method, path, body) is DONE, DROPPED, LOST or an HTTP status that it is refused with. While
    `is_away` nothing passes, and what has begun is cut off.
    """

    def __init__(self, cluster, fate=lambda *_: DONE):
        self.cluster, self.fate, self.is_away = cluster, fate, False
        self.writes = []  # (method, path) of those that reached the API server
        self._open, self._lock = set(), threading.Lock()
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _handler(self), bind_and_activate=False)
        self._server.socket.close()
        self._server.socket = listener_in(cluster.control_plane.machine.pid)
        self._server.daemon_threads = True
        self.address = self._server.socket.getsockname()
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})
        self._thread.start()
        self.kubeconfig = cluster.folder / f"faulty-{self.address[1]}.kubeconfig"
        self.kubeconfig.touch(mode=0o600)
        self.kubeconfig.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "faulty", "users": [{"name": "nobody", "user": {}}],
            "contexts": [{"name": "faulty", "context": {"cluster": "faulty", "user": "nobody", "namespace": cluster.namespace}}],
            "clusters": [{"name": "faulty", "cluster": {"server": f"http://127.0.0.1:{self.address[1]}"}}]}))

    def close(self):
        self.go_away()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def go_away(self):
        self.is_away = True
        self.cut()

    def come_back(self):
        self.is_away = False

    def cut(self):
        """Ends all connections that there are."""
        with self._lock:
            for connection in self._open:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def note_connection(self, connection, is_open):
        with self._lock:
            (self._open.add if is_open else self._open.discard)(connection)

    def decide(self, method, path, body):
        if self.is_away:
            return DROPPED
        is_event = urllib.parse.urlsplit(path).path.endswith("/events")
        chosen = DONE if is_event else self.fate(method, path, body)
        if method in WRITES and chosen in (DONE, LOST) and not is_event:
            self.writes.append((method, path))
        return chosen

    def upstream(self):
        return drover.UnixConnection(f"{self.cluster.folder}/api.sock", timeout=600)


def _handler(faulty):
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def setup(self):
            super().setup()
            faulty.note_connection(self.connection, True)

        def finish(self):
            faulty.note_connection(self.connection, False)
            with contextlib.suppress(OSError):
                super().finish()

        def handle(self):
            with contextlib.suppress(OSError, http.client.HTTPException):
                super().handle()

        def log_message(self, *_):
            pass

        def _answer(self):
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            chosen = faulty.decide(self.command, self.path, body)
            if chosen == DROPPED:
                self.close_connection = True
                return
            if isinstance(chosen, int):
                return self._refuse(chosen)
            with contextlib.closing(faulty.upstream()) as upstream:
                kept = {name: self.headers[name] for name in ("Accept", "Content-Type") if name in self.headers}
                upstream.request(self.command, self.path, body or None, kept)
                response = upstream.getresponse()
                if chosen == LOST:
                    response.read()
                    self.close_connection = True
                    return
                self._pass_on(response)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _answer

        def _refuse(self, status):
            text = json.dumps({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": status,
                               "message": "refused by the test"}).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            if status == 429:
                self.send_header("Retry-After", "1")
            self.end_headers()
            self.wfile.write(text)

        def _pass_on(self, response):
            self.send_response(response.status)
            self.send_header("Content-Type", response.headers.get("Content-Type", "application/json"))
            length = response.headers.get("Content-Length")
            self.send_header(*(("Content-Length", length) if length else ("Transfer-Encoding", "chunked")))
            self.end_headers()
            while part := response.read1(1 << 16):
                self.wfile.write(part if length else b"%x\r\n%s\r\n" % (len(part), part))
            if not length:
                self.wfile.write(b"0\r\n\r\n")

    return Handler
