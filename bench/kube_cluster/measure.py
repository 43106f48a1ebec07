#!/usr/bin/env python3
"""How fast `drover kube scheduler` is through a real API server, beside kube-scheduler and beside what the API server can take.

    bench/kube_cluster/measure.py [--only throughput,gang,steady,large,recorded] [--nodes 5000] [--pods 2000] [--rounds 3]

Etcd, which writes to memory, an API server and a controller manager run on this machine; Nodes are objects without a kubelet. Needs
root, a release build, and what tests/kube needs (CONTRIBUTING.md). docs/benchmarks.md says what the columns mean.
"""

import argparse
import contextlib
import os
import pathlib
import statistics
import sys
import time

from measured import Drover, KubeScheduler, MeasuredCluster, drover

ASKS = {
    "1 GPU by limits": {"pods": {"gpus": 1}, "ask": "limits"},
    "claims of 1 to 4 GPUs of one board": {"pods": {"claims": "1,2,3,4"}, "ask": "claims", "devices": True},
    "1 GPU by limits, of devices": {"pods": {"gpus": 1}, "ask": "limits-by-claims", "devices": True},
    "gangs of 8, 8 GPUs each": {"pods": {"gpus": 8, "gang": 8}, "ask": "limits", "gangs": True},
    "gangs of 512, 1 GPU each": {"pods": {"gpus": 1, "gang": 512}, "ask": "limits", "gangs": True},
}
RACK = "example.com/rack"


def table(title, columns, rows):
    print(f"\n{title}\n\n| {' | '.join(columns)} |\n| {' | '.join('---' for _ in columns)} |")
    for row in rows:
        print(f"| {' | '.join(map(str, row))} |")
    sys.stdout.flush()


def spread(values, form="{:.0f}"):
    return form.format(statistics.median(values)) + (f" ({form.format(min(values))}–{form.format(max(values))})" if len(values) > 1 else "")


def say(*words):
    print(*words, file=sys.stderr, flush=True)


class Waiting:
    """So many pods that wait, their claims made, and nobody who decides yet."""

    def __init__(self, cluster, name, count, ask):
        self.cluster, self.name, self.count, self.ask = cluster, name, count, ask

    def __enter__(self):
        self.cluster.load("pods", count=self.count, scheduler=self.name, **self.ask["pods"])
        if self.ask["ask"] == "claims":
            self.cluster.wait_for_claims(self.count)
        self.paused = self.cluster.without_controllers()
        self.paused.__enter__()
        return self

    def __exit__(self, *failure):
        self.paused.__exit__(*failure)
        self.cluster.clear()


def ceiling_rate(cluster, count, ask, listener=None):
    """Pods a second, bound with writes that were decided before; `listener` reads all that a scheduler has to, and decides nothing."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(Waiting(cluster, "ceiling", count, ask))
        if listener:
            stack.enter_context(listener.running())
            listener.wait_until_idle()
        seen = stack.enter_context(cluster.observing(scheduler="ceiling", count=count))
        words = {name: value for name, value in ask["pods"].items() if name != "gang"}
        began = cluster.load("ceiling", scheduler="ceiling", ask=ask["ask"], **words)["begin"]
        return count / (seen()["last"] - began)


def drain(scheduler, count, ask):
    """From the moment when it may decide: pods a second, seconds to the first and the last bind, and CPU seconds."""
    cluster = scheduler.cluster
    cluster.hold(scheduler)
    with Waiting(cluster, scheduler.name, count, ask), scheduler.running(), cluster.observing(scheduler=scheduler.name, count=count) as seen:
        scheduler.wait_until_idle()
        before = scheduler.cpu_seconds()
        began = cluster.let_go(scheduler)
        found = seen()
        result = {"rate": found["seen"] / (found["last"] - began), "first": found["first"] - began, "last": found["last"] - began,
                  "seen": found["seen"], "cpu": scheduler.cpu_seconds() - before}
        if isinstance(scheduler, Drover):
            result["deciding"], result["rounds"] = scheduler.metric("deciding_seconds_total"), scheduler.metric("rounds_total")
        if result["seen"] < count:
            say(f"{scheduler.title} has bound {result['seen']} of {count} only")
        say(scheduler.title, {name: round(value, 3) for name, value in result.items()})
        return result


def clusters(names):
    """Those scenarios that can have one cluster, with its settings."""
    for devices, gangs in ((False, False), (True, False), (False, True)):
        chosen = [name for name in names if (ASKS[name].get("devices", False), ASKS[name].get("gangs", False)) == (devices, gangs)]
        if chosen:
            yield chosen, devices, gangs


def schedulers(cluster, arguments, every_node=False):
    """In the order in which they are measured: each of Drover's builds stands between two of its peer."""
    ours = [Drover(cluster, flags=arguments.flags)] + ([Drover(cluster, flags=arguments.flags, binary=arguments.before)] if arguments.before else [])
    if arguments.without_kube:
        return ours
    return [KubeScheduler(cluster), *ours, KubeScheduler(cluster)] + ([KubeScheduler(cluster, 100)] if every_node else [])


def throughput(arguments):
    rows = []
    for chosen, devices, gangs in clusters([name for name in ASKS if arguments.scenario in name]):
        with contextlib.closing(MeasuredCluster(gangs, claims=devices)) as cluster:
            cluster.start()
            cluster.load("nodes", count=arguments.nodes, devices=devices)
            if arguments.apart:
                cluster.set_apart()
            for name in chosen:
                rows += throughput_rows(cluster, name, arguments)
    table(f"Pods bound a second, of {arguments.pods} that wait; {arguments.nodes} nodes; median (range) of {arguments.rounds} rounds",
          ["pods", "by", "pods a second", "÷ what the API server takes", "÷ kube-scheduler", "CPU of it, ms a pod"], rows)


def throughput_rows(cluster, name, arguments):
    ask, count = ASKS[name], arguments.pods
    if "gang" in ask["pods"]:
        count -= count % ask["pods"]["gang"]
    takes, takes_beside = "what the API server takes", "the same while Drover listens"
    rates, cpu = {takes: [], takes_beside: []}, {}
    for number in range(arguments.rounds):
        say(name)
        rates[takes].append(ceiling_rate(cluster, count, ask))
        rates[takes_beside].append(ceiling_rate(cluster, count, ask, Drover(cluster, flags=arguments.flags)))
        say("ceiling", round(rates[takes][-1]), "with a listener", round(rates[takes_beside][-1]))
        for scheduler in schedulers(cluster, arguments, every_node=number == 0 and ask["ask"] == "limits"):  # which takes long
            result = drain(scheduler, count, ask)
            rates.setdefault(scheduler.title, []).append(result["rate"])
            cpu.setdefault(scheduler.title, []).append(1000 * result["cpu"] / count)
    ceiling, peer = (statistics.median(rates.get(title, [0])) for title in (takes, "kube-scheduler"))
    return [[name, title, spread(values), f"{statistics.median(values) / ceiling:.0%}",
             f"{statistics.median(values) / peer:.1f} ×" if peer else "–", spread(cpu[title], "{:.2f}") if title in cpu else "–"]
            for title, values in rates.items()]


def gang(arguments):
    """512 pods with 8 GPUs each on the 512 nodes of one rack."""
    ask = {"pods": {"gpus": 8, "gang": 512, "topology_key": RACK}, "ask": "limits"}
    rows = []
    with contextlib.closing(MeasuredCluster(gangs=True)) as cluster:
        cluster.start()
        cluster.load("nodes", count=arguments.nodes)
        for scheduler in schedulers(cluster, arguments):
            results = [drain(scheduler, 512, ask) for _ in range(arguments.rounds)]
            deciding = [result["deciding"] for result in results if "deciding" in result]
            rows.append([scheduler.title, spread(deciding, "{:.3f}") if deciding else "–", spread([r["first"] for r in results], "{:.2f}"),
                         spread([r["last"] for r in results], "{:.2f}"), min(r["seen"] for r in results)])
    table(f"A gang of 512 pods with 8 GPUs each in one rack of {arguments.nodes} nodes; seconds since it may be decided",
          ["scheduler", "deciding, all of it", "first bind", "last bind", "bound"], rows)


def steady(arguments):
    """Pods come at a constant rate, and go; half of the GPUs are taken."""
    rows = []
    with contextlib.closing(MeasuredCluster()) as cluster:
        cluster.start()
        cluster.load("nodes", count=arguments.nodes)
        running = arguments.nodes * 4
        cluster.load("pods", count=running, scheduler="others", name="old", gpus=1, on_nodes=True)
        for scheduler in schedulers(cluster, arguments):
            with scheduler.running():
                cluster.load("pods", count=1, scheduler=scheduler.name, gpus=1, name="first", patience=120, lifetime=5)
                scheduler.wait_until_idle()
                before, began = scheduler.cpu_seconds(), time.monotonic()
                found = cluster.load("pods", count=int(50 * arguments.seconds), scheduler=scheduler.name, gpus=1, rate=50, lifetime=10,
                                     patience=60, name="churn")["latency_ms"]
                cpu = (scheduler.cpu_seconds() - before) / (time.monotonic() - began)
            say(scheduler.title, found)
            rows.append([scheduler.title, found["count"], *(f"{found[key]:.0f}" for key in ("median", "p90", "p99", "longest")), f"{cpu:.0%}"])
    table(f"50 pods come and go in a second, for {arguments.seconds} s; {arguments.nodes} nodes, {running} pods run. From when a pod is due to "
          "when its bind is seen, ms", ["scheduler", "pods", "median", "p90", "p99", "longest", "of one core"], rows)


def first_bind(scheduler, name):
    """Seconds from the start of the process to the bind of a pod that waits."""
    cluster = scheduler.cluster
    with not_led(cluster, scheduler):
        cluster.load("pods", count=1, scheduler=scheduler.name, gpus=1, name=name)
        with cluster.observing(scheduler=scheduler.name, count=1) as seen:
            began = time.time()
            with scheduler.running():
                return seen()["last"] - began


@contextlib.contextmanager
def not_led(cluster, scheduler):
    """The lease is there and free, as a scheduler leaves it."""
    cluster.hold(scheduler)
    lease = cluster.api.request("GET", scheduler.lease_path())
    lease["spec"].update(holderIdentity="", leaseDurationSeconds=1)
    cluster.api.request("PUT", scheduler.lease_path(), lease)
    yield


def quiet(cluster, scheduler, seconds):
    """In that time, of the scheduler: the part of a core, and writes a second beyond `others`, those without it."""
    writes, cpu, began = cluster.writes(), scheduler.cpu_seconds() if scheduler else 0, time.monotonic()
    time.sleep(seconds)
    took = time.monotonic() - began
    return (scheduler.cpu_seconds() - cpu) / took if scheduler else 0, (cluster.writes() - writes) / took


def large(arguments):
    """How it starts and what it takes with many nodes and pods, and when many wait."""
    starts, sizes = [], []
    with contextlib.closing(MeasuredCluster()) as cluster:
        cluster.start()
        made = 0
        for nodes in (arguments.nodes // 5, arguments.nodes):
            cluster.load("nodes", count=nodes - made, first=made)
            made = nodes
            running = 0 if nodes < arguments.nodes else nodes * 8 - 8
            cluster.load("pods", count=running, scheduler="others", name="old", gpus=1, on_nodes=True)
            for scheduler in schedulers(cluster, arguments)[not arguments.without_kube:]:
                times = [first_bind(scheduler, f"start-{nodes}-{len(starts)}-{i}") for i in range(arguments.rounds)]
                starts.append([scheduler.title, nodes, running, spread(times, "{:.1f}")])
                say(starts[-1])
        _, others = quiet(cluster, None, arguments.seconds)
        for scheduler in schedulers(cluster, arguments)[not arguments.without_kube:]:
            with scheduler.running():
                cluster.load("pods", count=1, scheduler=scheduler.name, gpus=1, name=f"ready-{len(sizes)}", patience=120)
                scheduler.wait_until_idle()
                cpu, writes = quiet(cluster, scheduler, arguments.seconds)
                sizes.append([scheduler.title, "0", *("{:.0f}".format(each) for each in scheduler.memory_mib()), f"{cpu:.1%}",
                              f"{max(0, writes - others):.2f}", "–"])
                say(sizes[-1])
                cluster.load("pods", count=arguments.waiting, scheduler=scheduler.name, gpus=8, milli_cpus=200_000, name="wait")
                time.sleep(arguments.seconds)
                cpu, writes = quiet(cluster, scheduler, arguments.seconds)
                told = cluster.load("pods", count=5, rate=0.5, scheduler=scheduler.name, gpus=8, milli_cpus=200_000, name="late", patience=60,
                                    reasons=True)["latency_ms"]
                sizes.append([scheduler.title, arguments.waiting, *("{:.0f}".format(each) for each in scheduler.memory_mib()), f"{cpu:.1%}",
                              f"{max(0, writes - others):.1f}", f"{told['median']:.0f} ({told['longest']:.0f})" if told["count"] else "–"])
                say(sizes[-1])
                cluster.load("remove", count=arguments.waiting, name="wait")
                cluster.load("remove", count=5, name="late")
    table("From the start of the process to the first bind", ["scheduler", "nodes", "pods that run", "s"], starts)
    table(f"{arguments.nodes} nodes with as many pods as they have GPUs", ["scheduler", "pods that wait", "memory, MiB", "at most", "of one core",
          "writes a second", "ms until a new pod is told why: median (longest)"], sizes)


def recorded(arguments):
    """The recorded cluster of bench/openb, through the API."""
    rows = []
    for seed in range(42, 42 + arguments.seeds):
        with contextlib.closing(MeasuredCluster()) as cluster:
            cluster.start()
            scheduler = Drover(cluster, policy="fragmentation", flags=arguments.flags)
            with scheduler.running():
                found = cluster.load("recorded", seed=seed, scheduler=scheduler.name)
        rows.append([seed, found["pods"], f"{found['100']:.2f}", f"{found['130']:.2f}"])
        say(rows[-1])
    table("The recorded cluster without shares: GPUs allocated, percent", ["seed", "pods", "100% arrival", "130% arrival"], rows)


PARTS = {"throughput": throughput, "gang": gang, "steady": steady, "large": large, "recorded": recorded}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(PARTS), help="parts: %(default)s")
    parser.add_argument("--scenario", default="", help="of throughput: those whose names contain this")
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=2000, help="that wait, in the part throughput")
    parser.add_argument("--waiting", type=int, default=10_000, help="that can never start, in the part large")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=60, help="for how long is looked, in the parts steady and large")
    parser.add_argument("--seeds", type=int, default=1, help="orders of arrival, in the part recorded")
    parser.add_argument("--flags", type=str.split, default=[], help="more flags of drover kube scheduler")
    parser.add_argument("--before", type=pathlib.Path, metavar="BINARY", help="another build of Drover, measured beside it")
    parser.add_argument("--without-kube", action="store_true", help="only Drover and what the API server takes")
    parser.add_argument("--apart", action="store_true", help="in the part throughput, give the API server and etcd a CPU of their own")
    arguments = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("measure: needs root, as tests/kube does")
    drover.built("bench/kube_cluster")
    for part in arguments.only.split(","):
        PARTS[part](arguments)


if __name__ == "__main__":
    main()
