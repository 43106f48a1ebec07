"""A cluster that is loaded and looked at: etcd and an API server of tests/kube, Nodes that are objects only, and one scheduler at a time."""

import contextlib
import datetime
import json
import os
import pathlib
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
sys.dont_write_bytecode = True
import drover  # noqa: E402
import kube  # noqa: E402
from kube.api import ApiError  # noqa: E402

MEMORY = "/dev/shm"  # where etcd writes
SYSTEM = "kube-system"
PORT = 9464
GATES = {"GenericWorkload": True, "GangScheduling": True, "TopologyAwareWorkloadScheduling": True}
CONTROLLERS = "serviceaccount-controller,resourceclaim-controller,garbage-collector-controller"
FAST = ("--kube-api-qps=5000", "--kube-api-burst=10000")
CLOCK_TICKS = os.sysconf("SC_CLK_TCK")
PATIENCE = 900
WRITES = ("POST", "PUT", "PATCH", "DELETE", "APPLY")


def micro_time():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def seconds_of(text):
    return datetime.datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=datetime.timezone.utc).timestamp()


@contextlib.contextmanager
def not_there():
    """What is to go may be gone, or may be of a kind that is not served."""
    try:
        yield
    except ApiError as error:
        if error.status != 404:
            raise


class MeasuredCluster(kube.Cluster):
    """`gangs`: Kubernetes' own gangs, which are off by default. `claims`: somebody makes claims of templates, and deletes them."""

    def __init__(self, gangs=False, claims=False):
        tempfile.tempdir = MEMORY
        self.claims = claims
        super().__init__(kube.Settings(
            nodes=(), feature_gates=GATES if gangs else {}, runtime_config="scheduling.k8s.io/v1alpha2=true" if gangs else "",
            flags={"kube-apiserver": ("--disable-admission-plugins=TaintNodesByCondition", "--delete-collection-workers=16"),
                   "kube-controller-manager": (*FAST, f"--controllers={CONTROLLERS}")}))

    def start(self):
        super().start()
        self.control_plane.scheduler.kill()
        rules = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]
        self.drover_config = self.make_account("drover", rules, SYSTEM)
        if not self.claims:
            self.control_plane.controller_manager.kill()
        return self

    def set_apart(self):
        """From now on etcd and the API server have one CPU, and whoever asks them the others, as on machines of their own: no scheduler takes
        from them what it needs itself."""
        served, *others = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, others)
        for program in (self.control_plane.etcd, self.control_plane.api_server):
            for thread in pathlib.Path(f"/proc/{program.pid}/task").iterdir():
                os.sched_setaffinity(int(thread.name), [served])

    # Load

    def _load(self, verb, words, options):
        flags = [f"--{name.replace('_', '-')}" + ("" if value is True else f"={value}") for name, value in options.items() if value]
        return [drover.built("bench/kube_cluster"), f"--kubeconfig={self.kubeconfig}", verb, *words, *flags]

    def load(self, verb, *words, **options):
        """Runs bench/kube_cluster to its end; returns its answer."""
        done = self.control_plane.machine.exec(*self._load(verb, words, options), timeout=PATIENCE)
        return json.loads(done.stdout.splitlines()[-1])

    @contextlib.contextmanager
    def observing(self, **options):
        """Gives a function that waits for the answer of bench/kube_cluster observe, which looks already."""
        process = self.control_plane.machine.popen(list(map(str, self._load("observe", (), {"patience": PATIENCE, **options}))),
                                                   stdout=-1, text=True)
        try:
            process.stdout.readline()
            yield lambda: json.loads(process.stdout.readline())
        finally:
            process.terminate()
            process.wait(60)
            process.stdout.close()

    def clear(self):
        """Deletes all pods and what was made for them, and waits until that is gone."""
        with not_there():
            self.api.request("DELETE", "/apis/scheduling.k8s.io/v1alpha2/namespaces/default/podgroups", timeout=PATIENCE)
        self.api.request("DELETE", "/api/v1/namespaces/default/pods", timeout=PATIENCE)
        self.api.request("DELETE", "/api/v1/namespaces/default/events", timeout=PATIENCE)
        for path in ("/api/v1/namespaces/default/pods", "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"):
            drover.wait_for(lambda path=path: self.count(path) == 0, f"{path} to be empty", PATIENCE, pause=0.2)

    def count(self, path):
        answer = self.api.request("GET", f"{path}?limit=1")
        return len(answer["items"]) + answer["metadata"].get("remainingItemCount", 0)

    def wait_for_claims(self, count):
        drover.wait_for(lambda: self.count("/apis/resource.k8s.io/v1/namespaces/default/resourceclaims") >= count,
                        "claims to be made", PATIENCE, pause=0.2)
        wait_until_idle(self.control_plane.controller_manager.pid)

    @contextlib.contextmanager
    def without_controllers(self):
        """So that they take nothing of what is measured."""
        self.control_plane.controller_manager.kill()
        try:
            yield
        finally:
            if self.claims:
                self.control_plane.controller_manager.start()

    # What it does

    def writes(self):
        """How many requests that write the API server has had."""
        count = 0
        for line in self.api.request("GET", "/metrics", accept="text/plain", timeout=PATIENCE).splitlines():
            if line.startswith("apiserver_request_total{") and any(f'verb="{verb}"' in line for verb in WRITES):
                count += float(line.rsplit(" ", 1)[1])
        return count

    # The right to decide

    def hold(self, scheduler):
        """Nobody takes the scheduler's lease before it is let go."""
        with not_there():
            self.api.request("DELETE", scheduler.lease_path())
        now = micro_time()
        spec = {"holderIdentity": "bench", "leaseDurationSeconds": 3600, "acquireTime": now, "renewTime": now}
        self.api.request("POST", scheduler.lease_path().rsplit("/", 1)[0],
                         {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": scheduler.lease}, "spec": spec})

    def let_go(self, scheduler):
        """Returns when the scheduler has taken the lease, as it says itself."""
        lease = self.api.request("GET", scheduler.lease_path())
        lease["spec"].update(holderIdentity="", leaseDurationSeconds=1, renewTime=micro_time())
        self.api.request("PUT", scheduler.lease_path(), lease)

        def taken():
            spec = self.api.request("GET", scheduler.lease_path())["spec"]
            return spec["acquireTime"] if spec.get("holderIdentity") not in ("", None, "bench") else None

        return seconds_of(drover.wait_for(taken, "the lease to be taken", 60, pause=0.05))


class Scheduler:
    """One that runs beside the control plane. `name` is the schedulerName of its pods."""

    def __init__(self, cluster):
        self.cluster, self.program = cluster, None

    def lease_path(self):
        return f"/apis/coordination.k8s.io/v1/namespaces/{SYSTEM}/leases/{self.lease}"

    @contextlib.contextmanager
    def running(self):
        self.program = self.cluster.run_inside(self.command(), name=f"measured-{self.name}")
        try:
            yield self
        finally:
            self.program.stop()

    def wait_until_idle(self):
        wait_until_idle(self.program.pid)

    def cpu_seconds(self):
        return cpu_seconds(self.program.pid)

    def memory_mib(self):
        """Resident, now and at most."""
        fields = dict(line.split(":", 1) for line in pathlib.Path(f"/proc/{self.program.pid}/status").read_text().splitlines())
        return int(fields["VmRSS"].split()[0]) / 1024, int(fields["VmHWM"].split()[0]) / 1024


class Drover(Scheduler):
    name, lease = "drover", "drover-scheduler"

    def __init__(self, cluster, policy="pack", flags=(), binary=None):
        super().__init__(cluster)
        self.policy, self.flags, self.binary = policy, flags, binary or drover.BINARY
        self.title = "Drover of before" if binary else "Drover"

    def command(self):
        return [self.binary, "kube", "scheduler", "--kubeconfig", self.cluster.drover_config, "--lease-namespace", SYSTEM,
                "--policy", self.policy, "--listen", f"127.0.0.1:{PORT}", *self.flags]

    def metric(self, name):
        text = self.cluster.control_plane.machine.exec("curl", "--silent", f"http://127.0.0.1:{PORT}/metrics").stdout
        return next(float(line.split()[1]) for line in text.splitlines() if line.startswith(f"drover_scheduler_{name} "))


class KubeScheduler(Scheduler):
    name, lease = "kube", "kube-scheduler"

    def __init__(self, cluster, percentage=0):
        super().__init__(cluster)
        self.percentage = percentage
        self.title = "kube-scheduler" + (f", {percentage}% of nodes" if percentage else "")

    def command(self):
        path = self.cluster.folder / "kube-scheduler.json"
        path.write_text(json.dumps({
            "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
            "percentageOfNodesToScore": self.percentage, "leaderElection": {"leaderElect": True},
            "clientConnection": {"kubeconfig": str(self.cluster.control_plane.authority.path("kube-scheduler.kubeconfig")),
                                 "qps": 5000, "burst": 10000},
            "profiles": [{"schedulerName": self.name}]}))
        plane = self.cluster.control_plane
        return [plane.components.kubernetes / "kube-scheduler", f"--config={path}", "--bind-address=127.0.0.1",
                *self.cluster.settings.flags_of("kube-scheduler")]


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / CLOCK_TICKS


def wait_until_idle(pid, quiet=1.5):
    """Less than a twentieth of a core, for a while."""
    def is_idle():
        before = cpu_seconds(pid)
        time.sleep(quiet)
        return cpu_seconds(pid) - before < quiet / 20

    drover.wait_for(is_idle, f"process {pid} to have done all", PATIENCE)
