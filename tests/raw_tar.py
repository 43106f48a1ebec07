"""Tar archives with any entry one can think of: nothing is checked or corrected. Python's own tarfile is too honest for that."""

import itertools

BLOCK = 512
FILE, HARD_LINK, SYMLINK, CHARACTER_DEVICE, BLOCK_DEVICE, FOLDER, FIFO = b"0", b"1", b"2", b"3", b"4", b"5", b"6"
END = bytes(2 * BLOCK)


def header(path, kind=FILE, link="", mode=0o644, owner=b"0000000", size=b"%011o" % 0, time=b"%011o" % 1_500_000_000, device=(0, 0)):
    """`owner`, `size` and `time` are the bytes of their fields."""
    fields = [(0, 100, encode(path)), (100, 8, b"%07o" % mode), (108, 8, owner), (116, 8, owner), (124, 12, size), (136, 12, time),
              (156, 1, kind), (157, 100, encode(link)), (257, 8, b"ustar\x0000"), (329, 8, b"%07o" % device[0]),
              (337, 8, b"%07o" % device[1])]
    block = bytearray(BLOCK)
    for offset, width, value in fields:
        block[offset:offset + width] = value[:width].ljust(width, b"\0")
    return checked(block)


def checked(block):
    """With its checksum."""
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


def encode(text):
    return text if isinstance(text, bytes) else text.encode()


def padded(data):
    return data + bytes(-len(data) % BLOCK)


def pax(**records):
    """An extended header for the entry that follows; "SCHILY.xattr.user.a" needs ** of a dictionary."""
    body = b"".join(record(encode(key), encode(value)) for key, value in records.items())
    return header("pax", b"x", size=b"%011o" % len(body)) + padded(body)


def record(key, value):
    """"LENGTH key=value\\n", where LENGTH counts itself."""
    rest = b" " + key + b"=" + value + b"\n"
    size = next(size for size in itertools.count(len(rest)) if len(str(size)) + len(rest) == size)
    return b"%d" % size + rest


def entry(path, kind=FILE, content=b"", extended=None, **fields):
    """One entry; names that a header cannot hold go into an extended one."""
    extended = dict(extended or {})
    if len(encode(path)) > 100:
        extended["path"] = path
    if len(encode(fields.get("link", ""))) > 100:
        extended["linkpath"] = fields["link"]
    fields.setdefault("size", b"%011o" % len(content))
    return (pax(**extended) if extended else b"") + header(path, kind, **fields) + padded(content)


def symlink(path, target):
    return entry(path, SYMLINK, link=target, mode=0o777)


def hard_link(path, target):
    return entry(path, HARD_LINK, link=target)


def folder(path, mode=0o755):
    return entry(path, FOLDER, mode=mode)


def tar(*entries):
    return b"".join(entries) + END
