"""Roles of `child`: what a program of each framework does. `fill`: bytes of memory that it asks for in all, to be refused some."""

import importlib
import time

PIECE = 64 << 20
SIZE = 4096  # of matrices


def installed(module):
    try:
        found = importlib.import_module(module)
    except Exception as error:  # whatever a library that misses another one raises
        return {"version": None, "why": f"{type(error).__name__}: {' '.join(str(error).split())[:160]}"}
    top = importlib.import_module(module.split(".")[0])
    return {"version": getattr(found, "__version__", None) or getattr(top, "__version__", "of no known version"), "why": ""}


def _fill(most, allocate):
    """Takes pieces until one is refused: the exception as a program sees it."""
    held = []
    try:
        while len(held) * PIECE < most:
            held.append(allocate(PIECE))
    except Exception as error:
        kind = type(error)
        return {"error": f"{kind.__module__}.{kind.__qualname__}", "text": str(error), "held": len(held) * PIECE}
    return {"error": None, "text": "", "held": len(held) * PIECE}


def _step_ms(step, wait, steps=50):
    """The median of some runs of so many steps."""
    step()
    wait()
    took = []
    for _ in range(7):
        began = time.perf_counter()
        for _ in range(steps):
            step()
        wait()
        took.append((time.perf_counter() - began) * 1e3 / steps)
    return sorted(took)[len(took) // 2]


def torch(fill):
    import torch as framework
    free, total = framework.cuda.mem_get_info()
    left, right = (framework.randn(SIZE, SIZE, device="cuda", dtype=framework.float16) for _ in range(2))
    found = {"free": free, "total": total, "seen": framework.cuda.get_device_properties(0).total_memory,
             "step_ms": _step_ms(lambda: framework.matmul(left, right), framework.cuda.synchronize)}
    found.update(_fill(fill, lambda size: framework.empty(size, dtype=framework.uint8, device="cuda")))
    found["is_out_of_memory"] = found["error"] is not None and found["error"].endswith("OutOfMemoryError")
    return found


def cupy(fill):
    import cupy as framework
    free, total = framework.cuda.runtime.memGetInfo()
    left, right = (framework.random.rand(SIZE, SIZE, dtype=framework.float32) for _ in range(2))
    step = _step_ms(lambda: framework.matmul(left, right), framework.cuda.runtime.deviceSynchronize)
    return {"free": free, "total": total, "step_ms": step, **_fill(fill, lambda size: framework.empty(size, dtype=framework.uint8))}


def numba(fill):
    import numpy
    from numba import cuda as framework
    free, total = framework.current_context().get_memory_info()
    found = {"free": free, "total": total, "step_ms": None}
    back = framework.to_device(numpy.arange(1000)).copy_to_host()
    found["copied"] = bool((back == numpy.arange(1000)).all())
    found.update(_fill(fill, lambda size: framework.device_array(size, dtype=numpy.uint8)))
    return found


def _must(answer):
    """What a function of cuda-bindings says besides its error."""
    if int(answer[0]) != 0:
        raise MemoryError(f"{answer[0].name}: out of memory" if int(answer[0]) == 2 else str(answer[0]))
    return answer[1] if len(answer) == 2 else answer[1:]


def bindings(fill):
    from cuda.bindings import driver
    _must(driver.cuInit(0))
    context = _must(driver.cuDevicePrimaryCtxRetain(_must(driver.cuDeviceGet(0))))
    _must(driver.cuCtxSetCurrent(context))
    free, total = _must(driver.cuMemGetInfo())
    return {"free": free, "total": total, "step_ms": None, **_fill(fill, lambda size: _must(driver.cuMemAlloc(size)))}


def core(fill):
    """From a pool, in the order of a stream."""
    from cuda.bindings import driver
    from cuda.core import Device
    device = Device(0)
    device.set_current()
    stream = device.create_stream()
    free, total = _must(driver.cuMemGetInfo())
    return {"free": free, "total": total, "step_ms": None, **_fill(fill, lambda size: device.memory_resource.allocate(size, stream=stream))}


def tinygrad(fill):
    from cuda.bindings import driver
    from tinygrad import Device, dtypes
    from tinygrad.device import Buffer
    Device["CUDA"].synchronize()
    free, total = _must(driver.cuMemGetInfo())
    return {"free": free, "total": total, "step_ms": None, **_fill(fill, lambda size: Buffer("CUDA", size, dtypes.uint8).allocate())}
