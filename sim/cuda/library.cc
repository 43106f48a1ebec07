// The library itself: its life, and how its functions are found.

#include <algorithm>
#include <cstring>
#include <span>
#include <string_view>

#include "sim/cuda/call.h"
#include "sim/cuda/names.h"

using namespace drover::sim::cuda;

namespace {

constexpr cuuint64_t kKnownFlags =
    CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;

/// The newest function that the version may have; that for per-thread default streams where it is asked for
/// and there is one. Null, with the reason in `status`, when there is none.
void* find_function(std::string_view symbol, int version, cuuint64_t flags, int& status) {
  version = std::min(version, Driver::version());
  const auto variants = functions_named(symbol);
  const NamedFunction* best = nullptr;
  const bool per_thread = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0;
  for (const auto& variant : variants) {
    if (variant.version > version || (variant.per_thread && !per_thread)) continue;
    const auto rank = [](const NamedFunction& function) {
      return std::pair(function.per_thread, function.version);
    };
    if (best == nullptr || rank(*best) < rank(variant)) best = &variant;
  }
  status = best != nullptr    ? CU_GET_PROC_ADDRESS_SUCCESS
           : variants.empty() ? CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND
                              : CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
  return best == nullptr ? nullptr : best->address;
}

}  // namespace

CUresult cuInit(unsigned int flags) {
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  return guarded([] { return Driver::init(); });
}

CUresult cuDriverGetVersion(int* version) {
  return guarded([&] { return answer(version, Driver::version()); });
}

CUresult cuGetProcAddress_v2(const char* symbol, void** function, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult* status) {
  return guarded([&] {
    if (symbol == nullptr || function == nullptr || (flags & ~kKnownFlags) != 0)
      return CUDA_ERROR_INVALID_VALUE;
    int found = 0;
    *function = find_function(symbol, version, flags, found);
    if (status != nullptr) *status = found;
    return *function != nullptr || status != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
  });
}
CUresult cuGetProcAddress(const char* symbol, void** function, int version, cuuint64_t flags) {
  return cuGetProcAddress_v2(symbol, function, version, flags, nullptr);
}

// The vendor's runtime library asks for private tables, and checks them by rules that are not public.
CUresult cuGetExportTable(const void** table, const CUuuid* id) {
  if (table == nullptr || id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *table = nullptr;
  return CUDA_ERROR_NOT_FOUND;
}

CUresult cuProfilerStart() {
  return in_context([](Context&) { return CUDA_SUCCESS; });
}
CUresult cuProfilerStop() {
  return in_context([](Context&) { return CUDA_SUCCESS; });
}
