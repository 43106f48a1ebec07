"""Frameworks that are installed: whether they run unchanged under the guard, how they say that memory is over, and what they lose by it."""

from ..cuda import MIB
from ..trial import Answer, Check, NotPossible

SLOWER = 1.01  # how much longer a step may take


def framework(module, role, environment=None):
    """Runs one twice, without the guard and with it."""
    def run(trial):
        gpu, share = trial.machine.gpu, trial.settings.share
        there = trial.child("programs:installed", module=module)
        if not there["version"]:
            raise NotPossible(f"Python's '{module}' is not installed here: {there['why']}")
        if trial.machine.profile and module in ("torch", "cupy"):
            raise NotPossible(f"'{module}' needs CUDA's runtime library, which cannot run over simulated CUDA")
        found = {"version": there["version"], "driver": trial.child(f"programs:{role}", environment=environment, fill=0)}
        trial.machine.limit({gpu["uuid"]: share})
        found["guarded"] = guarded = trial.child(f"programs:{role}", guarded=True, environment=environment, fill=2 * share)
        ratio = guarded["step_ms"] / found["driver"]["step_ms"] if guarded.get("step_ms") else None
        good = guarded["total"] == share and guarded["error"] is not None and "memory" in guarded["text"].lower()
        verdict = (f"{there['version']}: total {guarded['total'] / MIB:,.0f} of {share / MIB:,.0f} MiB; over it, {guarded['error']}: "
                   f"{guarded['text'][:90]!r}")
        if ratio is not None:
            verdict += f"; a step takes {found['driver']['step_ms']:.3f} ms, guarded {guarded['step_ms']:.3f} ({ratio:.3f})"
            good = good and trial.machine.judged(ratio <= SLOWER) is not False
        return Answer(verdict, found, good)
    return run


def torch(settings=None):
    return framework("torch", "torch", {"PYTORCH_CUDA_ALLOC_CONF": settings, "PYTORCH_ALLOC_CONF": settings} if settings else None)


CHECKS = [
    Check("cuda-bindings", "Does cuda-bindings run under the guard?", 40, framework("cuda.bindings", "bindings"), "A15"),
    Check("cuda-core", "Does cuda-core, from a pool?", 40, framework("cuda.core", "core"), "A15"),
    Check("numba-cuda", "Does numba-cuda?", 60, framework("numba.cuda", "numba"), "A15"),
    Check("tinygrad", "Does tinygrad?", 60, framework("tinygrad", "tinygrad"), "A15"),
    Check("torch", "Does PyTorch?", 90, torch(), "A15"),
    Check("torch-async", "PyTorch with cudaMallocAsync?", 90, torch("backend:cudaMallocAsync"), "A15"),
    Check("torch-expandable", "PyTorch with expandable segments?", 90, torch("expandable_segments:True"), "A15"),
    Check("cupy", "Does CuPy?", 90, framework("cupy", "cupy"), "A15"),
]
