"""CUDA's driver interface and NVML by ctypes, as far as the checks need them: structures are those of the public reference."""

import ctypes
import uuid

MIB = 1 << 20
OUT_OF_MEMORY = 2


class CudaError(Exception):
    def __init__(self, call, code):
        super().__init__(f"{call} answered {code}")
        self.code = code


class Location(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("id", ctypes.c_int)]


class AllocationProperties(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("handle_types", ctypes.c_int), ("location", Location), ("windows", ctypes.c_void_p),
                ("flags", ctypes.c_ubyte * 8)]


class PoolProperties(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("handle_types", ctypes.c_int), ("location", Location), ("windows", ctypes.c_void_p),
                ("max_size", ctypes.c_size_t), ("usage", ctypes.c_ushort), ("reserved", ctypes.c_ubyte * 54)]


class AllocationNode(ctypes.Structure):
    _fields_ = [("pool", PoolProperties), ("access", ctypes.c_void_p), ("access_count", ctypes.c_size_t), ("bytes", ctypes.c_size_t),
                ("address", ctypes.c_uint64)]


class ArrayDescriptor(ctypes.Structure):
    _fields_ = [("width", ctypes.c_size_t), ("height", ctypes.c_size_t), ("format", ctypes.c_int), ("channels", ctypes.c_uint)]


class Array3dDescriptor(ctypes.Structure):
    _fields_ = [("width", ctypes.c_size_t), ("height", ctypes.c_size_t), ("depth", ctypes.c_size_t), ("format", ctypes.c_int),
                ("channels", ctypes.c_uint), ("flags", ctypes.c_uint)]


ON_DEVICE = {"type": 1, "location": Location(1, 0)}  # pinned memory of GPU 0
FLOAT = 0x20


class Library:
    """Functions by name; a code that is not 0 raises, unless asked for by `code`."""

    def __init__(self, path):
        self.path = path
        self.loaded = ctypes.CDLL(str(path))

    def code(self, name, *arguments):
        return getattr(self.loaded, name)(*arguments)

    def __call__(self, name, *arguments):
        code = self.code(name, *arguments)
        if code != 0:
            raise CudaError(name, code)


class Cuda(Library):
    def __init__(self, path="libcuda.so.1"):
        super().__init__(path)
        self("cuInit", 0)

    def number(self, name, *arguments, of=ctypes.c_int):
        """What a call writes into its first argument."""
        value = of()
        self(name, ctypes.byref(value), *arguments)
        return value.value

    def start(self):
        """A context on the first GPU."""
        context = ctypes.c_void_p()
        self("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        self("cuCtxSetCurrent", context)

    def uuid(self, device):
        raw = (ctypes.c_ubyte * 16)()
        self("cuDeviceGetUuid", raw, device)
        return f"GPU-{uuid.UUID(bytes=bytes(raw))}"

    def device(self, index):
        name = ctypes.create_string_buffer(256)
        self("cuDeviceGetName", name, 256, index)
        return {"uuid": self.uuid(index), "name": name.value.decode(), "total": self.total(index),
                "capability": [self.number("cuDeviceGetAttribute", which, index) for which in (75, 76)]}

    def total(self, device=0):
        return self.number("cuDeviceTotalMem_v2", device, of=ctypes.c_size_t)

    def memory(self):
        """Free and total, as programs are told."""
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return free.value, total.value

    def ptx(self, globals_of_bytes):
        """A module with nothing but one variable."""
        turing = self.device(0)["capability"] >= [7, 5]  # code for an older GPU runs on a newer one
        return (f".version 6.{3 if turing else 0}\n.target sm_{75 if turing else 50}\n.address_size 64\n"
                f".visible .global .align 4 .b8 data[{globals_of_bytes}];\n").encode()


class Process(ctypes.Structure):
    _fields_ = [("pid", ctypes.c_uint), ("used", ctypes.c_ulonglong), ("gpu_instance", ctypes.c_uint), ("compute_instance", ctypes.c_uint)]


class Nvml(Library):
    """Of one GPU."""

    def __init__(self, path, gpu_uuid):
        super().__init__(path)
        self("nvmlInit_v2")
        self.gpu = ctypes.c_void_p()
        self("nvmlDeviceGetHandleByUUID", gpu_uuid.encode(), ctypes.byref(self.gpu))

    def memory(self):
        """Total, free and used."""
        values = (ctypes.c_ulonglong * 3)()
        self("nvmlDeviceGetMemoryInfo", self.gpu, values)
        return list(values)

    def memory_v2(self):
        """Total, reserved, free and used."""
        values = (ctypes.c_ulonglong * 5)(ctypes.sizeof(ctypes.c_ulonglong * 5) | 2 << 24)
        self("nvmlDeviceGetMemoryInfo_v2", self.gpu, values)
        return list(values)[1:]

    def used(self):
        return self.memory()[2]

    def processes(self):
        """Bytes by pid."""
        count, processes = ctypes.c_uint(1024), (Process * 1024)()
        self("nvmlDeviceGetComputeRunningProcesses_v3", self.gpu, ctypes.byref(count), processes)
        return {each.pid: each.used for each in processes[:count.value]}

    def compute_mode(self):
        mode = ctypes.c_int()
        self("nvmlDeviceGetComputeMode", self.gpu, ctypes.byref(mode))
        return mode.value


class Given:
    """What the card has given this process, by the driver's own NVML: its own figure where NVML lists it by our pid, else what the whole
    card's grew by since this object was made (before there is a context)."""

    def __init__(self, nvml, pid):
        self.nvml, self.pid, self.before = nvml, pid, nvml.used()

    def how(self):
        return "process" if self.pid in self.nvml.processes() else "whole card"

    def __call__(self):
        figure = self.nvml.processes().get(self.pid)
        # A driver that cannot tell one process from another answers all ones.
        return figure if figure is not None and figure < 1 << 62 else self.nvml.used() - self.before
