"""The simulator is true to NVML's interface: clients that know nothing of it read the same GPUs on every machine profile.

The clients are C programs written from the public references (sim/abi_check.c, sim/cuda/check.c), the vendor's own nvidia-smi, and the
vendor's Python bindings. The last two are fetched into a temporary folder where they can be had.
"""

import csv
import dataclasses
import functools
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import unittest

import drover

LIBRARY = drover.BUILD / "lib/drover/sim/libnvidia-ml.so.1"
ABI_CHECK = drover.built("nvml_abi_check")
CUDA_CHECK = drover.built("cuda_check")
PROFILES = {path.stem: path for path in sorted((drover.ROOT / "sim/profiles").glob("*.yaml"))}
UNAVAILABLE = 77  # exit status of scripts/fetch-nvidia-smi


def client_environment(profile, faults="/nonexistent", **more):
    return {**os.environ, "LD_LIBRARY_PATH": str(LIBRARY.parent), "DROVER_SIM_PROFILE": str(profile),
            "DROVER_SIM_FAULTS": str(faults), **more}


@dataclasses.dataclass
class Machine:
    """What the C program reads."""

    driver: str
    cuda: str
    gpus: list      # dictionaries, by index
    links: dict     # (i, j) -> (level, NVLinks)

    def label(self, i, j):
        """As `topo -m` writes it."""
        level, nvlinks = self.links[i, j]
        return f"NV{nvlinks}" if nvlinks else "PIX" if level == "BOARD" else level


def read_machine(profile, **environment):
    done = drover.run([ABI_CHECK], env=client_environment(profile, **environment))
    if done.status != 0:
        raise AssertionError(str(done))
    machine = Machine("", "", [], {})
    for line in done.out.splitlines():
        kind, *words = line.split(" ")
        if kind == "driver":
            machine.driver, machine.cuda = words[0], words[2]
        elif kind == "gpu":
            names = ("index", "uuid", "pci", "minor", "memory_mib", "capability", "ecc", "mig", "numa", "serial")
            machine.gpus.append({**dict(zip(names, words)), "name": " ".join(words[len(names):])})
        elif kind == "pair":
            machine.links[int(words[0]), int(words[1])] = (words[2], int(words[3]))
    return machine


def on_every_machine(test):
    """Calls test(self, path of the profile, machine as the C program reads it) for each profile."""

    @functools.wraps(test)
    def each(self):
        for name, path in PROFILES.items():
            with self.subTest(profile=name):
                test(self, path, read_machine(path))

    return each


class SimulatorTest(unittest.TestCase):
    maxDiff = None


class AbiCheckTest(SimulatorTest):
    @on_every_machine
    def test_reads_what_the_profile_says(self, path, machine):
        self.assertGreaterEqual(len(PROFILES), 9)
        text = path.read_text()
        self.assertEqual([gpu["pci"].lower() for gpu in machine.gpus],
                         ["0000" + address for address in re.findall(r'model: \w+, pci: "(\S+)"', text)])
        self.assertIn(f'driver: {{version: "{machine.driver}", cuda: "{machine.cuda}"}}', text)
        rows = [[int(count) for count in row.split()] for row in re.findall(r"^  - ([\d ]+)$", text, re.MULTILINE)]
        rows = rows or [[0] * len(machine.gpus)] * len(machine.gpus)
        for (i, j), (_, nvlinks) in machine.links.items():
            self.assertEqual(nvlinks, rows[i][j], (i, j))


class CudaCheckTest(SimulatorTest):
    def check(self, profile, *verbs, **environment):
        return drover.run([CUDA_CHECK, *verbs], env=client_environment(profile, **environment))

    @on_every_machine
    def test_cuda_and_nvml_see_the_same_gpus(self, path, machine):
        listed = self.check(path, "list")
        self.assertEqual(listed.status, 0, listed)
        self.assertEqual(listed.out.splitlines()[0], f"driver {machine.cuda}")
        seen = [re.fullmatch(r"gpu (\d+) (\S+) (\S+) \d+ (\S+) \d+ (.*)", line).groups() for line in listed.out.splitlines()[1:]]
        self.assertEqual([(index, uuid, pci.lower(), capability, name) for index, uuid, pci, capability, name in seen],
                         [(gpu["index"], gpu["uuid"], gpu["pci"].lower().removeprefix("0000"), gpu["capability"], gpu["name"])
                          for gpu in machine.gpus])

    def test_what_one_process_holds_another_lacks(self):
        folder = temporary_folder(type(self))
        shared = {"DROVER_SIM_LIVE": str(folder / "live")}
        profile = PROFILES["k80"]
        alone = self.check(profile, "fill", "64", **shared)
        self.assertEqual(alone.status, 0, alone)
        with subprocess.Popen([CUDA_CHECK, "hold", "8000", "sleep", "600"], stdout=subprocess.PIPE, text=True,
                              env=client_environment(profile, **shared)) as holder:
            try:
                self.assertEqual(holder.stdout.readline(), "held 8000\n")
                refused = self.check(profile, "hold", "8000", **shared)
                self.assertEqual((refused.status, refused.err), (2, "cuda_check: no room for 8000 MiB\n"))
                self.assertEqual(self.check(profile, "gpu", "1", "hold", "8000", **shared).status, 0)
            finally:
                holder.kill()
        self.assertEqual(self.check(profile, "fill", "64", **shared).out, alone.out)


def temporary_folder(case):
    """A folder that lives as long as the test class."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="drover-test-"))
    case.addClassCleanup(shutil.rmtree, folder, ignore_errors=True)
    return folder


def fetch_nvidia_smi(folder):
    fetched = drover.run([drover.ROOT / "scripts/fetch-nvidia-smi", folder], timeout=300)
    if fetched.status == UNAVAILABLE:
        raise unittest.SkipTest(fetched.err.strip())
    if fetched.status != 0:
        raise AssertionError(str(fetched))
    return folder / "nvidia-smi"


class NvidiaSmiTest(SimulatorTest):
    @classmethod
    def setUpClass(cls):
        cls.folder = temporary_folder(cls)
        cls.program = fetch_nvidia_smi(cls.folder)

    def smi(self, profile, *arguments, **environment):
        done = drover.run([self.program, *arguments], env=client_environment(profile, **environment))
        self.assertEqual(done.status, 0, f"nvidia-smi {arguments}: {done}")
        return re.sub(r"\x1b\[\d*m", "", done.out)

    def test_mig_instances_are_made_seen_and_destroyed(self):
        profile = drover.ROOT / "sim/profiles/dgx-a100.yaml"

        def smi(*arguments):
            return self.smi(profile, *arguments, DROVER_SIM_MIG=str(self.folder / "mig.yaml"))

        smi("-i", "0", "-mig", "1")
        made = smi("mig", "-i", "0", "-cgi", "9,19", "-C")
        self.assertEqual(made.count("Successfully created GPU instance"), 2, made)
        self.assertEqual(made.count("Successfully created compute instance"), 2, made)
        self.assertIn("MIG 3g.20gb", smi("mig", "-i", "0", "-lgi"))
        self.assertIn("MIG 3g.20gb", smi("mig", "-i", "0", "-lci"))
        self.assertIn("MIG 1c.3g.20gb", smi("mig", "-i", "0", "-lcip"))
        self.assertEqual(len(re.findall(r"MIG \S+ +Device +\d: +\(UUID: MIG-", smi("-L"))), 2)
        self.assertIn("3g.20gb", smi("-L"))
        self.assertNotIn("No MIG devices found", smi("-i", "0"))
        smi("mig", "-i", "0", "-dci")
        smi("mig", "-i", "0", "-dgi")
        smi("-i", "0", "-mig", "0")

    @on_every_machine
    def test_list(self, path, machine):
        self.assertEqual(self.smi(path, "-L").splitlines(),
                         [f"GPU {gpu['index']}: {gpu['name']} (UUID: {gpu['uuid']})" for gpu in machine.gpus])

    @on_every_machine
    def test_query(self, path, machine):
        """-q, field by field: its sections are indented by four blanks a level."""
        shown = self.smi(path, "-q")
        self.assertRegex(shown, rf"Driver Version +: {re.escape(machine.driver)}\n")
        self.assertRegex(shown, rf"CUDA Version +: {re.escape(machine.cuda)}\n")
        self.assertRegex(shown, rf"Attached GPUs +: {len(machine.gpus)}\n")
        sections = re.split(r"^GPU (?=\w{8}:)", shown, flags=re.MULTILINE)[1:]
        self.assertEqual(len(sections), len(machine.gpus))
        for section, gpu in zip(sections, machine.gpus):
            self.assertTrue(section.startswith(gpu["pci"]), section[:40])
            for field, value in (("Product Name", gpu["name"]), ("GPU UUID", gpu["uuid"]),
                                 ("Minor Number", gpu["minor"]), ("Bus Id", gpu["pci"]),
                                 ("Serial Number", "N/A" if gpu["serial"] == "-" else gpu["serial"]),
                                 ("Total", f"{gpu['memory_mib']} MiB")):
                self.assertRegex(section, rf"\n +{field} +: {re.escape(value)}\n")

    @on_every_machine
    def test_where_nothing_runs_there_is_no_row(self, path, machine):
        self.assertEqual(self.smi(path, "--query-compute-apps=pid,used_memory,gpu_uuid", "--format=csv,noheader"), "")

    @on_every_machine
    def test_table(self, path, machine):
        shown = self.smi(path)
        self.assertIn(f"Driver Version: {machine.driver} ", shown)
        self.assertIn(f"CUDA Version: {machine.cuda} ", shown)
        for gpu in machine.gpus:
            self.assertRegex(shown, rf"\| +{gpu['index']}  .*{gpu['pci']}")
            self.assertIn(f"{gpu['memory_mib']}MiB", shown)

    @on_every_machine
    def test_fields(self, path, machine):
        fields = "index,uuid,name,memory.total,pci.bus_id,compute_cap,ecc.mode.current,driver_version," \
                 "mig.mode.current,temperature.gpu,utilization.gpu"
        mode = {"on": "Enabled", "off": "Disabled", "-": "[N/A]"}
        rows = list(csv.reader(io.StringIO(self.smi(path, f"--query-gpu={fields}", "--format=csv")),
                               skipinitialspace=True))
        self.assertEqual([row[:9] for row in rows[1:]],
                         [[gpu["index"], gpu["uuid"], gpu["name"], f"{gpu['memory_mib']} MiB", gpu["pci"],
                           gpu["capability"], mode[gpu["ecc"]], machine.driver, mode[gpu["mig"]]]
                          for gpu in machine.gpus])
        self.assertTrue(all(20 <= int(row[9]) <= 50 and row[10] == "0 %" for row in rows[1:]), rows)

    @on_every_machine
    def test_topology(self, path, machine):
        rows = re.findall(r"^GPU(\d+)\t(.*)$", self.smi(path, "topo", "-m"), re.MULTILINE)
        count = len(machine.gpus)
        self.assertEqual([int(index) for index, _ in rows], list(range(count)))
        for i, (_, row) in enumerate(rows):
            cells = [cell.strip() for cell in row.split("\t")]
            self.assertEqual(cells[:count], ["X" if i == j else machine.label(i, j) for j in range(count)])
            self.assertEqual(cells[count + 1], machine.gpus[i]["numa"])

    @on_every_machine
    def test_nvlinks(self, path, machine):
        linked = {i for (i, _), (_, nvlinks) in machine.links.items() if nvlinks}
        shown = self.smi(path, "nvlink", "-s")
        counts = {int(index): len(re.findall(r"Link \d+: [\d.]+ GB/s", links))
                  for index, links in re.findall(r"^GPU (\d+):.*\n((?:\s+Link.*\n?)*)", shown, re.MULTILINE)}
        for i in range(len(machine.gpus)):
            least = max((n for (a, _), (_, n) in machine.links.items() if a == i), default=0) if i in linked else 0
            self.assertGreaterEqual(counts.get(i, 0), least)
            self.assertEqual(counts.get(i, 0) > 0, i in linked)

    def test_faults_show_while_it_runs(self):
        faults = self.folder / "faults.yaml"
        query = ("--query-gpu=temperature.gpu,utilization.gpu,memory.used,ecc.errors.uncorrected.volatile.total",
                 "--format=csv,noheader,nounits")
        path = PROFILES["k80"]
        self.assertEqual(self.smi(path, *query, faults=faults).splitlines()[1].split(", ")[1:], ["0", "0", "0"])
        faults.write_text("1:\n  temperature: 88\n  utilization: {gpu: 97}\n  ecc: {volatile: {uncorrected: 5}}\n"
                          f"  processes: [{{pid: {os.getpid()}, memory_mib: 512}}]\n")
        first, second = self.smi(path, *query, faults=faults).splitlines()
        self.assertEqual(first.split(", ")[1:], ["0", "0", "0"])
        self.assertEqual(second.split(", "), ["88", "97", "512", "5"])


class PythonBindingsTest(SimulatorTest):
    """Every getter of nvidia-ml-py that needs nothing but a device."""

    CLIENT = textwrap.dedent("""
        import inspect, sys
        sys.path.insert(0, sys.argv[1])
        import pynvml
        pynvml.nvmlInit()
        handle = pynvml.nvmlDeviceGetHandleByIndex(pynvml.nvmlDeviceGetCount() - 1)
        for name, function in sorted(vars(pynvml).items()):
            if not name.startswith("nvmlDeviceGet") or not inspect.isfunction(function):
                continue
            needed = [p for p in inspect.signature(function).parameters.values() if p.default is p.empty]
            if len(needed) != 1 or needed[0].name not in ("handle", "device"):
                continue
            try:
                function(handle)
                print(name, "answered")
            except pynvml.NVMLError as error:
                print(name, error.value)
    """)

    @classmethod
    def setUpClass(cls):
        cls.folder = temporary_folder(cls)
        fetched = drover.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", cls.folder,
                              "nvidia-ml-py"], timeout=300)
        if fetched.status != 0:
            raise unittest.SkipTest(f"nvidia-ml-py cannot be had here: {fetched.err.strip().splitlines()[-1:]}")

    @on_every_machine
    def test_every_getter_finds_its_function(self, path, _):
        not_supported, function_not_found = 3, 13
        done = drover.run([sys.executable, "-c", self.CLIENT, self.folder], env=client_environment(path))
        self.assertEqual(done.status, 0, done)
        answers = dict(line.split() for line in done.out.splitlines())
        self.assertGreater(len(answers), 80)
        self.assertNotIn(str(function_not_found), answers.values())
        self.assertLessEqual(set(answers.values()), {"answered", str(not_supported)}, answers)
        self.assertGreater(list(answers.values()).count("answered"), 55, answers)


def needs_daemon(case):
    case = unittest.skipUnless(drover.BINARY.exists(), f"{drover.BINARY} has not been built")(case)
    return unittest.skipIf(os.geteuid() != 0, "needs root: the daemon makes device nodes")(case)


@needs_daemon
class DroverTest(SimulatorTest):
    """`drover gpus` and `drover topo` read the same GPUs."""

    @on_every_machine
    def test_reads_the_same(self, path, machine):
        daemon = drover.Daemon(path.stem)
        try:
            daemon.start()
            self.check_gpus(json.loads(daemon.cli("gpus", "--json").out), machine)
            self.check_links(json.loads(daemon.cli("topo", "--json").out)["links"], machine)
        finally:
            self.assertEqual(daemon.close(), [])

    def check_gpus(self, shown, machine):
        self.assertEqual((shown["driver_version"], shown["cuda_version"]), (machine.driver, machine.cuda))
        mode = {"on": True, "off": False, "-": None}
        self.assertEqual(
            [(gpu["uuid"], gpu["minor"], gpu["model"], gpu["memory_bytes"] >> 20, gpu["compute_capability"],
              gpu["ecc"], gpu["pci"], gpu["numa_node"], gpu["serial"]) for gpu in shown["gpus"]],
            [(gpu["uuid"], int(gpu["minor"]), gpu["name"], int(gpu["memory_mib"]), gpu["capability"],
              mode[gpu["ecc"]], gpu["pci"][4:].lower(), int(gpu["numa"]), gpu["serial"].replace("-", ""))
             for gpu in machine.gpus])

    def check_links(self, links, machine):
        count = len(machine.gpus)
        self.assertEqual([[link["label"] for link in row] for row in links],
                         [["X" if i == j else machine.label(i, j) for j in range(count)] for i in range(count)])


@needs_daemon
class NvidiaSmiInContainerTest(drover.DaemonTest):
    """The vendor's own tool, in an image that asks for the driver volume, sees the GPUs of its task and no others."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        program = fetch_nvidia_smi(temporary_folder(cls))
        libraries = re.findall(r"(/\S+) \(0x", drover.run(["ldd", program]).out)

        def fill(layer):
            for path in libraries:
                layer.add_file(path, pathlib.Path(path).read_bytes(), 0o755)
            layer.add_file("nvidia-smi", program.read_bytes(), 0o755)

        output = cls.daemon.folder / "smi"
        drover.oci_layout.write(output, fill, labels={"com.nvidia.volumes.needed": "nvidia_driver"},
                                environment=["LD_LIBRARY_PATH=/usr/local/nvidia/lib:/usr/local/nvidia/lib64"])
        cls.image = f"oci:{output}"

    def smi(self, gpus, *arguments):
        """What it writes, and the UUIDs that the task's record names."""
        started = self.daemon.cli("run", "--detach", "--gpus", gpus, "--image", self.image, "--", "/nvidia-smi", *arguments)
        self.assertEqual(started.status, 0, started)
        task = started.out.strip()
        record = self.daemon.wait_until_final(task)
        return self.daemon.output(task), set(re.findall(r"GPU-[0-9a-f-]{36}", json.dumps(record)))

    def test_lists_exactly_the_gpus_of_the_task(self):
        shown, held = self.smi(3, "-L")
        self.assertEqual(len(held), 3)
        self.assertEqual(re.findall(r"^GPU (\d): .*\(UUID: (\S+)\)$", shown, re.MULTILINE),
                         [(str(index), gpu["uuid"]) for index, gpu in enumerate(
                             gpu for gpu in self.daemon.api("GET", "/v1/gpus")["gpus"] if gpu["uuid"] in held)])

    def test_knows_how_they_are_wired(self):
        shown, _ = self.smi(2, "topo", "-m")
        self.assertRegex(shown, r"GPU0\t X \tNV12\t")


if __name__ == "__main__":
    unittest.main()
