"""Data-parallel training by a gang: every member has a part of the data, and all have the same model at every step.

The model is a straight line, and the members talk over plain TCP, so that nothing needs to be installed. What matters is
how they find each other: RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT are all that torch.distributed needs too.
"""

import contextlib
import json
import os
import random
import socket
import struct
import time

RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
FIRST = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
STEPS, RATE = 200, 0.05
CONNECT_S = 60


def send(peer, value):
    text = json.dumps(value).encode()
    peer.sendall(struct.pack("!I", len(text)) + text)


def receive(peer):
    def exactly(count):
        data = b""
        while len(data) < count:
            piece = peer.recv(count - len(data))
            if not piece:
                raise ConnectionError("a member has gone")
            data += piece
        return data

    return json.loads(exactly(struct.unpack("!I", exactly(4))[0]))


def connect():
    """The first member has a connection to each of the others, by rank; the others have one to the first."""
    if RANK == 0:
        listener = socket.create_server(("", FIRST[1]))
        accepted = [listener.accept()[0] for _ in range(SIZE - 1)]
        return [peer for _, peer in sorted(((receive(peer), peer) for peer in accepted), key=lambda pair: pair[0])]
    end = time.monotonic() + CONNECT_S
    while True:
        with contextlib.suppress(ConnectionRefusedError):  # the first member may start a moment later
            peer = socket.create_connection(FIRST, timeout=CONNECT_S)
            send(peer, RANK)
            return [peer]
        if time.monotonic() > end:
            raise TimeoutError(f"nobody answers at {FIRST}")
        time.sleep(0.05)


def mean_over_members(peers, values):
    """All-reduce, the simple way: through the first member."""
    if RANK > 0:
        send(peers[0], values)
        return receive(peers[0])
    all_values = [values] + [receive(peer) for peer in peers]
    mean = [sum(column) / SIZE for column in zip(*all_values)]
    for peer in peers:
        send(peer, mean)
    return mean


def main():
    drawn = random.Random(RANK)
    points = [(x, 3 * x - 1 + drawn.gauss(0, 0.1)) for x in (drawn.uniform(-1, 1) for _ in range(100))]
    print(f"has the GPUs {os.environ['NVIDIA_VISIBLE_DEVICES']}", flush=True)
    peers = connect()
    slope = offset = 0.0
    for step in range(STEPS + 1):
        wrong = [(slope * x + offset - y, x) for x, y in points]
        loss, by_slope, by_offset = mean_over_members(
            peers, [sum(e * e for e, _ in wrong) / len(wrong), 2 * sum(e * x for e, x in wrong) / len(wrong),
                    2 * sum(e for e, _ in wrong) / len(wrong)])
        slope, offset = slope - RATE * by_slope, offset - RATE * by_offset
        if RANK == 0 and step % 50 == 0:
            print(f"step {step}: loss {loss:.4f}", flush=True)
    print(f"learnt y = {slope:.2f} x {offset:+.2f}", flush=True)


if __name__ == "__main__":
    main()
