"""What the guard stands on, how the driver hands out its functions, and what the guard's calls cost."""

import json
import re

from ..pages import ROOT
from ..trial import Answer, Check, Failed, NotPossible

ROUNDS = 5
LAUNCH_NS, ALLOCATION_NS = 20, 300  # what the guard may add


def names():
    """Every public name, and by what version it has stood for which function."""
    found = {}
    for file in sorted((ROOT / "sim/cuda/names").glob("*.txt")):
        for words in (line.split() for line in file.read_text().splitlines() if line.startswith("cu")):
            variants = [re.fullmatch(r"(\d+)(.*)", word) for word in words[1:]]
            found[words[0]] = [(int(variant[1]), words[0] + variant[2]) for variant in variants]
    return found


def same_pointers(trial):
    file = trial.machine.folder / "names.json"
    file.write_text(json.dumps(names()))
    found = trial.child("pointers:of_driver", names=str(file))
    other, asked = found["other"], found["asked"]
    verdict = f"{asked - len(other)} of {asked} answers are a pointer that dlsym gives for that name"
    return Answer(verdict + (f"; not so: {', '.join(other[:6])}…" if other else ""), found, not other)


def loaded_names(trial):
    """By each name in a process of its own: what is loaded already answers to its other names too."""
    found = {}
    for library, symbol in (("libcuda.so", "cuMemAlloc_v2"), ("libnvidia-ml.so", "nvmlDeviceGetMemoryInfo")):
        for name in (library, library + ".1"):
            found[name] = trial.child("pointers:loaded", guarded=True, name=name, symbol=symbol)["file"]
    other = [f"'{name}' is '{file}'" for name, file in found.items() if "/drover/guard/" not in str(file)]
    return Answer(", ".join(other) or f"{', '.join(found)} are the guard's", found, not other)


def bindings(trial):
    """The loader says what it binds to what."""
    machine = trial.machine
    log = machine.folder / "bindings"
    trial.child("look", guarded=True, environment={"LD_DEBUG": "bindings", "LD_BIND_NOW": "1", "LD_DEBUG_OUTPUT": str(log)})
    lines = [line for path in machine.folder.glob("bindings.*") for line in path.read_text(errors="replace").splitlines()]
    for path in machine.folder.glob("bindings.*"):
        path.unlink()
    if not lines:
        raise NotPossible("the loader keeps no record of what it binds (LD_DEBUG)")
    pattern = re.compile(r"binding file (\S+) \[\d+\] to (\S+) \[\d+\]: .*symbol [`'](\w+)'")
    bound = [match.groups() for match in map(pattern.search, lines) if match]
    guard, driver = str(machine.guard_folder / "libcuda.so.1"), str(machine.guard_folder / "libdrover-driver-cuda.so.1")
    back = sorted({name for where, to, name in bound if where == driver and to == guard})
    if not any(where == guard for where, _, _ in bound):
        raise Failed("the loader's record does not have the guard")
    verdict = "none of the driver's own calls come back into the guard" if not back else \
        f"{len(back)} functions that the driver calls itself come back into the guard: {', '.join(back[:8])}"
    return Answer(verdict, {"come_back": back, "bindings": len(bound)}, not back)


def guards_pointers(trial):
    file = trial.machine.folder / "names.json"
    file.write_text(json.dumps(names()))
    trial.machine.limit({})
    found = trial.child("pointers:of_guard", guarded=True, names=str(file), driver=str(trial.machine.guard_folder / "libdrover-driver-cuda.so.1"))
    verdict = (f"{found['covered']} answers of {found['asked']} are the guard's function of that name and stream, {found['passed']} the driver's "
               f"own, {len(found['wrong'])} neither")
    return Answer(verdict + (f": {', '.join(found['wrong'][:6])}" if found["wrong"] else ""), found, not found["wrong"] and found["covered"] > 0)


def measured(trial, *words):
    """Median and best tenth with and without the guard, by turns, each of the round that others disturbed least; nanoseconds."""
    program = trial.machine.built("cuda_check")
    trial.machine.limit({trial.machine.gpu["uuid"]: trial.machine.gpu["total"]})
    runs = {False: [], True: []}
    for _ in range(ROUNDS):
        for guarded, kept in runs.items():
            kept.append([float(word) for word in trial.command([program, *words], guarded).split()[1:3]])
    medians = {guarded: min(run[0] for run in kept) for guarded, kept in runs.items()}
    best = {guarded: min(run[1] for run in kept) for guarded, kept in runs.items()}
    return {"driver": medians[False], "guarded": medians[True], "added": round(medians[True] - medians[False], 1),
            "added_to_best": round(best[True] - best[False], 1), "runs": {"driver": runs[False], "guarded": runs[True]}}


def told(what, figures):
    return (f"{what} takes {figures['driver']:,.0f} ns, guarded {figures['guarded']:,.0f}: {figures['added']:+,.0f} ns "
            f"({figures['added_to_best']:+,.0f} of the best)")


def launches(trial):
    figures = measured(trial, "launches", 1_000_000 // ROUNDS // (10 if trial.settings.brief else 1))
    return Answer(told("a launch", figures), figures, trial.machine.judged(figures["added"] <= LAUNCH_NS))


def allocations(live):
    def run(trial):
        figures = measured(trial, "allocs", 500 if trial.settings.brief else 5000, live)
        return Answer(told("cuMemAlloc and cuMemFree of 2 MiB", figures), figures, trial.machine.judged(figures["added"] <= ALLOCATION_NS))
    return run


CHECKS = [
    Check("pointers", "Does cuGetProcAddress give the pointers that dlsym gives?", 30, same_pointers),
    Check("names", "Do the names that programs load lead to the guard?", 30, loaded_names),
    Check("bindings", "Do the driver's own calls come back into the guard?", 30, bindings),
    Check("guard-pointers", "Does cuGetProcAddress give the guard's functions for what is guarded, and the driver's for the rest?", 30,
          guards_pointers, "A8"),
    Check("launches", "What does the guard add to a launch?", 60, launches, "A9"),
    Check("allocations", "What does the guard add to an allocation?", 60, allocations(0), "A10"),
    Check("allocations-10000", "And beside 10,000 live ones?", 60, allocations(10_000), "A10"),
]
