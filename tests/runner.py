"""Builds Drover and runs its tests: scripts/test is the way to call it.

A stage is one build tree and what runs in it. Unit-test programs are those that CMake knows (`ctest`); black-box tests are
tests/test_*.py and tests/attack/test_*.py, which drive the real binary. Each test case counts once per stage.
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

ROOT = pathlib.Path(__file__).resolve().parent.parent
JOBS = os.cpu_count() or 1
TESTS_AT_ONCE = JOBS + (JOBS + 1) // 2  # they wait about as long as they work
PROGRAM_TIMEOUT = 900  # seconds for one unit-test program or one black-box module
HEADERS_TIMEOUT = 3600  # seconds for what runs beside all the rest
SKIPPED = 77           # exit status by which a program says that it cannot run here

SYMBOLIZER = "external_symbolizer_path=/usr/bin/llvm-symbolizer-19"
SANITIZER_OPTIONS = {
    "ASAN_OPTIONS": f"detect_leaks=1:strict_string_checks=1:detect_stack_use_after_return=1:{SYMBOLIZER}",
    "UBSAN_OPTIONS": f"print_stacktrace=1:{SYMBOLIZER}",
    "TSAN_OPTIONS": f"halt_on_error=1:second_deadlock_stack=1:{SYMBOLIZER}",
}
# Rooms whose code runs on several threads, and the black-box tests that make a daemon use them all.
THREADED_PROGRAMS = {"api_test", "container_test", "engine_test", "gpu_test", "image_test", "kube_test", "store_test"}
THREADED_MODULES = {"test_api", "test_crash", "test_queue"}
LONG_MODULES = {"test_crash", "test_crash_services", "test_docs"}
KUBERNETES_MODULES = "test_kube"  # how their names begin
KUBERNETES_TIMEOUT = 1800         # seconds for one of them
KUBERNETES_BUILD_TIMEOUT = 1500   # seconds for building a cluster's programs, once
# Debian's gRPC is not built for the thread sanitizer, which takes what that does for races.
UNTHREADED_CASES = {"kube_test": ["ContainerRuntime.*", "Driver*", "PluginHostTest.*", "SocketServer.*"]}
QUICK_MODULES = {"test_api", "test_cli", "test_crash", "test_isolation", "test_queue", "test_run"}

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


def run(command, timeout, environment=None, folder=ROOT, progress=None):
    """Runs to the end; returns the exit status (None: took too long) and the output, without what it says on stderr when that
    goes to `progress`. Ends what it started, by id."""
    with tempfile.TemporaryFile() as output:
        child = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=progress or output,
                                 env={**os.environ, **(environment or {})}, start_new_session=True)
        children.append(child)
        try:
            status = child.wait(timeout)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
            children.remove(child)
        output.seek(0)
        return status, output.read().decode(errors="replace")


class Stage:
    """One build tree, and the tests that run in it."""

    def __init__(self, preset, results, pattern):
        self.preset, self.results, self.pattern = preset, results, pattern
        self.build_folder = ROOT / "build" / preset
        self.environment = {**SANITIZER_OPTIONS, "DROVER_BUILD": str(self.build_folder)}

    def name(self, test):
        return f"{self.preset}: {test}"

    def build(self, *targets):
        """Returns whether it built; a failed build is a failed test."""
        if interrupted.is_set():
            return False
        began = time.monotonic()
        say(f"Building {self.preset} …")
        shown = None if sys.stdout.isatty() else subprocess.PIPE
        for command in (["cmake", "--preset", self.preset, "--log-level=WARNING"],
                        ["cmake", "--build", str(self.build_folder), "--parallel", str(JOBS), "--target", *targets]):
            done = subprocess.run(["nice", *command], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=shown, stderr=subprocess.STDOUT,
                                  text=True)
            if done.returncode != 0:
                wrong = [line for line in (done.stdout or "see above").splitlines() if not line.startswith("[")]
                self.results.add(self.name("build"), "failed", "\n".join(wrong))
                return False
        say(f"Built {self.preset} in {time.monotonic() - began:.0f} s")
        return True

    def run_checks(self):
        for check in ("format", "layers", "headers"):
            status, output = run([sys.executable, "-B", "scripts/lint", "--only", check], PROGRAM_TIMEOUT)
            self.results.add(f"lint: {check}", "passed" if status == 0 else "failed", output)

    def compile_headers(self):
        """Each alone, in the time that tests wait: nobody waits for it but the end."""
        began = time.monotonic()
        status, output = run(["nice", "-n", "19", "cmake", "--build", str(self.build_folder), "--parallel", "1",
                              "--target", "lone_headers"], HEADERS_TIMEOUT)
        self.results.add("headers compile alone", "passed" if status == 0 else "failed", output)
        say(f"Compiled headers alone in {time.monotonic() - began:.0f} s")

    def run_tests(self, at_once, programs=None, modules=None):
        """Runs the unit-test programs and black-box modules named (None: all), so many at once; those on clusters are
        run_clusters()'s."""
        began = time.monotonic()
        jobs = [(self.run_module, module) for module in self.modules() if modules is None or module in modules]
        jobs += [(self.run_program, test) for test in self.programs() if programs is None or test["name"] in programs]
        with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
            for done in concurrent.futures.as_completed([pool.submit(job, argument) for job, argument in jobs]):
                done.result()
        say(f"Ran the {self.preset} tests in {time.monotonic() - began:.0f} s")

    def run_clusters(self):
        """One after the other: each loads a machine as several others do."""
        began = time.monotonic()
        for path in sorted((ROOT / "tests").glob(f"{KUBERNETES_MODULES}*.py")):
            self.run_module(path.stem)
        say(f"Ran the {self.preset} tests on clusters in {time.monotonic() - began:.0f} s")

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
        cases = UNTHREADED_CASES.get(program, []) if self.preset == "tsan" else []
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
            status, output = run(test["command"], properties.get("TIMEOUT", PROGRAM_TIMEOUT), environment,
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
        names = sorted(path.stem for path in (ROOT / "tests").glob("test_*.py") if not path.stem.startswith(KUBERNETES_MODULES))
        names += sorted(f"attack.{path.stem}" for path in (ROOT / "tests/attack").glob("test_*.py"))
        return sorted(names, key=lambda name: name not in LONG_MODULES)

    def run_module(self, module):
        if interrupted.is_set():
            return
        began = time.monotonic()
        with tempfile.NamedTemporaryFile("r", suffix=".jsonl") as report:
            command = [sys.executable, "-B", "tests/blackbox.py", module, report.name]
            timeout = KUBERNETES_TIMEOUT if module.startswith(KUBERNETES_MODULES) else PROGRAM_TIMEOUT
            status, output = run(command + ([self.pattern] if self.pattern else []), timeout, self.environment)
            cases = [json.loads(line) for line in report]
        self.add_cases(module, cases, began)
        if status is None:
            self.results.add(self.name(module), "failed", "took too long and was ended\n" + output)
        elif status != 0 and not any(outcome == "failed" for _, outcome, _ in cases):
            self.results.add(self.name(module), "failed", f"exit status {status}\n{output}")


def fetch_vendor_driver():
    """The vendor's own files, for tests that hold ours against them; without them these tests are skipped."""
    folder = ROOT / "build/nvidia-driver"
    status, output = run(["scripts/fetch-nvidia-driver", str(folder)], PROGRAM_TIMEOUT)
    if status != 0:
        say(f"The vendor's driver files are not here: {' '.join(output.split())}")
        return {}
    programs = sorted(path for path in folder.rglob("nvidia-smi") if os.access(path, os.X_OK) and path.is_file())
    return {"DROVER_NVIDIA_ROOT": str(folder), **{"DROVER_NVIDIA_SMI": str(path) for path in programs[:1]}}


def build_kubernetes(results):
    """A cluster's programs, for tests on a real one; without them these tests are skipped. Returns their environment."""
    status, output = run([sys.executable, "-B", "-m", "kube"], KUBERNETES_BUILD_TIMEOUT, folder=ROOT / "tests", progress=sys.stderr)
    if status == 0:
        return {}
    if status == SKIPPED:
        say(f"There is no Kubernetes here: {' '.join(output.split())}")
        return {"DROVER_KUBE_UNAVAILABLE": output.strip()}
    if status is None:
        return {"DROVER_KUBE_UNAVAILABLE": f"it was not built within {KUBERNETES_BUILD_TIMEOUT} s: build it with 'python3 -B -m kube'"}
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
    parser.add_argument("--quick", action="store_true", help="the release build, unit tests and the short black-box tests")
    parser.add_argument("--release", action="store_true", help="only the release build and all its tests")
    parser.add_argument("--asan", action="store_true", help="only the build with address and undefined-behaviour sanitizers")
    parser.add_argument("--tsan", action="store_true", help="only the build with the thread sanitizer")
    parser.add_argument("--no-kubernetes", action="store_true", help="without the tests that need a Kubernetes cluster")
    parser.add_argument("-k", metavar="TEXT", dest="pattern", default="", help="only tests whose name contains TEXT")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    chosen = arguments.release or arguments.asan or arguments.tsan
    results = Results()

    environment = {} if arguments.quick else fetch_vendor_driver()
    kubernetes = (arguments.release or not chosen) and not (arguments.quick or arguments.no_kubernetes)
    if kubernetes and "kube" in (arguments.pattern or "kube"):
        environment.update(build_kubernetes(results))

    def stage(preset, **settings):
        made = Stage(preset, results, arguments.pattern)
        made.environment.update(environment, **settings)
        return made

    # Clusters wait more than they work, and longer than all else takes: the other builds and tests go on beside them.
    with concurrent.futures.ThreadPoolExecutor(2) as beside:
        clusters = headers = None

        def at_once():
            return TESTS_AT_ONCE - (1 if clusters and not clusters.done() else 0)

        if arguments.release or not chosen:
            release = stage("release", **({"DROVER_TEST_KILLS": "20"} if arguments.quick else {}))
            if release.build("all"):
                if kubernetes:
                    clusters = beside.submit(release.run_clusters)
                if not arguments.pattern:
                    release.run_checks()
                if not (arguments.pattern or arguments.quick):
                    headers = beside.submit(release.compile_headers)
                release.run_tests(at_once(), modules=QUICK_MODULES if arguments.quick else None)
        if arguments.asan or not (chosen or arguments.quick):
            # Five days of each simulated life: the release build plays the whole year.
            asan = stage("asan", DROVER_TEST_KILLS="20", DROVER_SIMULATED_DAYS="5")
            if asan.build("all"):
                asan.run_tests(at_once(), modules={name for name in asan.modules() if not name.endswith("_bench")})
        if arguments.tsan or not (chosen or arguments.quick):
            tsan = stage("tsan", DROVER_TEST_KILLS="10")
            if tsan.build("drover", *sorted(THREADED_PROGRAMS)):
                tsan.run_tests(at_once(), programs=THREADED_PROGRAMS, modules=THREADED_MODULES)
        for done in filter(None, (clusters, headers)):
            done.result()
    if interrupted.is_set():
        results.add("scripts/test", "failed", "it was interrupted")
    results.summary()
    return 1 if results.failed or not results.passed else 0


if __name__ == "__main__":
    signal.signal(signal.SIGINT, interrupt)
    sys.exit(main())
