// What the codes are called, and mean.

#include <algorithm>
#include <array>

#include "sim/cuda/call.h"

using namespace drover::sim::cuda;

namespace {

struct NamedError {
  int code;
  const char* name;
  const char* meaning;
};

constexpr std::array kErrors{
    NamedError{0, "CUDA_SUCCESS", "no error"},
    NamedError{1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    NamedError{2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    NamedError{3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    NamedError{4, "CUDA_ERROR_DEINITIALIZED", "driver shutting down"},
    NamedError{5, "CUDA_ERROR_PROFILER_DISABLED", "profiler disabled"},
    NamedError{6, "CUDA_ERROR_PROFILER_NOT_INITIALIZED", "profiler not initialized"},
    NamedError{7, "CUDA_ERROR_PROFILER_ALREADY_STARTED", "profiler already started"},
    NamedError{8, "CUDA_ERROR_PROFILER_ALREADY_STOPPED", "profiler already stopped"},
    NamedError{34, "CUDA_ERROR_STUB_LIBRARY", "stub library"},
    NamedError{36, "CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER", "call requires newer driver"},
    NamedError{46, "CUDA_ERROR_DEVICE_UNAVAILABLE", "device unavailable"},
    NamedError{47, "CUDA_ERROR_MULTICAST_RESOURCE_FULL", "multicast resource full"},
    NamedError{100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    NamedError{101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    NamedError{102, "CUDA_ERROR_DEVICE_NOT_LICENSED", "device not licensed"},
    NamedError{200, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    NamedError{201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    NamedError{202, "CUDA_ERROR_CONTEXT_ALREADY_CURRENT", "context already current"},
    NamedError{205, "CUDA_ERROR_MAP_FAILED", "map failed"},
    NamedError{206, "CUDA_ERROR_UNMAP_FAILED", "unmap failed"},
    NamedError{207, "CUDA_ERROR_ARRAY_IS_MAPPED", "array is mapped"},
    NamedError{208, "CUDA_ERROR_ALREADY_MAPPED", "already mapped"},
    NamedError{209, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no binary for gpu"},
    NamedError{210, "CUDA_ERROR_ALREADY_ACQUIRED", "already acquired"},
    NamedError{211, "CUDA_ERROR_NOT_MAPPED", "not mapped"},
    NamedError{212, "CUDA_ERROR_NOT_MAPPED_AS_ARRAY", "not mapped as array"},
    NamedError{213, "CUDA_ERROR_NOT_MAPPED_AS_POINTER", "not mapped as pointer"},
    NamedError{214, "CUDA_ERROR_ECC_UNCORRECTABLE", "ecc uncorrectable"},
    NamedError{215, "CUDA_ERROR_UNSUPPORTED_LIMIT", "unsupported limit"},
    NamedError{216, "CUDA_ERROR_CONTEXT_ALREADY_IN_USE", "context already in use"},
    NamedError{217, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED", "peer access unsupported"},
    NamedError{218, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    NamedError{219, "CUDA_ERROR_INVALID_GRAPHICS_CONTEXT", "invalid graphics context"},
    NamedError{220, "CUDA_ERROR_NVLINK_UNCORRECTABLE", "nvlink uncorrectable"},
    NamedError{221, "CUDA_ERROR_JIT_COMPILER_NOT_FOUND", "jit compiler not found"},
    NamedError{222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "unsupported ptx version"},
    NamedError{223, "CUDA_ERROR_JIT_COMPILATION_DISABLED", "jit compilation disabled"},
    NamedError{224, "CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY", "unsupported exec affinity"},
    NamedError{225, "CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC", "unsupported devside sync"},
    NamedError{226, "CUDA_ERROR_CONTAINED", "contained"},
    NamedError{227, "CUDA_ERROR_INSUFFICIENT_LOADER_VERSION", "insufficient loader version"},
    NamedError{300, "CUDA_ERROR_INVALID_SOURCE", "invalid source"},
    NamedError{301, "CUDA_ERROR_FILE_NOT_FOUND", "file not found"},
    NamedError{302, "CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND", "shared object symbol not found"},
    NamedError{303, "CUDA_ERROR_SHARED_OBJECT_INIT_FAILED", "shared object init failed"},
    NamedError{304, "CUDA_ERROR_OPERATING_SYSTEM", "OS call failed or operation not supported on this OS"},
    NamedError{400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    NamedError{401, "CUDA_ERROR_ILLEGAL_STATE", "illegal state"},
    NamedError{402, "CUDA_ERROR_LOSSY_QUERY", "lossy query"},
    NamedError{500, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    NamedError{600, "CUDA_ERROR_NOT_READY", "device not ready"},
    NamedError{700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    NamedError{701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "launch out of resources"},
    NamedError{702, "CUDA_ERROR_LAUNCH_TIMEOUT", "launch timeout"},
    NamedError{703, "CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING", "launch incompatible texturing"},
    NamedError{704, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", "peer access already enabled"},
    NamedError{705, "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED", "peer access not enabled"},
    NamedError{708, "CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE", "primary context active"},
    NamedError{709, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "context is destroyed"},
    NamedError{710, "CUDA_ERROR_ASSERT", "assert"},
    NamedError{711, "CUDA_ERROR_TOO_MANY_PEERS", "too many peers"},
    NamedError{712, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", "host memory already registered"},
    NamedError{713, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", "host memory not registered"},
    NamedError{714, "CUDA_ERROR_HARDWARE_STACK_ERROR", "hardware stack error"},
    NamedError{715, "CUDA_ERROR_ILLEGAL_INSTRUCTION", "illegal instruction"},
    NamedError{716, "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"},
    NamedError{717, "CUDA_ERROR_INVALID_ADDRESS_SPACE", "invalid address space"},
    NamedError{718, "CUDA_ERROR_INVALID_PC", "invalid pc"},
    NamedError{719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    NamedError{720, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE", "cooperative launch too large"},
    NamedError{721, "CUDA_ERROR_TENSOR_MEMORY_LEAK", "tensor memory leak"},
    NamedError{800, "CUDA_ERROR_NOT_PERMITTED", "operation not permitted"},
    NamedError{801, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    NamedError{802, "CUDA_ERROR_SYSTEM_NOT_READY", "system not yet initialized"},
    NamedError{803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "system driver mismatch"},
    NamedError{804, "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE", "compat not supported on device"},
    NamedError{805, "CUDA_ERROR_MPS_CONNECTION_FAILED", "mps connection failed"},
    NamedError{806, "CUDA_ERROR_MPS_RPC_FAILURE", "mps rpc failure"},
    NamedError{807, "CUDA_ERROR_MPS_SERVER_NOT_READY", "mps server not ready"},
    NamedError{808, "CUDA_ERROR_MPS_MAX_CLIENTS_REACHED", "mps max clients reached"},
    NamedError{809, "CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED", "mps max connections reached"},
    NamedError{810, "CUDA_ERROR_MPS_CLIENT_TERMINATED", "mps client terminated"},
    NamedError{811, "CUDA_ERROR_CDP_NOT_SUPPORTED", "cdp not supported"},
    NamedError{812, "CUDA_ERROR_CDP_VERSION_MISMATCH", "cdp version mismatch"},
    NamedError{900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "stream capture unsupported"},
    NamedError{901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "stream capture invalidated"},
    NamedError{902, "CUDA_ERROR_STREAM_CAPTURE_MERGE", "stream capture merge"},
    NamedError{903, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", "stream capture unmatched"},
    NamedError{904, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED", "stream capture unjoined"},
    NamedError{905, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION", "stream capture isolation"},
    NamedError{906, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT", "stream capture implicit"},
    NamedError{907, "CUDA_ERROR_CAPTURED_EVENT", "captured event"},
    NamedError{908, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD", "stream capture wrong thread"},
    NamedError{909, "CUDA_ERROR_TIMEOUT", "timeout"},
    NamedError{910, "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE", "graph exec update failure"},
    NamedError{911, "CUDA_ERROR_EXTERNAL_DEVICE", "external device"},
    NamedError{912, "CUDA_ERROR_INVALID_CLUSTER_SIZE", "invalid cluster size"},
    NamedError{913, "CUDA_ERROR_FUNCTION_NOT_LOADED", "function not loaded"},
    NamedError{914, "CUDA_ERROR_INVALID_RESOURCE_TYPE", "invalid resource type"},
    NamedError{915, "CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION", "invalid resource configuration"},
    NamedError{916, "CUDA_ERROR_KEY_ROTATION", "key rotation"},
    NamedError{917, "CUDA_ERROR_STREAM_DETACHED", "stream detached"},
    NamedError{918, "CUDA_ERROR_GRAPH_RECAPTURE_FAILURE", "graph recapture failure"},
    NamedError{919, "CUDA_ERROR_FABRIC_NOT_READY", "fabric not ready"},
    NamedError{999, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

const NamedError* find_error(CUresult code) {
  const auto* const found = std::ranges::find(kErrors, static_cast<int>(code), &NamedError::code);
  return found == kErrors.end() ? nullptr : found;
}

}  // namespace

CUresult cuGetErrorName(CUresult error, const char** text) {
  if (text == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto* const found = find_error(error);
  *text = found == nullptr ? nullptr : found->name;
  return found == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult error, const char** text) {
  if (text == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto* const found = find_error(error);
  *text = found == nullptr ? nullptr : found->meaning;
  return found == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
