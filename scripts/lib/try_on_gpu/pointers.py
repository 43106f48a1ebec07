"""Whose functions cuGetProcAddress gives: roles of `child`."""

import collections
import ctypes
import json
import pathlib

from .cuda import Cuda

FLAGS = (0, 1, 2)  # as the program was built; the default stream of old; one for each thread


def _symbol(library, name):
    try:
        return ctypes.cast(getattr(library, name), ctypes.c_void_p).value
    except AttributeError:
        return None


def loaded(name, symbol):
    """The file of the library that a program gets which loads this name."""
    address = _symbol(ctypes.CDLL(name), symbol)
    for line in open("/proc/self/maps"):
        low, high = (int(edge, 16) for edge in line.split()[0].split("-"))
        if low <= address < high:
            return {"file": line.split(maxsplit=5)[5].strip()}
    return {"file": None}


def _answers(cuda, names, refused=None):
    """(name, version, flag, pointer) of every name at each version that changed it, and at the driver's own. `refused` counts the codes of
    those that are not known."""
    newest = cuda.number("cuDriverGetVersion")
    pointer, status = ctypes.c_void_p(), ctypes.c_int()
    for name, variants in names.items():
        for version in sorted({version for version, _ in variants if version <= newest} | {newest}):
            for flag in FLAGS:
                pointer.value = None
                code = cuda.code("cuGetProcAddress_v2", name.encode(), ctypes.byref(pointer), version, ctypes.c_uint64(flag),
                                 ctypes.byref(status))
                if code == 0 and pointer.value:
                    yield name, version, flag, pointer.value
                elif refused is not None:
                    refused[str(code)] += 1


def of_driver(names):
    cuda, names = Cuda(), json.loads(pathlib.Path(names).read_text())
    asked, other, unknown, refused = 0, [], set(names), collections.Counter()
    for name, version, flag, pointer in _answers(cuda, names, refused):
        asked += 1
        unknown.discard(name)
        symbols = {function: _symbol(cuda.loaded, function) for function in
                   [name + suffix for suffix in ("", "_ptsz", "_ptds")] + [function for _, function in names[name]]}
        if pointer not in symbols.values():
            other.append(f"{name} {version} flags {flag}")
    return {"asked": asked, "other": other, "names": len(names), "unknown_to_driver": len(unknown), "refused": refused}


def of_guard(names, driver):
    cuda, names = Cuda(), json.loads(pathlib.Path(names).read_text())
    real = ctypes.CDLL(driver)
    own = [line.split() for line in open("/proc/self/maps") if "drover/guard" in line and "libcuda" in line]
    ranges = [tuple(int(edge, 16) for edge in line[0].split("-")) for line in own]
    asked = covered = passed = 0
    wrong = []
    pointer, status = ctypes.c_void_p(), ctypes.c_int()
    theirs = _symbol(real, "cuGetProcAddress_v2")
    ask = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint64, ctypes.c_void_p)(theirs)
    for name, version, flag, given in _answers(cuda, names):
        asked += 1
        ask(name.encode(), ctypes.addressof(pointer), version, flag, ctypes.addressof(status))
        by_driver = pointer.value
        # The driver's function that was meant, by its symbol: the guard's of the same symbol, or itself.
        candidates = [name + suffix for suffix in ("", "_ptsz", "_ptds")] + [function for _, function in names[name]]
        meant = {function for function in candidates if _symbol(real, function) == by_driver}
        if any(low <= given < high for low, high in ranges):
            good = any(_symbol(cuda.loaded, function) == given for function in meant)
            covered += good
        else:
            good = given == by_driver
            passed += good
        if not good:
            wrong.append(f"{name} {version} flags {flag}")
    return {"asked": asked, "covered": covered, "passed": passed, "wrong": wrong}
