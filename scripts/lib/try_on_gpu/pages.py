"""The guard's two pages as a container has them. Constants are read from guard/layout.h; the layout is that of its structures."""

import contextlib
import fcntl
import os
import pathlib
import re
import struct

ROOT = pathlib.Path(__file__).resolve().parents[3]
HEADER = ROOT / "guard/layout.h"

LIMITS = struct.Struct("<IIQI44x")  # magic, version, generation, count
LIMIT = struct.Struct("<56sQ")  # UUID, bytes
ACCOUNT_HEAD = 64  # bytes, beside a figure for each GPU; behind the slots is another one for each
SLOT_HEAD = 64
FIGURE = struct.Struct("<Q")  # upper half: units held
TURN = 64  # bytes
USE = 32


def constant(name):
    """What guard/layout.h says it is."""
    found = re.search(rf"\b{name}\s*=\s*([^,/]+)", HEADER.read_text())
    shifted = re.fullmatch(r"(\d+) << (\d+)", found[1].strip())
    return int(shifted[1]) << int(shifted[2]) if shifted else int(found[1].strip(), 0)


def write(folder, limits):
    """Both pages: `limits` is bytes by UUID, and nobody holds anything yet."""
    gpus = constant("GUARD_GPUS")
    head = LIMITS.pack(constant("GUARD_LIMITS_MAGIC"), constant("GUARD_LIMITS_VERSION"), 1, len(limits))
    entries = b"".join(LIMIT.pack(uuid.encode(), size) for uuid, size in limits.items())
    (folder / "limits").write_bytes((head + entries).ljust(LIMITS.size + (LIMIT.size + TURN) * gpus, b"\0"))
    slot = SLOT_HEAD + (FIGURE.size + USE) * gpus
    (folder / "account").write_bytes(bytes(ACCOUNT_HEAD + 2 * FIGURE.size * gpus + slot * constant("GUARD_SLOTS")))


def _is_locked(descriptor, slot):
    asked = struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, slot, 1, 0)
    return struct.unpack("hhqqi", fcntl.fcntl(descriptor, fcntl.F_GETLK, asked))[0] != fcntl.F_UNLCK


def held(folder, entry=0):
    """Bytes of one GPU that live processes hold, by the account: a slot counts while its byte is locked."""
    gpus = constant("GUARD_GPUS")
    slot_size = SLOT_HEAD + (FIGURE.size + USE) * gpus
    units = 0
    with contextlib.closing(open(folder / "account", "r+b", buffering=0)) as file:
        page = file.read()
        for slot in range(constant("GUARD_SLOTS")):
            at = ACCOUNT_HEAD + FIGURE.size * gpus + slot_size * slot + SLOT_HEAD + FIGURE.size * entry
            figure = FIGURE.unpack_from(page, at)[0] >> 32
            if figure and _is_locked(file.fileno(), slot):
                units += figure
    return units * constant("GUARD_UNIT")
