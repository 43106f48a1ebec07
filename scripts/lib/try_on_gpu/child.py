"""What runs in processes of its own: `python3 -m try_on_gpu.child ROLE SETTINGS`. Says what it found as JSON on its last line."""

import ctypes
import importlib
import json
import os
import subprocess
import sys

from . import kinds
from .cuda import MIB, CudaError, Cuda, Given, Nvml


def mapped_file(name):
    """The file of a library that this process has loaded."""
    with open("/proc/self/maps") as maps:
        files = {line.split(maxsplit=5)[5].strip() for line in maps if name in line}
    return min((os.path.realpath(file) for file in files), key=len)


def look():
    """The driver, its files and GPUs."""
    cuda = Cuda()
    ctypes.CDLL("libnvidia-ml.so.1")
    version = cuda.number("cuDriverGetVersion")
    gpus = [cuda.device(index) for index in range(cuda.number("cuDeviceGetCount"))]
    nvml = Nvml("libnvidia-ml.so.1", gpus[0]["uuid"])
    driver = ctypes.create_string_buffer(80)
    nvml("nvmlSystemGetDriverVersion", driver, 80)
    return {"driver": driver.value.decode(), "cuda": version, "gpus": gpus,
            "files": {"libcuda.so.1": mapped_file("libcuda.so"), "libnvidia-ml.so.1": mapped_file("libnvidia-ml.so")}}


def fill(kind, share, nvml, uuid):
    """Takes memory in one way until it is refused."""
    given = Given(Nvml(nvml, uuid), os.getpid())
    cuda = Cuda()
    cuda.start()
    allocate = kinds.MAKERS[kind](cuda)
    context = given()
    step = kinds.COARSE if kind in kinds.WITH_COARSE_STEPS else kinds.PIECE
    pieces = asked = most = 0
    while True:
        code = allocate(step)
        if code == 0:
            pieces += 1
            asked += step
        elif step > kinds.PIECE:
            step //= 2
        else:
            break
        if pieces % 16 == 0:
            most = max(most, given())
        if asked > 2 * share + (2 << 30):
            break
    final = given()
    return {"code": code, "pieces": pieces, "asked": asked, "context": context, "given": final, "most": max(most, final),
            "by": given.how(), "free": cuda.memory()[0], "another_64_mib": kinds.MAKERS["alloc"](cuda)(64 * MIB)}


def views(uuid, smi):
    """How large the card seems, by everybody who can be asked, while 512 MiB of it are held."""
    cuda = Cuda()
    cuda.start()
    held = kinds.MAKERS["alloc"](cuda)(512 * MIB)
    nvml = Nvml("libnvidia-ml.so.1", uuid)
    free, total = cuda.memory()
    one, two = nvml.memory(), nvml.memory_v2()
    found = {"held": held == 0, "totals": {"cuMemGetInfo": total, "cuDeviceTotalMem": cuda.total(), "nvmlDeviceGetMemoryInfo": one[0],
                                           "nvmlDeviceGetMemoryInfo_v2": two[0]},
             "free": {"cuMemGetInfo": free, "nvmlDeviceGetMemoryInfo": one[1], "nvmlDeviceGetMemoryInfo_v2": two[2]},
             "processes": nvml.processes(), "pid": os.getpid()}
    if smi:
        words = [smi, f"--id={uuid}", "--query-gpu=memory.total,memory.used,memory.free", "--format=csv,noheader,nounits"]
        said = subprocess.run(words, capture_output=True, text=True, timeout=30)
        found["smi"] = said.stdout.strip() or said.stderr.strip()
    return found


def stages(nvml, uuid, heap, variables, managed):
    """What each thing that a program does costs: by the driver's figure for the process, the card's, and the guard's."""
    driver = Nvml(nvml, uuid)
    given, before = Given(driver, os.getpid()), driver.used()
    cuda = Cuda()
    found = []

    def stage(name, call=None):
        code = call() if call else 0
        free, total = cuda.memory()
        found.append({"stage": name, "code": code, "process": given(), "card": driver.used() - before, "charged": total - free})

    def touch_managed():
        address = ctypes.c_uint64()
        cuda("cuMemAllocManaged", ctypes.byref(address), ctypes.c_size_t(managed), 1)
        cuda("cuMemsetD8_v2", address, 1, ctypes.c_size_t(managed))
        return cuda.code("cuCtxSynchronize")

    cuda.start()
    stage("context")
    allocate = {name: make(cuda) for name, make in kinds.MAKERS.items() if name in ("alloc", "small", "managed", "heap", "module")}
    stage("alloc 64 MiB", lambda: allocate["alloc"](64 * MIB))
    stage("small alloc", lambda: allocate["small"](0))
    stage(f"heap of {heap // MIB} MiB", lambda: allocate["heap"](heap))
    stage(f"module with {variables // MIB} MiB of variables", lambda: allocate["module"](variables))
    stage(f"managed {managed // MIB} MiB", lambda: allocate["managed"](managed))
    stage(f"managed {managed // MIB} MiB, filled by the GPU", touch_managed)
    return {"by": given.how(), "stages": found}


def context(nvml, uuid):
    """What a context takes."""
    driver = Nvml(nvml, uuid)
    given, before = Given(driver, os.getpid()), driver.used()
    Cuda().start()
    return {"process": given(), "card": driver.used() - before}


def mode(nvml, uuid):
    return {"mode": Nvml(nvml, uuid).compute_mode()}


ROLES = {role.__name__: role for role in (look, fill, views, stages, context, mode)}


def main():
    role, settings = sys.argv[1], json.loads(sys.argv[2])
    if ":" in role:  # of another module
        module, role = role.split(":")
        function = getattr(importlib.import_module(f"try_on_gpu.{module}"), role)
    else:
        function = ROLES[role]
    try:
        print("\n" + json.dumps(function(**settings)))
    except (CudaError, OSError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
