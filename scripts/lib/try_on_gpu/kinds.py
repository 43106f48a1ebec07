"""Every way to take memory of a GPU: a kind is made for a process, and then asked for pieces until it is refused."""

import ctypes

from .cuda import FLOAT, MIB, AllocationNode, AllocationProperties, Array3dDescriptor, ArrayDescriptor, PoolProperties

PIECE = 2 * MIB
COARSE = 64 * MIB  # a first step where each call has much to do; halved down to PIECE


def _address():
    return ctypes.byref(ctypes.c_uint64())


def _by(name, *after):
    """Of calls that take where to write an address, and how much."""
    return lambda cuda: lambda size: cuda.code(name, _address(), ctypes.c_size_t(size), *after)


def small(cuda):
    return lambda size: cuda.code("cuMemAlloc_v2", _address(), ctypes.c_size_t(600 << 10))


def pitch(cuda):
    return lambda size: cuda.code("cuMemAllocPitch_v2", _address(), ctypes.byref(ctypes.c_size_t()), ctypes.c_size_t(2000),
                                  ctypes.c_size_t(size // 2048), 4)


def pool(cuda):
    handle, properties = ctypes.c_void_p(), PoolProperties(type=1)
    properties.location.type = 1
    cuda("cuMemPoolCreate", ctypes.byref(handle), ctypes.byref(properties))
    return lambda size: cuda.code("cuMemAllocFromPoolAsync", _address(), ctypes.c_size_t(size), handle, None)


def _create(cuda, size):
    handle, properties = ctypes.c_uint64(), AllocationProperties(type=1)
    properties.location.type = 1
    return cuda.code("cuMemCreate", ctypes.byref(handle), ctypes.c_size_t(size), ctypes.byref(properties), ctypes.c_uint64(0)), handle


def physical(cuda):
    return lambda size: _create(cuda, size)[0]


def mapped(cuda):
    """Its handle is released while it is mapped, as the documentation advises."""
    def allocate(size):
        code, handle = _create(cuda, size)
        if code:
            return code
        address = ctypes.c_uint64()
        cuda("cuMemAddressReserve", ctypes.byref(address), ctypes.c_size_t(size), ctypes.c_size_t(0), ctypes.c_uint64(0), ctypes.c_uint64(0))
        cuda("cuMemMap", address, ctypes.c_size_t(size), ctypes.c_size_t(0), handle, ctypes.c_uint64(0))
        return cuda.code("cuMemRelease", handle)
    return allocate


def array(cuda):
    return lambda size: cuda.code("cuArrayCreate_v2", ctypes.byref(ctypes.c_void_p()),
                                  ctypes.byref(ArrayDescriptor(1024, size // 4096, FLOAT, 1)))


def array_3d(cuda):
    return lambda size: cuda.code("cuArray3DCreate_v2", ctypes.byref(ctypes.c_void_p()),
                                  ctypes.byref(Array3dDescriptor(128, 128, size // 65536, FLOAT, 1, 0)))


def mipmap(cuda):
    return lambda size: cuda.code("cuMipmappedArrayCreate", ctypes.byref(ctypes.c_void_p()),
                                  ctypes.byref(Array3dDescriptor(512, 512, 0, FLOAT, 1, 0)), 3)


def graph(cuda):
    def allocate(size):
        handle, program, node = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        wanted = AllocationNode(bytes=size)
        wanted.pool.type = wanted.pool.location.type = 1
        cuda("cuGraphCreate", ctypes.byref(handle), 0)
        return (cuda.code("cuGraphAddMemAllocNode", ctypes.byref(node), handle, None, ctypes.c_size_t(0), ctypes.byref(wanted))
                or cuda.code("cuGraphInstantiateWithFlags", ctypes.byref(program), handle, ctypes.c_uint64(0))
                or cuda.code("cuGraphLaunch", program, None))
    return allocate


def heap(cuda):
    """Of kernels: it only grows."""
    size_now = ctypes.c_size_t()
    cuda("cuCtxGetLimit", ctypes.byref(size_now), 2)

    def allocate(size):
        code = cuda.code("cuCtxSetLimit", 2, ctypes.c_size_t(size_now.value + size))
        if code == 0:
            size_now.value += size
        return code
    return allocate


def module(cuda):
    """Variables of code, which the driver makes room for when it loads it."""
    def allocate(size):
        handle = ctypes.c_void_p()
        code = cuda.code("cuModuleLoadData", ctypes.byref(handle), cuda.ptx(size))
        if code:
            return code
        return cuda.code("cuModuleGetGlobal_v2", _address(), ctypes.byref(ctypes.c_size_t()), handle, b"data")  # loaded lazily, else
    return allocate


MAKERS = {
    "alloc": _by("cuMemAlloc_v2"), "small": small, "pitch": pitch, "managed": _by("cuMemAllocManaged", 1),
    "async": _by("cuMemAllocAsync", None), "async-per-thread": _by("cuMemAllocAsync_ptsz", None), "pool": pool, "physical": physical,
    "mapped": mapped, "array": array, "array-3d": array_3d, "mipmap": mipmap, "graph": graph, "heap": heap, "module": module,
}
WITH_COARSE_STEPS = {"heap", "module"}
