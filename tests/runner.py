"""Builds Drover and runs its tests: scripts/test is the way to call it, and tiers.py says what runs in which build.

Unit-test programs are those that CMake knows (`ctest`); black-box tests are tests/test_*.py and tests/attack/test_*.py, which drive
the real binary. Each test case counts once per build that it runs in. Builds follow each other, and the tests of one run while the
next one is built: builds are nice, and tests wait more than they work.
"""

import argparse
import collections
import concurrent.futures
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time
import xml.etree.ElementTree

import changed_headers
import tiers

ROOT = pathlib.Path(__file__).resolve().parent.parent
JOBS = os.cpu_count() or 1
TESTS_AT_ONCE = 2 * JOBS
PROGRAM_TIMEOUT = 900  # seconds for one unit-test program or one black-box module
BUILD_TIMEOUT = 2 * 3600
SKIPPED = 77           # exit status by which a program says that it cannot run here
KUBERNETES_TIMEOUT = 1800  # seconds for one module on a cluster, and for building a cluster's programs, once
VIRTUAL_MACHINE_TIMEOUT = 3 * 3600

SYMBOLIZER = "external_symbolizer_path=/usr/bin/llvm-symbolizer-19"
SANITIZER_OPTIONS = {
    "release": {},
    "asan": {"ASAN_OPTIONS": f"detect_leaks=1:strict_string_checks=1:detect_stack_use_after_return=1:{SYMBOLIZER}",
             "UBSAN_OPTIONS": f"print_stacktrace=1:{SYMBOLIZER}"},
    "tsan": {"TSAN_OPTIONS": f"halt_on_error=1:second_deadlock_stack=1:suppressions={ROOT}/tests/tsan.suppressions:{SYMBOLIZER}"},
}

children = []  # processes that run() waits for
interrupted = threading.Event()


class Results:
    """What became of each test. Shown as it comes; thread safe enough for CPython's appends."""

    def __init__(self):
        self.passed, self.failed, self.skipped = [], [], []

    def add(self, name, outcome, detail=""):
        if outcome == "passed":
            self.passed.append(name)
        elif outcome == "skipped":
            self.skipped.append((name, detail))
        else:
            self.failed.append((name, detail))
            say(f"FAILED {name}\n{indent(detail)}")

    def summary(self):
        for name, reason in self.skipped:
            print(f"skipped {name}: {' '.join(reason.split())}")
        for name, _ in self.failed:
            print(f"failed {name}")
        print(f"{len(self.passed)} passed, {len(self.failed)} failed, {len(self.skipped)} skipped", flush=True)


def say(text):
    print(text, flush=True)


def indent(text):
    return "\n".join("    " + line for line in text.strip().splitlines()[-120:])


def interrupt(*_):
    """Ends what runs, so that whoever waits for it goes on to its own end, and lets nothing new begin."""
    interrupted.set()
    for child in list(children):
        with contextlib.suppress(ProcessLookupError):  # it has just ended
            os.killpg(child.pid, signal.SIGINT)


def run(part, command, timeout, environment=None, folder=ROOT, stdout=None, stderr=None):
    """Runs to the end; returns the exit status (None: took too long) and the output, without what goes to `stdout` or `stderr`. What
    it takes counts for that part of the whole run. Ends what it started, by id."""
    began = time.monotonic()
    with tempfile.TemporaryFile() as output:
        child = subprocess.Popen([str(word) for word in command], cwd=folder, stdin=subprocess.DEVNULL, stdout=stdout or output,
                                 stderr=stderr or output, env={**os.environ, **(environment or {})}, start_new_session=True)
        late = threading.Event()

        def end():
            late.set()
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)

        limit = threading.Timer(timeout, end)
        children.append(child)
        limit.start()
        try:
            _, status, used = os.wait4(child.pid, 0)
        finally:
            limit.cancel()
            children.remove(child)
        child.returncode = os.waitstatus_to_exitcode(status)
        times.add(part, began, time.monotonic(), used.ru_utime + used.ru_stime)
        output.seek(0)
        return None if late.is_set() else child.returncode, output.read().decode(errors="replace")


class Times:
    """How long each part of the whole run took, and how much of the processors."""

    def __init__(self):
        self.began, self.parts, self.lock = time.monotonic(), {}, threading.Lock()

    def add(self, part, began, ended, cpu):
        with self.lock:
            first, last, before = self.parts.get(part, (began, ended, 0))
            self.parts[part] = min(first, began), max(last, ended), before + cpu

    def summary(self):
        def row(name, *minutes):
            print(f"{name:32}" + "".join(f"{minute / 60:8.1f}" for minute in minutes))

        print(f"{'minutes':32}{'from':>8}{'to':>8}{'wall':>8}{'CPU':>8}")
        for part, (began, ended, cpu) in sorted(self.parts.items(), key=lambda item: item[1][0]):
            row(part, began - self.began, ended - self.began, ended - began, cpu)
        now = time.monotonic()
        row("all", 0, now - self.began, now - self.began, sum(cpu for _, _, cpu in self.parts.values()))


times = Times()


class Stage:
    """A stage of tiers.py being built and run."""

    def __init__(self, plan, results, pattern):
        self.plan, self.preset, self.results, self.pattern = plan, plan.preset, results, pattern
        self.build_folder = ROOT / "build" / plan.preset
        self.environment = {**SANITIZER_OPTIONS[plan.preset], "DROVER_BUILD": str(self.build_folder), **plan.environment}

    def name(self, test):
        return f"{self.preset}: {test}"

    def configure(self):
        return self.make("build", "cmake", "--preset", self.preset, "--log-level=WARNING")

    def build(self, *targets, part="build"):
        return self.make(part, "cmake", "--build", self.build_folder, "--parallel", JOBS, "--target", *targets)

    def make(self, part, *command):
        """Returns whether that could be made; what could not is a failed test."""
        if interrupted.is_set():
            return False
        shown = sys.stdout if sys.stdout.isatty() else None
        status, output = run(f"{self.preset}: {part}", ["nice", *command], BUILD_TIMEOUT, stdout=shown, stderr=shown)
        if status != 0:
            wrong = [line for line in (output or "see above").splitlines() if not line.startswith("[")]
            self.results.add(self.name(part), "failed", "\n".join(wrong))
        return status == 0

    def compile_headers(self, every):
        """Each alone: those that changed lately, or every one."""
        targets = ["lone_headers"] if every else changed_headers.targets(self.build_folder)
        if not targets or self.build(*targets, part="headers alone"):
            self.results.add("headers compile alone", "passed")

    def jobs(self):
        """A call for each black-box module and each unit-test program; those on clusters are run_clusters()'s."""
        for test in self.programs():
            if self.plan.programs(test["name"]):
                yield self.run_program, test
        for module in self.modules():
            if self.plan.modules(module):
                yield self.run_module, module, *(["virtual machines"] if module in tiers.VIRTUAL_MACHINES else [])

    def run_clusters(self, tests):
        """One after the other: each loads a machine as several others do."""
        for test in tests:
            self.run_module(test, part="clusters")

    def add_cases(self, whole, cases, began):
        """`whole` is the program or module that they belong to."""
        for case, outcome, detail in cases:
            self.results.add(self.name(case), outcome, detail)
        counts = collections.Counter(outcome for _, outcome, _ in cases)
        if counts:
            counted = ", ".join(f"{counts[outcome]} {outcome}" for outcome in ("passed", "failed", "skipped") if counts[outcome])
            say(f"  {self.name(whole)}: {counted} in {time.monotonic() - began:.0f} s")

    # Unit-test programs

    def left_out(self, program):
        """The part of a filter that leaves out what this build cannot judge."""
        cases = tiers.UNTHREADED_CASES.get(program, []) if self.preset == "tsan" else []
        return "-" + ":".join(cases) if cases else ""

    def programs(self):
        listed = subprocess.run(["ctest", "--test-dir", str(self.build_folder), "--show-only=json-v1"],
                                capture_output=True, check=True, text=True)
        return json.loads(listed.stdout)["tests"]

    def run_program(self, test):
        if interrupted.is_set():
            return
        began = time.monotonic()
        properties = {item["name"]: item["value"] for item in test.get("properties", [])}
        if "command" not in test or properties.get("DISABLED"):
            self.results.add(self.name(test["name"]), "failed", "CMake knows the test but not how to run it")
            return
        with tempfile.NamedTemporaryFile(suffix=".xml") as report:
            environment = {**self.environment, "GTEST_OUTPUT": f"xml:{report.name}"}
            environment["GTEST_FILTER"] = f"*{self.pattern or ''}*{self.left_out(test['name'])}"
            environment.update(item.split("=", 1) for item in properties.get("ENVIRONMENT", []))
            timeout = properties.get("TIMEOUT", PROGRAM_TIMEOUT) * self.plan.slowness
            status, output = run(f"{self.preset}: unit tests", test["command"], timeout, environment,
                                 properties.get("WORKING_DIRECTORY", self.build_folder))
            cases = read_gtest_report(report.name)
        failed = any(outcome == "failed" for _, outcome, _ in cases)
        self.add_cases(test["name"], cases, began)
        if status is None:
            self.results.add(self.name(test["name"]), "failed", "took too long and was ended\n" + output)
        elif status == SKIPPED and not cases:
            self.results.add(self.name(test["name"]), "skipped", output or "no reason given")
        elif status != 0 and not failed:  # it crashed, or a sanitizer spoke at its end
            self.results.add(self.name(test["name"]), "failed", f"exit status {status}\n{output}")
        elif not cases and not self.pattern:  # no GoogleTest program: it is one test
            self.results.add(self.name(test["name"]), "passed")

    # Black-box tests

    def modules(self):
        """The longest first."""
        names = sorted(path.stem for path in (ROOT / "tests").glob("test_*.py") if not path.stem.startswith(tiers.CLUSTERS))
        names += sorted(f"{tiers.ATTACKS}{path.stem}" for path in (ROOT / "tests/attack").glob("test_*.py"))
        return sorted(names, key=lambda name: name not in tiers.LONG_MODULES)

    def run_module(self, module, part="black-box tests"):
        """A module, or one class of it."""
        if interrupted.is_set():
            return
        began = time.monotonic()
        with tempfile.NamedTemporaryFile("r", suffix=".jsonl") as report:
            command = [sys.executable, "-B", "tests/blackbox.py", module, report.name]
            timeout = PROGRAM_TIMEOUT * self.plan.slowness
            if module.startswith(tiers.CLUSTERS):
                timeout = KUBERNETES_TIMEOUT
            if module in tiers.VIRTUAL_MACHINES:
                timeout = VIRTUAL_MACHINE_TIMEOUT
            status, output = run(f"{self.preset}: {part}", command + ([self.pattern] if self.pattern else []), timeout, self.environment)
            cases = [json.loads(line) for line in report]
        self.add_cases(module, cases, began)
        if status is None:
            self.results.add(self.name(module), "failed", "took too long and was ended\n" + output)
        elif status != 0 and not any(outcome == "failed" for _, outcome, _ in cases):
            self.results.add(self.name(module), "failed", f"exit status {status}\n{output}")


def run_checks(results):
    for check in ("format", "layers", "headers"):
        status, output = run("checks", [sys.executable, "-B", "scripts/lint", "--only", check], PROGRAM_TIMEOUT)
        results.add(f"lint: {check}", "passed" if status == 0 else "failed", output)


def fetch_vendor_driver():
    """The vendor's own files, for tests that hold ours against them; without them these tests are skipped."""
    folder = ROOT / "build/nvidia-driver"
    status, output = run("vendor's driver", ["scripts/fetch-nvidia-driver", str(folder)], PROGRAM_TIMEOUT)
    if status != 0:
        say(f"The vendor's driver files are not here: {' '.join(output.split())}")
        return {}
    programs = sorted(path for path in folder.rglob("nvidia-smi") if os.access(path, os.X_OK) and path.is_file())
    return {"DROVER_NVIDIA_ROOT": str(folder), **{"DROVER_NVIDIA_SMI": str(path) for path in programs[:1]}}


def build_kubernetes(results):
    """A cluster's programs, for tests on a real one; without them these tests are skipped. Returns their environment."""
    status, output = run("Kubernetes' programs", [sys.executable, "-B", "-m", "kube"], KUBERNETES_TIMEOUT, folder=ROOT / "tests",
                         stderr=sys.stderr)
    if status == 0:
        return {}
    if status == SKIPPED:
        say(f"There is no Kubernetes here: {' '.join(output.split())}")
        return {"DROVER_KUBE_UNAVAILABLE": output.strip()}
    if status is None:
        return {"DROVER_KUBE_UNAVAILABLE": f"it was not built within {KUBERNETES_TIMEOUT} s: build it with 'python3 -B -m kube'"}
    results.add("build of Kubernetes", "failed", output)
    return {"DROVER_KUBE_UNAVAILABLE": "it did not build"}


def read_gtest_report(path):
    """(name, outcome, detail) of each case; empty when the program wrote no report."""
    try:
        root = xml.etree.ElementTree.parse(path).getroot()
    except (OSError, xml.etree.ElementTree.ParseError):
        return []
    cases = []
    for case in root.iter("testcase"):
        name = f"{case.get('classname')}.{case.get('name')}"
        failures = [failure.get("message", "") for failure in case.iter("failure")]
        skipped = case.find("skipped")
        if failures:
            cases.append((name, "failed", "\n".join(failures)))
        elif skipped is not None:
            reason = skipped.get("message", "").split("\n", 1)  # "file:line\nreason"
            cases.append((name, "skipped", reason[-1] or "no reason given"))
        elif case.get("status") == "run":
            cases.append((name, "passed", ""))
    return cases


def parse_arguments():
    parser = argparse.ArgumentParser(prog="scripts/test", description="Builds Drover and runs its tests.")
    tier = parser.add_mutually_exclusive_group()
    tier.add_argument("--quick", action="store_true", help="the short black-box tests of the release build, and the unit tests")
    tier.add_argument("--all", action="store_true", help="every test under every sanitizer, and on every cluster")
    parser.add_argument("--release", action="store_true", help="only what runs in the release build")
    parser.add_argument("--asan", action="store_true", help="only what runs with address and undefined-behaviour sanitizers")
    parser.add_argument("--tsan", action="store_true", help="only what runs with the thread sanitizer")
    parser.add_argument("--no-kubernetes", action="store_true", help="without the tests that need a Kubernetes cluster")
    parser.add_argument("-k", metavar="TEXT", dest="pattern", default="", help="only tests whose name contains TEXT")
    return parser.parse_args()


def run_stages(arguments, results):
    chosen = {preset for preset in ("release", "asan", "tsan") if getattr(arguments, preset)} or {"release", "asan", "tsan"}
    plans = [plan for plan in (tiers.QUICK if arguments.quick else tiers.ALL if arguments.all else tiers.USUAL) if plan.preset in chosen]
    kubernetes = "release" in chosen and not (arguments.quick or arguments.no_kubernetes) and "kube" in (arguments.pattern or "kube")

    with (concurrent.futures.ThreadPoolExecutor(TESTS_AT_ONCE) as tests, concurrent.futures.ThreadPoolExecutor(3) as aside):
        started = []
        environment = aside.submit(dict if arguments.quick else fetch_vendor_driver)
        if kubernetes:  # only clusters need them: they are built beside the first build
            built = aside.submit(build_kubernetes, results)
        if not arguments.pattern:
            started.append(tests.submit(run_checks, results))

        def run_clusters(stage):
            stage.environment.update(built.result())
            stage.run_clusters(every_cluster_module() if arguments.all else tiers.CLUSTER_TESTS)

        for plan in plans:
            stage = Stage(plan, results, arguments.pattern)
            say(f"Building {plan.preset} …")
            if not (stage.configure() and stage.build(*plan.targets)):
                continue
            stage.environment.update(environment.result())
            if plan.preset == "release" and kubernetes:
                started.append(aside.submit(run_clusters, stage))
            started += [tests.submit(*job) for job in stage.jobs()]
        if "release" in chosen and not (arguments.pattern or arguments.quick):
            Stage(plans[0], results, "").compile_headers(every=arguments.all)
        for done in concurrent.futures.as_completed(started):
            done.result()


def every_cluster_module():
    return sorted(path.stem for path in (ROOT / "tests").glob(f"{tiers.CLUSTERS}*.py"))


def main():
    arguments = parse_arguments()
    results = Results()
    run_stages(arguments, results)
    if interrupted.is_set():
        results.add("scripts/test", "failed", "it was interrupted")
    times.summary()
    results.summary()
    return 1 if results.failed or not results.passed else 0


if __name__ == "__main__":
    signal.signal(signal.SIGINT, interrupt)
    sys.exit(main())
