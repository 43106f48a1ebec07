"""What every container is kept from, whoever is in it: system calls, capabilities, and what the kernel tells.

The doors that a filter of system calls has are tried one by one: numbers that are newer than the filter, arguments, the interfaces of
32-bit programs, and bits that the kernel does not read.
"""

import platform
import re
import signal
import unittest

from attack import attack
import drover

# Numbers of x86-64 (asm/unistd_64.h).
SOCKET, CLONE, PTRACE, PERSONALITY, SOCKETPAIR = 41, 56, 101, 135, 53
OPEN_FAMILIES = {1: "AF_UNIX", 2: "AF_INET", 10: "AF_INET6", 16: "AF_NETLINK"}
DATAGRAM, RAW = 2, 3
CLOSED_CALLS = {"vmsplice": 278, "fanotify_init": 300, "kcmp": 312, "migrate_pages": 256, "move_pages": 279, "process_madvise": 440,
                "set_mempolicy_home_node": 450, "sethostname": 170, "setdomainname": 171, "modify_ldt": 154}
# These were closed before, too.
LONG_CLOSED_CALLS = {"keyctl": 250, "add_key": 248, "userfaultfd": 323, "bpf": 321, "perf_event_open": 298, "io_uring_setup": 425,
                     "unshare": 272, "setns": 308, "mount": 165, "pivot_root": 155, "open_tree": 428, "fsopen": 430,
                     "open_by_handle_at": 304, "name_to_handle_at": 303, "init_module": 175, "kexec_load": 246, "syslog": 103,
                     "reboot": 169, "swapon": 167, "acct": 163, "quotactl": 179, "settimeofday": 164, "iopl": 172}
NEW_CALLS = (*range(457, 462), *range(467, 520))  # statmount and later, but for those that programs need
ADDRESS_NO_RANDOMIZE, READ_IMPLIES_EXEC, SHORT_INODE = 0x0040000, 0x0400000, 0x1000000
BAD_CALL = f"signal {int(signal.SIGSYS)}"
HIGH = 1 << 32


class ContainerTest(attack.AttackTest):
    """Each attempt is made by root and by mallory, in an image and without."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.calls = cls.build("calls")
        content = cls.calls.read_bytes()
        cls.with_calls = cls.image(cls, "image", lambda layer: layer.add_file("calls", content, 0o755))

    def assert_all(self, attempts, expected):
        """What each of (door, number, arguments…) comes to."""
        words = sum(([*map(str, attempt), ","] for attempt in attempts), [])[:-1]
        for caller in (None, self.mallory):
            for program, where in ((self.calls, {}), ("/calls", {"image": self.with_calls})):
                with self.subTest(caller=caller.name if caller else "root", **where):
                    record, output, errors = self.attempt(caller, [program, *words], **where)
                    self.assertEqual(record["state"], "finished", (record, errors))
                    self.assertEqual(output.splitlines(), expected)


@unittest.skipIf(platform.machine() != "x86_64", "numbers of system calls are those of x86-64")
class CallsTest(ContainerTest):
    def test_calls_of_a_kernel_that_is_newer_than_the_filter(self):
        self.assert_all([("native", number) for number in NEW_CALLS], ["ENOSYS"] * len(NEW_CALLS))

    def test_calls_that_docker_and_podman_close(self):
        self.assert_all([("native", number) for number in CLOSED_CALLS.values()], ["EPERM"] * len(CLOSED_CALLS))

    def test_keys_modules_namespaces_and_mounts(self):
        self.assert_all([("native", number) for number in LONG_CLOSED_CALLS.values()], ["EPERM"] * len(LONG_CLOSED_CALLS))

    def test_sockets_of_other_families(self):
        """AF_VSOCK reaches the hypervisor, AF_PACKET hears the wire, AF_ALG and most others bring kernel modules along."""
        families = [family for family in range(46) if family not in OPEN_FAMILIES]
        self.assert_all([("native", SOCKET, family, kind, 0) for family in families for kind in (DATAGRAM, RAW)],
                        ["EAFNOSUPPORT"] * 2 * len(families))
        self.assert_all([("native", SOCKETPAIR, 30, DATAGRAM, 0, HIGH)], ["ENOSYS"])  # AF_TIPC

    def test_families_with_bits_that_the_kernel_does_not_read(self):
        self.assert_all([("native", SOCKET, HIGH | family, DATAGRAM, 0) for family in (1, 17, 38, 40)], ["EAFNOSUPPORT"] * 4)

    def test_netlink_of_audit_netfilter_and_the_like(self):
        attempts = [("native", SOCKET, 16, RAW, protocol) for protocol in (9, 6, 12, 21, HIGH | 9, HIGH | 12)]
        self.assert_all(attempts, ["EPROTONOSUPPORT"] + ["ENOSYS"] * 5)

    def test_raw_sockets(self):
        self.assert_all([("native", SOCKET, 2, RAW, 1), ("native", SOCKET, 10, RAW, 58)], ["EPERM"] * 2)

    def test_what_programs_need_is_open(self):
        self.assert_all([("native", SOCKET, family, DATAGRAM, 0) for family in OPEN_FAMILIES] + [("native", PERSONALITY, 0xffffffff)],
                        ["ok"] * 5)

    def test_personalities_that_weaken_a_process(self):
        values = [ADDRESS_NO_RANDOMIZE, READ_IMPLIES_EXEC, SHORT_INODE, ADDRESS_NO_RANDOMIZE | 8, HIGH | READ_IMPLIES_EXEC]
        self.assert_all([("native", PERSONALITY, value) for value in values], ["ENOSYS"] * len(values))

    def test_the_interface_of_32_bit_programs(self):
        """getpid, socket(AF_VSOCK), socketcall, mount: there a filter could not see what socketcall(2) is to do."""
        self.assert_all([("int80", 20), ("int80", 359, 40, 1, 0), ("int80", 102, 1, 0), ("int80", 21)], [BAD_CALL] * 4)

    def test_the_interface_of_x32(self):
        self.assert_all([("x32", 39), ("x32", SOCKET, 40, 1, 0), ("x32", 512)], [BAD_CALL] * 3)

    def test_new_namespaces_by_clone(self):
        flags = [0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000, 0x10020000, HIGH | 0x10000000]
        self.assert_all([("native", CLONE, flag | signal.SIGCHLD, 0, 0, 0, 0) for flag in flags], ["EPERM"] * len(flags))
        self.assert_all([("native", 435, 0, 88)], ["ENOSYS"])  # clone3 shows its flags to no filter

    def test_tracing_a_process_of_the_machine(self):
        """Process ids are the container's own, so that of the daemon names nobody there."""
        pid = self.daemon.process.pid
        self.assert_all([("native", PTRACE, 16, pid, 0, 0), ("peek", pid)], ["ESRCH"] * 2)


    def test_a_further_command_in_a_container_has_the_same_list(self):
        task = self.submit(self.mallory, ["/probe", "say", "up", ",", "sleep", "600"], image=self.with_calls)
        self.daemon.wait_for_output(task, "up")
        status = self.cli(self.mallory, "exec", task, "--", "/probe", "show", "/proc/self/status").out
        self.assertRegex(status, r"NoNewPrivs:\s*1\nSeccomp:\s*2\n")
        self.daemon.stop_task(task, force=True)
        self.daemon.wait_until_final(task)

    def test_root_of_a_container_keeps_its_list_and_its_init(self):
        """What a further command in the container begins with cannot be exchanged before it comes."""
        words = "for file in /dev/drover-init /dev/drover-seccomp; do echo x >> $file; rm -f $file; mv $file /tmp/gone; " \
                "umount $file; ln -sf /bin/true $file; done; echo up; exec sleep 600"
        task = self.submit(None, ["/bin/sh", "-c", words])
        self.daemon.wait_for_output(task, "up")
        seen = self.cli(None, "exec", task, "--", "/bin/sh", "-c", "grep Seccomp: /proc/self/status; mount -t tmpfs x /mnt")
        self.assertIn("Seccomp:\t2\n", seen.out)
        self.assertNotEqual(seen.status, 0)
        self.daemon.stop_task(task, force=True)
        self.daemon.wait_until_final(task)


class CapabilitiesTest(ContainerTest):
    withheld = {"CAP_NET_RAW": 13, "CAP_MKNOD": 27, "CAP_AUDIT_WRITE": 29, "CAP_SYS_ADMIN": 21, "CAP_NET_ADMIN": 12,
                "CAP_SYS_PTRACE": 19, "CAP_DAC_READ_SEARCH": 2, "CAP_SYS_MODULE": 16, "CAP_SYS_RAWIO": 17, "CAP_BPF": 39}

    def status(self, caller, image):
        words = ["/bin/cat", "/proc/self/status"] if image is None else ["/probe", "show", "/proc/self/status"]
        _, output, _ = self.attempt(caller, words, **({"image": image} if image else {}))
        return dict(re.findall(r"(\w+):\s*(\S+)", output))

    def test_capabilities_of_root(self):
        status = self.status(None, None)
        for which in ("CapEff", "CapPrm", "CapBnd", "CapInh", "CapAmb"):
            held = [name for name, bit in self.withheld.items() if int(status[which], 16) >> bit & 1]
            self.assertEqual(held, [], which)
        self.assertEqual((status["NoNewPrivs"], status["Seccomp"]), ("1", "2"))

    def test_capabilities_of_mallory(self):
        status = self.status(self.mallory, None)
        self.assertEqual({int(status[which], 16) for which in ("CapEff", "CapPrm", "CapBnd", "CapInh", "CapAmb")}, {0})
        self.assertEqual(status["NoNewPrivs"], "1")

    def test_a_node_of_a_gpu_that_root_makes(self):
        for image in (None, self.with_calls):
            program = "/probe" if image else self.daemon.probe
            _, output, _ = self.attempt(None, [program, "mknod", "/tmp/made" if image else "made", 195, 0],
                                        **({"image": image} if image else {}))
            self.assertEqual(output, "mknod EPERM\n")

    def test_the_device_cgroup_denies_also_who_has_a_node(self):
        """The barrier behind the missing capability: a process of the machine, with every capability, in the group of a task."""
        task = self.submit(self.mallory, ["/probe", "say", "up", ",", "sleep", "600"], image=self.with_calls, gpus=1)
        self.daemon.wait_for_output(task, "up")
        answers = self.daemon.opened_by(task, *((195, minor) for minor in range(8)), (1, 1))
        self.assertEqual(sorted(answers[:8]), [attack.ALLOWED] + [attack.DENIED] * 7)
        self.assertEqual(answers[8], attack.DENIED)
        self.daemon.stop_task(task, force=True)
        self.daemon.wait_until_final(task)


class KernelFilesTest(ContainerTest):
    def test_what_tells_of_others(self):
        """A file that is masked is /dev/null, a folder that is masked is empty."""
        for path in ("/proc/interrupts", "/proc/keys", "/proc/timer_list", "/proc/kcore", "/sys/dev/block", "/sys/firmware",
                     "/sys/devices/virtual/powercap"):
            script = f'if [ -d {path} ]; then ls -A {path}; elif [ -e {path} ]; then head -c 100 {path} | wc -c; fi'
            with self.subTest(path=path):
                record, output, errors = self.attempt(None, ["/bin/sh", "-c", script])
                self.assertEqual((record["state"], output.strip() in ("", "0")), ("finished", True), (output, errors))

    def test_what_changes_the_machine(self):
        for path in ("/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sys/vm/overcommit_memory",
                     "/proc/sysrq-trigger", "/proc/irq/default_smp_affinity", "/sys/kernel/uevent_helper", "/sys/power/state",
                     "/sys/fs/cgroup/devices/devices.allow", "/sys/fs/cgroup/cgroup.procs"):
            for caller in (None, self.mallory):
                with self.subTest(path=path, caller=caller and caller.name):
                    _, output, _ = self.attempt(caller, [self.daemon.probe, "open", path])
                    self.assertIn(output.strip(), ("EROFS", "EACCES", "ENOENT", "EPERM"))


class DockerNetworkTest(attack.ThroughDocker, attack.AttackTest):
    def test_root_on_the_machine_s_network_listens_to_others(self):
        """A Docker Engine gives root CAP_NET_RAW, which is only taken away where others are on the same network."""
        image = self.image("status", command=["/probe", "show", "/proc/self/status"])
        for network, held in ((None, 0), ({"mode": "bridge"}, 1)):
            if network and self.engine.bridge is None:
                continue
            _, output, _ = self.attempt(None, [], image=image, **({"network": network} if network else {}))
            effective = int(re.search(r"CapEff:\s*(\S+)", output).group(1), 16)
            self.assertEqual(effective >> CapabilitiesTest.withheld["CAP_NET_RAW"] & 1, held, network)


if __name__ == "__main__":
    unittest.main()
