"""What scripts/test builds and runs, and in which build: CONTRIBUTING.md has it as a table.

A unit-test program needs no optimised build: the sanitized one finds more with the same code. The program itself is tested as users
have it; under a sanitizer go what a stranger's bytes reach and, with --all, everything.
"""

import dataclasses
import typing

# What must be optimised: they play a year of a machine's life, and a month of kills and failed writes.
LONG_PROGRAMS = ("control_long_test", "engine_long_test")
# Rooms whose code runs on several threads.
THREADED_PROGRAMS = ("api_test", "container_test", "engine_test", "gpu_test", "image_test", "share_test", "store_test", "use_test")
# Debian's gRPC is not built for the thread sanitizer, which takes what that does for races; and a process that was forked from one with
# several threads may start none under it.
UNTHREADED_CASES = {"kube_test": ["ContainerRuntime.*", "Driver*", "PluginHostTest.*", "SocketServer.*"],
                    "cli_test": ["RunTest.OneInterruptAsksAndTheSecondKills"]}

ATTACKS = "attack."  # how the names of modules in tests/attack begin
# Whose tests bring a stranger's bytes, names or files into the memory of the daemon, its shims and its CLI. What the other attacks try
# is decided by the kernel, or by rules that the unit tests run through under the sanitizers.
HOSTILE_MODULES = {"test_absurd", "test_api", "test_bad_input", "test_chronos", "test_crash", "test_exec", "test_fetch", "test_hostile",
                   "test_hostile_images", "test_marathon", "test_mesos", "test_mesos_executor", "test_registry", "attack.test_answers",
                   "attack.test_exec", "attack.test_executors",
                   "attack.test_fetcher", "attack.test_files", "attack.test_frameworks", "attack.test_image_folders",
                   "attack.test_mount_places", "attack.test_names", "attack.test_terminals"}
QUICK_MODULES = {"test_api", "test_cli", "test_crash", "test_isolation", "test_queue", "test_run"}
# They begin first: what is left at the end is short.
LONG_MODULES = {"test_crash", "test_crash_services", "test_docker", "test_docs", "test_first_pages", "test_health", "test_node_health", "attack.test_disk_share",
                "attack.test_fairness_reads", "attack.test_figures", "attack.test_image_folders", "attack.test_journal", "attack.test_limits",
                "attack.test_strangers"}

# A machine of another kind, in an emulator: some forty minutes of one processor.
VIRTUAL_MACHINES = {"test_vm"}

CLUSTERS = "test_kube"  # how the names of modules on clusters begin
# Each road of a GPU into a pod once: a limit, a claim, an installation by the chart, a scheduler of our own, and tasks as pods.
CLUSTER_TESTS = ("test_kube_components", "test_kube_chart", "test_kube_install.SimulatedTest", "test_kube_scheduling", "test_kube_volumes",
                 "test_kube_plugin.WholeGpusTest", "test_kube_replicas.QuarterTest", "test_kube_claims.WholeGpusTest", "test_kube_engine")


@dataclasses.dataclass(frozen=True)
class Stage:
    """One build tree: what is built in it, and which unit-test programs and black-box modules run."""

    preset: str
    targets: tuple
    programs: typing.Callable[[str], bool]
    modules: typing.Callable[[str], bool]
    environment: dict = dataclasses.field(default_factory=dict)
    slowness: int = 1  # by how much longer than usual a program may take: some are slow under a sanitizer that is not theirs


def any_of(_):
    return True


def no_benchmark(module):
    """Beside a compiler, or in a sanitizer, times say little, and a whole machine that is emulated takes too many."""
    return not module.endswith("_bench") and module not in VIRTUAL_MACHINES


# Five days of each simulated life: the release build plays the whole year.
ASAN_SETTINGS = {"DROVER_TEST_KILLS": "20", "DROVER_SIMULATED_DAYS": "5"}
TSAN_SETTINGS = {"DROVER_TEST_KILLS": "10"}

QUICK = (
    Stage("release", ("drover",), lambda program: False, QUICK_MODULES.__contains__, {"DROVER_TEST_KILLS": "20"}),
    Stage("asan", ("unit_tests",), lambda program: not program.startswith("fuzz_"), lambda module: False, ASAN_SETTINGS),
)
USUAL = (
    Stage("release", ("installed", "nvml_abi_check", "cuda_check", "guard-cuda", "guard-nvml", *LONG_PROGRAMS), LONG_PROGRAMS.__contains__,
          no_benchmark, {"DROVER_TEST_KILLS": "60"}),
    Stage("tsan", THREADED_PROGRAMS, THREADED_PROGRAMS.__contains__, lambda module: False, TSAN_SETTINGS),
    Stage("asan", ("all",), any_of, HOSTILE_MODULES.__contains__, ASAN_SETTINGS),
)
ALL = (
    Stage("release", ("all",), any_of, any_of),
    Stage("asan", ("all",), any_of, no_benchmark, ASAN_SETTINGS, slowness=3),
    Stage("tsan", ("all",), any_of, no_benchmark, TSAN_SETTINGS, slowness=3),
)
