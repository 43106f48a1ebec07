"""A share of memory: what a guarded program is told of it, that it gets no more by any way, and what is charged."""

import shutil

from .. import kinds
from ..cuda import MIB, OUT_OF_MEMORY
from ..trial import Answer, Check, Failed

GRAIN = 4 * MIB  # what may be left of a share that fits nothing any more


def views(trial):
    share, gpu = trial.settings.share, trial.machine.gpu
    trial.machine.limit({gpu["uuid"]: share})
    found = trial.child("views", guarded=True, uuid=gpu["uuid"], smi=shutil.which("nvidia-smi"))
    totals = found["totals"]
    exact = [total == share for total in totals.values()]
    words = ", ".join(f"{name} {total:,}" for name, total in totals.items() if total != share)
    smi = "nvidia-smi is not there"
    if "smi" in found:
        said = found["smi"].split(", ")
        smi = f"nvidia-smi says {found['smi']} MiB"
        exact.append(said[0] == str(share // MIB))
    frees_agree = len(set(found["free"].values())) == 1 and set(found["processes"]) == {str(found["pid"])}
    verdict = f"all say {share:,} bytes" if not words else f"not the share: {words}"
    agree = "they agree on what is free, and NVML lists the process alone" if frees_agree else \
        f"what is free: {found['free']}, processes: {found['processes']} for {found['pid']}"
    return Answer(f"{verdict}; {agree}; {smi}", found, all(exact) and frees_agree)


def filling(kind):
    def fill(trial):
        share, gpu = trial.settings.share, trial.machine.gpu
        trial.machine.limit({gpu["uuid"]: share})
        found = trial.child("fill", guarded=True, kind=kind, share=share, nvml=trial.machine.nvml, uuid=gpu["uuid"])
        over = max(0, found["most"] - share)
        # The driver's figure hardly knows of managed memory; ours counts it as if it were on the card.
        reached = found["context"] + found["asked"] if kind == "managed" else found["given"]
        found.update(over=over, reached=reached)
        verdict = (f"code {found['code']} after {found['pieces']} pieces; by NVML ({found['by']}) {found['most'] / MIB:,.1f} of "
                   f"{share / MIB:,.0f} MiB, {over:,} bytes over, {(share - reached) / MIB:,.1f} MiB not reached")
        good = found["code"] == OUT_OF_MEMORY and over == 0 and reached >= share - GRAIN and found["another_64_mib"] == OUT_OF_MEMORY
        return Answer(verdict, found, good)
    return fill


def figures(trial):
    gpu = trial.machine.gpu
    room = min(gpu["total"] // 4, 16 << 30)
    part = min(room // 16, 1 << 30)
    trial.machine.limit({gpu["uuid"]: room})
    found = trial.child("stages", guarded=True, nvml=trial.machine.nvml, uuid=gpu["uuid"], heap=part, variables=part, managed=part)
    failed = [stage["stage"] for stage in found["stages"] if stage["code"]]
    on_device = [stage for stage in found["stages"] if not stage["stage"].startswith("managed")]
    most = max((stage["charged"] - stage["process"] for stage in on_device), key=abs)
    least = min(stage["charged"] - stage["process"] for stage in on_device)
    managed = found["stages"][-1]["process"] - on_device[-1]["process"]
    verdict = (f"what the guard charges is {most / MIB:+,.1f} MiB off NVML's figure ({found['by']}) at most; of {2 * part // MIB:,} MiB of "
               f"managed memory NVML shows {managed / MIB:,.1f}")
    return Answer(verdict + (f"; failed: {', '.join(failed)}" if failed else ""), found, least >= 0 and not failed)


def contexts(trial):
    machine = trial.machine
    found = {}
    for loading in ("LAZY", "EAGER"):
        found[loading.lower()] = trial.child("context", environment={"CUDA_MODULE_LOADING": loading}, nvml=machine.nvml, uuid=machine.gpu["uuid"])
    try:
        machine.limit({machine.gpu["uuid"]: machine.gpu["total"]})
        found["guarded"] = trial.child("context", guarded=True, nvml=machine.nvml, uuid=machine.gpu["uuid"])
    except Failed as failure:
        found["guarded"] = {"failed": str(failure)}
    words = ", ".join(f"{name} {each['process'] / MIB:,.0f} MiB (card: {each['card'] / MIB:,.0f})" for name, each in found.items()
                      if "process" in each)
    return Answer(f"a context takes: {words}", found)


CHECKS = [
    Check("views", "Is a card as large as the share, whoever is asked?", 60, views, "A1"),
    *(Check(f"fill-{kind}", f"Is a program held to its share when it takes memory by '{kind}'?", 60, filling(kind), "A2")
      for kind in kinds.MAKERS),
    Check("figures", "What does NVML say of a process, and what does the guard charge?", 60, figures),
    Check("contexts", "What does a context take?", 60, contexts),
]
