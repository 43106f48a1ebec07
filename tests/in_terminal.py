"""A program in a terminal of the test's own, and the frames of connections that have left HTTP."""

import fcntl
import json
import os
import pty
import select
import signal
import socket
import struct
import subprocess
import termios
import time

import drover


class Terminal:
    """`command` in a terminal; `test` is cleaned up behind."""

    def __init__(self, test, command, rows=33, columns=101, **options):
        self.test = test
        self.master, self.slave = pty.openpty()
        test.addCleanup(self.close)
        self.set_size(rows, columns)
        self.before = termios.tcgetattr(self.slave)
        self.seen = b""
        self.process = subprocess.Popen([str(word) for word in command], stdin=self.slave, stdout=self.slave, stderr=self.slave,
                                        start_new_session=True, **options)
        test.addCleanup(self.end)

    def set_size(self, rows, columns):
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def resize(self, rows, columns):
        self.set_size(rows, columns)
        os.kill(self.process.pid, signal.SIGWINCH)  # it is not the terminal of its session, so the kernel tells nobody

    def type(self, text):
        os.write(self.master, text.encode())

    def read_until(self, text):
        """Returns what was seen since the last call. A terminal that is not raw yet, or no more, has added its own carriage returns."""
        end = time.monotonic() + drover.PATIENCE
        while text.encode() not in self.seen:
            self.test.assertLess(time.monotonic(), end, f"waited in vain for {text} after {self.seen}")
            if select.select([self.master], [], [], 1)[0]:
                self.seen = (self.seen + os.read(self.master, 4096)).replace(b"\r\r\n", b"\r\n")
        seen, self.seen = self.seen, b""
        return seen.decode(errors="replace")

    def wait(self):
        return self.process.wait(drover.PATIENCE)

    def is_set_back(self):
        return termios.tcgetattr(self.slave) == self.before

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def close(self):
        os.close(self.master)
        os.close(self.slave)


class Frames:
    """A connection to the daemon that was upgraded to `protocol` at `path`."""

    def __init__(self, test, path, protocol, body, uid=None):
        self.test, self.protocol, self.connection = test, protocol, socket.socket(socket.AF_UNIX)
        test.addCleanup(self.connection.close)
        self.connection.settimeout(drover.PATIENCE)
        with drover.acting_as(uid):
            self.connection.connect(str(test.daemon.socket))
        text = json.dumps(body).encode()
        self.connection.sendall(b"POST %s HTTP/1.1\r\nHost: drover\r\nConnection: Upgrade\r\nUpgrade: %s\r\n"
                                b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
                                % (path.encode(), protocol.encode(), len(text), text))
        self.head = b""
        while b"\r\n\r\n" not in self.head:
            self.head += self.connection.recv(1)

    def assert_upgraded(self):
        self.test.assertTrue(self.head.startswith(b"HTTP/1.1 101 "), self.head)
        self.test.assertIn(b"Upgrade: %s\r\n" % self.protocol.encode(), self.head)
        return self

    def send(self, channel, payload):
        self.connection.sendall(struct.pack(">BI", channel, len(payload)) + payload)

    def read(self):
        def exactly(count):
            data = b""
            while len(data) < count:
                piece = self.connection.recv(count - len(data))
                self.test.assertTrue(piece, "the connection ended early")
                data += piece
            return data

        channel, size = struct.unpack(">BI", exactly(5))
        return channel, exactly(size)
