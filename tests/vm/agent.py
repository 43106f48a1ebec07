"""Runs inside of the virtual machine: a line of JSON on its port is a command, the answer is one, too. See VirtualMachine.run()."""

import json
import os
import pathlib
import subprocess


def find_port():
    for port in pathlib.Path("/sys/class/virtio-ports").iterdir():
        if (port / "name").exists() and (port / "name").read_text().strip() == "drover":
            return f"/dev/{port.name}"
    raise FileNotFoundError("the virtual machine has no port named 'drover'")


def run(request):
    environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LANG": "C.UTF-8",
                   **request["environment"]}
    try:
        done = subprocess.run(request["command"], env=environment, cwd=request["folder"], stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=request["timeout"])
    except subprocess.TimeoutExpired as late:
        return 124, late.stdout or b"", (late.stderr or b"") + b"\nit took too long"
    except OSError as error:
        return 127, b"", str(error).encode()
    return done.returncode, done.stdout, done.stderr


def main():
    port = os.open(find_port(), os.O_RDWR)
    stream = os.fdopen(port, "r+b", buffering=0)
    stream.write(b"hello\n")
    buffered = b""
    while True:
        data = os.read(port, 65536)
        buffered += data
        while b"\n" in buffered:
            line, buffered = buffered.split(b"\n", 1)
            status, out, err = run(json.loads(line))
            answer = json.dumps({"status": status, "out": out.decode(errors="replace"), "err": err.decode(errors="replace")})
            rest = answer.encode() + b"\n"
            while rest:
                rest = rest[stream.write(rest):]


if __name__ == "__main__":
    main()
