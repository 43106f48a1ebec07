"""Others' programs that use CUDA by its driver, as their authors publish them: cuda-bindings, cuda-core, numba-cuda and tinygrad. What a
container needs for them: the Python that runs the tests, its libraries, and two folders of the machine."""

import json
import pathlib
import sysconfig

import drover
import python_packages
import test_cdi

PACKAGES = ("cuda-bindings==13.5.0", "cuda-core==1.2.2", "cuda-pathfinder==1.9.1", "llvmlite==0.50.0", "numba==0.68.1",
            "numba-cuda==0.30.4", "numpy==2.4.6", "packaging==26.4", "tinygrad==0.14.0")
PYTHON = python_packages.PYTHON
ROLES = drover.ROOT / "scripts/lib/try_on_gpu/programs.py"  # what each program does, as on a real GPU
MIB = 1 << 20


def packages():
    """Their folder."""
    return python_packages.provide("cuda-python", PACKAGES)


def folders():
    """Of the machine, to be read where they are there too."""
    return [str(packages()), sysconfig.get_path("stdlib")]


def files():
    """Of an image, by their paths: the interpreter, the machine's libraries that it and what it loads need, and the programs."""
    loaded = [path for folder in folders() for path in pathlib.Path(folder).rglob("*.so*") if path.is_file()]
    libraries = [path for path in test_cdi.libraries_of(PYTHON, *loaded) if not path.startswith(tuple(folders()))]
    return [("programs/programs.py", ROLES.read_bytes()), *((path, pathlib.Path(path).read_bytes()) for path in (str(PYTHON), *libraries))]


def command(role, fill):
    """Says in JSON what happened."""
    script = f"import json, programs; print(json.dumps(programs.{role}({fill})))"
    return [str(PYTHON), "-c", script]


def environment():
    return {"PYTHONPATH": f"{packages()}:/programs", "PYTHONDONTWRITEBYTECODE": "1", "NUMBA_CACHE_DIR": "/tmp", "HOME": "/tmp",
            "CUDA_PYTHON_DISABLE_MAJOR_VERSION_WARNING": "1"}


def check_share(test, text, share_mib):
    """They run unchanged: the card is as large as the share, and the exception of one that is full is their own."""
    found = json.loads(text.strip().splitlines()[-1])
    test.assertEqual(found["total"], share_mib * MIB, found)
    test.assertRegex(found["error"], r"^(numba\..*\.CudaAPIError|cuda\.core\..*\.CUDAError|builtins\.MemoryError)$")
    test.assertRegex(found["text"], r"out of memory|^Allocation of 64\.00 MB failed on CUDA" if found["error"] == "builtins.MemoryError" else
                     "CUDA_ERROR_OUT_OF_MEMORY")
    test.assertIn(found["held"], range((share_mib - 512) * MIB, share_mib * MIB))
    test.assertTrue(found.get("copied", True), "what was copied there came back the same")
