"""A node: a kubelet and a containerd on a machine of their own."""

import os
import pathlib
import shutil

import drover
from kube import cgroups, configuration
from kube.control_plane import SERVER, node_address
from kube.machine import Program
from kube.settings import CONTAINERD_2

# Folders that every node has for itself. All that a node's programs write is below one of them.
OWN_FOLDERS = tuple(path for path in ("/run", "/var/lib", "/var/log", "/etc/cdi") if os.path.isdir(path))
# A kubelet sets these for the whole machine, unless they have these values already.
KERNEL_SETTINGS = {"vm/overcommit_memory": 1, "vm/panic_on_oom": 0, "kernel/panic": 10, "kernel/panic_on_oops": 1,
                   "kernel/keys/root_maxkeys": 1000000, "kernel/keys/root_maxbytes": 25000000}


class Node:
    """Made stopped. `name` is its name in the cluster, `index` counts from 1.

    `containerd` and `kubelet` are Programs: kill(), start(), restart(), read_log().
    """

    def __init__(self, cluster, index, components, authority, machine, settings):
        self.index, self.name, self.address = index, machine.name, node_address(index)
        self.machine, self.components, self.authority, self.settings = machine, components, authority, settings
        self.folder, self.logs = cluster.folder / self.name, cluster.folder / "logs"
        self.cgroup = f"{cluster.name}-{self.name}"
        # What a node must see although it may lie in a folder that it has for itself.
        self._kept = [cluster.folder, components.kubernetes, components.containerd, drover.ROOT, drover.BUILD]
        self.folder.mkdir()
        cgroups.make(self.cgroup)
        self._prepare_machine()
        self._write_configuration()
        self.containerd = self._program("containerd", [self._containerd(), "--config", self.folder / "containerd.toml"],
                                        {**os.environ, "PATH": f"{components.containerd}:/usr/sbin:/usr/bin:/sbin:/bin"}
                                        if settings.containerd == CONTAINERD_2 else None)
        self.kubelet = self._program("kubelet", [
            components.kubernetes / "kubelet", f"--config={self.folder}/kubelet.json", f"--cert-dir={self.folder}/certificates",
            f"--kubeconfig={authority.path(self.name)}.kubeconfig", f"--hostname-override={self.name}", f"--node-ip={self.address}",
            "--root-dir=/var/lib/kubelet", *cluster.settings.flags_of("kubelet")])
        self.proxy = self._program("kube-proxy", [components.kubernetes / "kube-proxy", f"--config={self.folder}/kube-proxy.json"])

    # For tests

    def path(self, inside):
        """Where a path of the node is on the host: folders of the node's own are, others are the host's."""
        text = "/run" + inside[len("/var/run"):] if f"{inside}/".startswith("/var/run/") else inside
        own = any(f"{text}/".startswith(f"{top}/") for top in OWN_FOLDERS)
        return self.folder / text.lstrip("/") if own else pathlib.Path(text)

    def exec(self, *command, **options):
        """Runs a command on the node, not in a pod, to its end; returns the process with `stdout` and `stderr`."""
        return self.machine.exec(*command, **options)

    def run_inside(self, command, name="program", environment=None):
        """Starts a program on the node, such as `drover kube node`; it ends with the node. Its log is logs/NODE-NAME.log."""
        return self._program(name, command, environment).start()

    def restart_containerd(self):
        """Kills containerd, and waits until it answers again. Containers go on."""
        self.containerd.restart()
        self.wait_for_containerd()

    def die(self):
        """As a power cut would."""
        self.machine.die()

    # Start

    def wait_for_containerd(self):
        self.containerd.wait_until(lambda: self._ctr("version", check=False).returncode == 0, "containerd to answer")

    def import_images(self, archives):
        for reference, path in archives:
            self._ctr("images", "import", "--base-name", reference.split(":")[0], path)

    def _ctr(self, *words, check=True):
        program = self.components.containerd / "ctr" if self.settings.containerd == CONTAINERD_2 else shutil.which("ctr")
        return self.exec(program, "--address", configuration.SOCKET, "--namespace", "k8s.io", *words, check=check)

    def _program(self, name, command, environment=None):
        return Program(self.machine, f"{self.name}'s {name}", command, self.logs / f"{self.name}-{name}.log", environment)

    def _containerd(self):
        return self.components.containerd / "containerd" if self.settings.containerd == CONTAINERD_2 else shutil.which("containerd")

    def _prepare_machine(self):
        execute = self.machine.exec
        execute("hostname", self.name)
        execute("mount", "--make-rshared", "/")  # kubelets want to hand on mounts
        for top in OWN_FOLDERS:
            own = self._make_own(top)
            for kept in self._kept:
                if pathlib.Path(top) in kept.parents:
                    execute("mount", "--bind", kept, self._make_own(kept))
            execute("mount", "--rbind", own, top)
        for path in ("/run/netns", "/run/lock", "/var/lib/cni", "/var/log/pods", "/var/log/containers"):
            self.path(path).mkdir()
        (self.folder / "kernel").mkdir()
        for setting, value in KERNEL_SETTINGS.items():
            if pathlib.Path("/proc/sys", setting).exists():
                mask = self.folder / "kernel" / setting.replace("/", ".")
                mask.write_text(f"{value}\n")
                execute("mount", "--bind", mask, f"/proc/sys/{setting}")
        if self.settings.cpus:
            execute("mount", "--bind", self._make_processors(), "/sys/devices/system")
        for inside, outside in self.settings.mounts.items():
            execute("mount", "--rbind", outside, inside)

    def _make_processors(self):
        """What a kubelet looks at to count its CPUs. Each NUMA node has all that there really are: cgroups take no others."""
        folder, real = self.folder / "processors", sorted(os.sched_getaffinity(0))
        cpus = ",".join(map(str, real))
        files = {folder / "cpu/online": cpus}
        for cpu in real:
            topology = folder / f"cpu/cpu{cpu}/topology"
            files |= {topology / "core_id": str(cpu), topology / "physical_package_id": "0"}
        for number in range(-(-self.settings.cpus // len(real))):
            node = folder / f"node/node{number}"
            files |= {node / "cpulist": cpus, node / "distance": "10", node / "meminfo": f"Node {number} MemTotal: 1048576 kB"}
            node.mkdir(parents=True)
            for cpu in real:
                (node / f"cpu{cpu}").symlink_to(f"../../cpu/cpu{cpu}")
        for path, text in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{text}\n")
        return folder

    def _make_own(self, path):
        own = self.folder / str(path).lstrip("/")
        own.mkdir(parents=True, exist_ok=True)
        return own

    def _write_configuration(self):
        self.authority.sign(self.name, f"system:node:{self.name}", "system:nodes", addresses=(self.address,), names=(self.name,))
        self.authority.kubeconfig(self.name, SERVER)
        (self.folder / "cni").mkdir()
        for name, text in (("containerd.toml", configuration.containerd(self)), ("kubelet.json", configuration.kubelet(self)),
                           ("kube-proxy.json", configuration.kube_proxy(self)), ("resolv.conf", "nameserver 127.0.0.1\n"),
                           ("cni/10-bridge.conflist", configuration.pod_network(self))):
            (self.folder / name).write_text(text)
