"""A machine as its users have it: Debian's own kernel, control groups of version 2 alone, systemd, AppArmor.

It is a virtual machine that sees the files of this one, read-only and with a layer of its own on top, and has no network. What is
written to /tmp, /var/lib/docker and /var/lib/drover there lies on a disk of its own, which ends with it.

    with vm.VirtualMachine() as machine:
        machine.run(["uname", "-r"]).out

Needs QEMU. The processor is emulated, which is some ten times slower, and everything has longer: /dev/kvm is there on many machines on
which no ordinary kernel starts with it. DROVER_TEST_KVM=1 takes it.
"""

import json
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import time
import unittest

import drover
from vm import initramfs, kernel

MEMORY = "6G"
DISK = 20 << 30  # bytes; sparse
BOOT_TIMEOUT = 60  # seconds with KVM
SLOWNESS = 10  # without


def with_kvm():
    return os.environ.get("DROVER_TEST_KVM") == "1"


class VirtualMachine:
    """close() ends it and removes its disk. Not thread safe. Raises SkipTest where none can be had."""

    def __init__(self, modules=()):
        """`modules` of the kernel are loaded at the start."""
        self.program = shutil.which("qemu-system-x86_64")
        if not self.program:
            raise unittest.SkipTest("qemu-system-x86_64 is not installed: run scripts/install-dependencies --vm")
        self.kernel = kernel.find()
        self.slowness = 1 if with_kvm() else SLOWNESS
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="drover-vm-"))
        self.modules = modules
        self.process = self.socket = self.port = None

    def start(self):
        initramfs.write(self.folder / "initramfs", self.kernel, self.modules)
        with open(self.folder / "disk", "wb") as disk:
            disk.truncate(DISK)
        subprocess.run(["/usr/sbin/mke2fs", "-q", "-t", "ext4", str(self.folder / "disk")], check=True)
        with open(self.folder / "console", "wb") as console:
            self.process = subprocess.Popen(self.command(), stdin=subprocess.DEVNULL, stdout=console, stderr=console, cwd=self.folder)
        self.port = self.connect()
        return self

    def command(self):
        accelerator = ["-accel", "kvm", "-cpu", "host"] if with_kvm() else ["-accel", "tcg,thread=multi", "-cpu", "max"]
        words = ["quiet", "console=ttyS0", "panic=-1", "apparmor=1", "security=apparmor"]
        return [self.program, *accelerator, "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-serial", "stdio",
                "-m", MEMORY, "-smp", str(os.cpu_count() or 1), "-kernel", str(self.kernel.image), "-initrd", "initramfs",
                "-append", " ".join(words),
                "-drive", "file=disk,format=raw,if=virtio,cache=unsafe,discard=unmap",
                "-fsdev", "local,id=files,path=/,security_model=none,readonly=on,multidevs=remap",
                "-device", "virtio-9p-pci,fsdev=files,mount_tag=files",
                "-device", "virtio-rng-pci", "-device", "virtio-serial-pci",
                "-chardev", "socket,id=agent,path=agent,server=on,wait=off", "-device", "virtserialport,chardev=agent,name=drover"]

    def connect(self):
        """Waits until the agent says hello."""
        self.socket = socket.socket(socket.AF_UNIX)
        until = time.monotonic() + BOOT_TIMEOUT * self.slowness
        drover.wait_for(lambda: self.process.poll() is not None or (self.folder / "agent").exists(), "QEMU to start")
        try:
            self.socket.connect(str(self.folder / "agent"))
            self.socket.settimeout(until - time.monotonic())
            stream = self.socket.makefile("rwb")
            if stream.readline():
                return stream
        except OSError:
            pass
        raise AssertionError(f"the virtual machine did not start:\n{self.console()}")

    def console(self):
        return (self.folder / "console").read_text(errors="replace")[-8000:]

    def run(self, command, environment=None, folder=drover.ROOT, timeout=drover.PATIENCE):
        """As drover.run() inside, as root. A command that takes too long there ends with the status 124."""
        request = {"command": [str(word) for word in command], "environment": environment or {}, "folder": str(folder),
                   "timeout": timeout * self.slowness}
        self.socket.settimeout(request["timeout"] + BOOT_TIMEOUT * self.slowness)  # it ends the command itself, unless it hangs
        self.port.write(json.dumps(request).encode() + b"\n")
        self.port.flush()
        line = self.port.readline()
        if not line:
            raise AssertionError(f"the virtual machine ended during '{' '.join(request['command'])}':\n{self.console()}")
        return drover.Ran(**json.loads(line))

    def close(self):
        if self.process:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(self, *_):
        self.close()
