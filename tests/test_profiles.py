"""Every machine that can be simulated: what `gpus`, `topo` and the API say of it."""

import json
import pathlib
import re
import tempfile
import unittest

import drover

# What is publicly known of each machine: number of GPUs, a model among them, its memory in MiB, and the labels that
# `topo` gives some pairs.
MACHINES = {
    "k80": (2, "Tesla K80", 11439, {(0, 1): "PIX"}),
    "k40m": (1, "Tesla K40m", 11441, {}),
    "minsky": (4, "Tesla P100-SXM2-16GB", 16280, {(0, 1): "NV2", (2, 3): "NV2", (0, 2): "SYS"}),
    "dgx1-v100": (8, "Tesla V100-SXM2-16GB", 16130, {(0, 1): "NV1", (0, 3): "NV2", (0, 4): "NV2", (0, 5): "SYS"}),
    "dgx2": (16, "Tesla V100-SXM3-32GB", 32510, {(0, 1): "NV6", (0, 15): "NV6"}),
    "dgx-a100": (8, "A100", None, {(0, 1): "NV12", (0, 7): "NV12"}),
    "dgx-h100": (8, "H100", None, {(0, 1): "NV18", (0, 7): "NV18"}),
    "pcie4": (4, "NVIDIA GeForce RTX 4090", 24564, {(0, 3): "SYS"}),
    "k80-396": (2, "Tesla K80", 11439, {(0, 1): "PIX"}),
    "m60-396": (2, "Tesla M60", 8129, {(0, 1): "PIX"}),
    "h100-615": (1, "NVIDIA H100 80GB HBM3", 81559, {}),
    "mixed": (4, "Tesla V100-PCIE-32GB", 32768, {(0, 1): "PIX", (0, 2): "SYS"}),
}


@unittest.skipIf(drover.os.geteuid() != 0, "needs root: the daemon makes device nodes")
class ProfileTest(unittest.TestCase):
    maxDiff = None

    def test_each_machine_is_what_it_is_known_to_be(self):
        for profile, (count, model, memory, pairs) in MACHINES.items():
            with self.subTest(profile=profile):
                daemon = drover.Daemon(profile)
                try:
                    daemon.start()
                    self.check_gpus(daemon, profile, count, model, memory)
                    self.check_topology(daemon, count, pairs)
                finally:
                    self.assertEqual(daemon.close(), [])

    def check_gpus(self, daemon, profile, count, model, memory):
        listed = daemon.cli("gpus", "--json")
        self.assertEqual(listed.status, 0, listed)
        machine = json.loads(listed.out)
        self.assertEqual((machine["simulated"], machine["simulation"]), (True, profile))
        gpus = machine["gpus"]
        self.assertEqual(len(gpus), count)
        self.assertEqual(len({gpu["uuid"] for gpu in gpus}), count)
        self.assertTrue(all(gpu["healthy"] for gpu in gpus), gpus)
        self.assertEqual([gpu["minor"] for gpu in gpus], list(range(count)))
        found = [gpu for gpu in gpus if model in gpu["model"]]
        self.assertTrue(found, gpus)
        if memory is not None:
            self.assertEqual(found[0]["memory_bytes"] >> 20, memory)
        table = daemon.cli("gpus").out
        self.assertIn("simulated", table.lower())
        for gpu in gpus:
            self.assertIn(gpu["model"], table)

    def check_topology(self, daemon, count, pairs):
        topology = daemon.api("GET", "/v1/topology")
        links = topology["links"]
        self.assertEqual([len(row) for row in links], [count] * count)
        for i in range(count):
            self.assertEqual(links[i][i]["label"], "X")
            for j in range(count):
                self.assertEqual(links[i][j], links[j][i])
        for (i, j), label in pairs.items():
            self.assertEqual(links[i][j]["label"], label, f"GPU {i} and GPU {j}")
        self.check_matrix(daemon.cli("topo"), links)

    def check_matrix(self, shown, links):
        """`drover topo` prints a row a GPU: GPU0 X NV12 …"""
        self.assertEqual(shown.status, 0, shown)
        self.assertIn("simulated", shown.out.lower())
        rows = [line.split() for line in shown.out.splitlines() if re.match(r"\s*GPU\d+\s+(X|NV|P|SYS|NODE)", line)]
        self.assertEqual([row[1:1 + len(links)] for row in rows], [[link["label"] for link in row] for row in links], shown)


class NoGpuTest(drover.DaemonTest):
    profile = None

    def test_a_machine_without_gpus_runs_tasks_and_says_what_it_lacks(self):
        if json.loads(self.daemon.cli("gpus", "--json").out)["gpus"]:
            self.skipTest("this machine has GPUs")
        shown = self.daemon.cli("gpus")
        self.assertEqual(shown.status, 0, shown)
        self.assertRegex(shown.out + shown.err, "(?i)no gpu|none")
        self.assertNotIn("simulated", shown.out.lower())
        self.assertEqual(self.daemon.run_probe([], "say", "hello").out, "hello\n")
        self.assert_one_sentence(self.daemon.run_probe(["--gpus", "1"], "say", "hello"), "GPU")


class NoSimulatedGpuTest(drover.DaemonTest):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="drover-profile-")
        cls.addClassCleanup(folder.cleanup)
        cls.profile = pathlib.Path(folder.name, "none.yaml")
        cls.profile.write_text("""
            name: none
            driver: {version: "535.129.03", cuda: "12.2"}
            host: {cpus: 4, memory_mib: 4096, disk_mib: 100000, numa: [{node: 0, cpus: "0-3"}]}
            models: {}
            gpus: []
            """)
        super().setUpClass()

    def test_a_profile_may_have_no_gpus(self):
        machine = json.loads(self.daemon.cli("gpus", "--json").out)
        self.assertEqual((machine["simulation"], machine["gpus"]), ("none", []))
        self.assertEqual(self.daemon.run_probe([], "say", "hello").out, "hello\n")
        self.assert_one_sentence(self.daemon.run_probe(["--gpus", "1"], "say", "hello"), "GPU")
        self.assertNotRegex(self.daemon.read_log(), "(?i)warn|error")


if __name__ == "__main__":
    unittest.main()
