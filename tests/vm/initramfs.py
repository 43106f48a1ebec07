"""What the virtual machine starts from: it puts the root folder together out of this machine's files and hands over to systemd."""

import pathlib
import shutil
import subprocess
import tempfile

AGENT = pathlib.Path(__file__).resolve().with_name("agent.py")
# To find the files of this machine and the disk.
FIRST_MODULES = ("crc32c_generic", "virtio_pci", "virtio_blk", "ext4", "9pnet_virtio", "9p", "overlay", "virtio_console", "virtio_rng")
# What containers and their networks need, as a machine has it loaded that runs some.
USUAL_MODULES = ("tun", "veth", "bridge", "fuse", "loop")

INIT = """#!/bin/busybox sh
/bin/busybox mkdir -p /proc /sys /dev /files /disk /root
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sysfs /sys
/bin/busybox mount -t devtmpfs devtmpfs /dev
for module in {first}; do /bin/busybox insmod /modules/$module.ko; done
/bin/busybox mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000,cache=loose,ro files /files
/bin/busybox mount -t ext4 /dev/vda /disk
cd /disk
/bin/busybox mkdir -p upper work tmp drover docker
/bin/busybox chmod 1777 tmp
/bin/busybox mount -t overlay -o lowerdir=/files,upperdir=/disk/upper,workdir=/disk/work overlay /root
cd /root
/bin/busybox mkdir -p etc/systemd/system var/lib/drover var/lib/docker lib/modules/{release} proc sys dev run tmp
/bin/busybox mount --bind /disk/tmp tmp
/bin/busybox mount --bind /disk/drover var/lib/drover
/bin/busybox mount --bind /disk/docker var/lib/docker
/bin/busybox mount --bind /files{modules} lib/modules/{release}
/bin/busybox cp /drover-agent.service etc/systemd/system/
/bin/busybox rm -f .dockerenv run/.containerenv run/systemd/container
echo drover > etc/hostname
for module in {usual}; do /bin/busybox chroot /root /sbin/modprobe $module; done
/bin/busybox umount /proc /sys /dev
exec /bin/busybox switch_root /root /lib/systemd/systemd --unit=drover-agent.service
"""

SERVICE = """[Unit]
Description=Runs what it is told on its port
After=basic.target apparmor.service

[Service]
ExecStart=/usr/bin/python3 -B {agent}
Delegate=yes
StandardOutput=tty
StandardError=tty
"""


def write(path, kernel, modules):
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        (folder / "bin").mkdir()
        (folder / "modules").mkdir()
        shutil.copy(shutil.which("busybox"), folder / "bin/busybox")
        first = with_dependencies(kernel, FIRST_MODULES)
        for module in first:
            shutil.copy(kernel.modules / module, folder / "modules")
        init = folder / "init"
        init.write_text(INIT.format(first=" ".join(pathlib.Path(module).stem for module in first), release=kernel.release,
                                    modules=kernel.modules, usual=" ".join((*USUAL_MODULES, *modules))))
        init.chmod(0o755)
        (folder / "drover-agent.service").write_text(SERVICE.format(agent=AGENT))
        with open(path, "wb") as file:
            subprocess.run("find . | busybox cpio -o -H newc", shell=True, cwd=folder, stdout=file, stderr=subprocess.DEVNULL, check=True)


def with_dependencies(kernel, names):
    """Files below the folder of modules, in the order in which they can be loaded."""
    needs = {}
    for line in (kernel.modules / "modules.dep").read_text().splitlines():
        file, _, others = line.partition(":")
        needs[pathlib.Path(file).stem.replace("-", "_")] = [*reversed(others.split()), file]
    order = {}
    for name in names:  # what is built in is in no list
        order.update(dict.fromkeys(needs.get(name, ())))
    return list(order)
