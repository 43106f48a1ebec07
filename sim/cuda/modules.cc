// Modules, libraries, and what is in them.

#include <cstring>

#include "sim/cuda/call.h"
#include "sim/cuda/module.h"

namespace drover::sim::cuda {

std::shared_ptr<Module> Module::load(Context& context, const Image& image, CUresult& result) {
  auto& driver = context.driver;
  auto module = std::make_shared<Module>();
  module->driver = &driver;
  module->context = context.weak_from_this();
  module->heap = std::make_unique<Heap>(driver.arena, driver.account(context.device));
  for (const auto& global : image.globals) {
    if (global.size == 0) continue;
    const auto address = module->heap->allocate(global.size);
    if (address == 0) {
      module->unload();
      result = CUDA_ERROR_OUT_OF_MEMORY;
      return nullptr;
    }
    module->variables[global.name] = {address, global.size};
    driver.memory.add({.address = address,
                       .size = global.size,
                       .kind = RangeKind::kGlobal,
                       .device = &context.device,
                       .context = context.weak_from_this(),
                       .id = driver.next_id()});
  }
  for (const auto& name : image.kernels) {
    auto function = std::make_shared<Function>(Function{.name = name, .module = module});
    driver.functions.add(function);
    module->functions[name] = std::move(function);
  }
  result = CUDA_SUCCESS;
  return module;
}

void Module::unload() {
  if (const auto owner = context.lock()) owner->queue.drain();
  for (const auto& [name, function] : functions)
    driver->functions.remove(Handles<Function, CUfunction>::to_handle(function.get()));
  for (const auto& [name, variable] : variables) driver->memory.take(variable.address, RangeKind::kGlobal);
  functions.clear();
  variables.clear();
  heap.reset();
}

std::shared_ptr<Module> Library::module_in(Context& context, CUresult& result) {
  const std::scoped_lock lock(mutex);
  auto& module = modules[context.id];
  result = CUDA_SUCCESS;
  if (!module || !module->heap) {  // or its context was destroyed since
    module = Module::load(context, image, result);
    if (module) context.driver.modules.add(module);
  }
  return module;
}

}  // namespace drover::sim::cuda

using namespace drover::sim::cuda;

namespace {

CUmodule module_handle(Module* module) {
  return Handles<Module, CUmodule>::to_handle(module);
}
CUfunction function_handle(Function* function) {
  return Handles<Function, CUfunction>::to_handle(function);
}

CUresult load_module(CUmodule* out, std::string_view text) {
  return in_context([&](Context& context) {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Image image;
    auto result = read_image(text, image);
    if (result != CUDA_SUCCESS) return result;
    const auto module = Module::load(context, image, result);
    if (!module) return result;
    *out = context.driver.modules.add(module);
    return CUDA_SUCCESS;
  });
}

CUresult load_library(CUlibrary* out, std::string_view text) {
  return with_driver([&](Driver& driver) {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    auto library = std::make_shared<Library>();
    const auto result = read_image(text, library->image);
    if (result != CUDA_SUCCESS) return result;
    for (const auto& name : library->image.kernels) {
      auto kernel = std::make_shared<Function>(Function{.name = name, .library = library});
      driver.functions.add(kernel);
      library->kernels[name] = std::move(kernel);
    }
    *out = driver.libraries.add(std::move(library));
    return CUDA_SUCCESS;
  });
}

/// Runs `load(text)` for what a pointer to code points to, or a file's name.
CUresult from_memory(const void* image, const auto& load) {
  if (image == nullptr) return CUDA_ERROR_INVALID_VALUE;
  // Binaries have lengths of their own, in which zeroes are; text ends with one.
  return guarded([&] { return load(std::string_view(static_cast<const char*>(image))); });
}
CUresult from_file(const char* file, const auto& load) {
  if (file == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return guarded([&] {
    std::string text;
    const auto result = read_image_file(file, text);
    return result == CUDA_SUCCESS ? load(text) : result;
  });
}

CUresult with_module(CUmodule handle, auto body) {
  return with_driver([&](Driver& driver) {
    const auto module = driver.modules.find(handle);
    return module ? body(*module) : CUDA_ERROR_INVALID_HANDLE;
  });
}
CUresult with_library(CUlibrary handle, auto body) {
  return with_driver([&](Driver& driver) {
    const auto library = driver.libraries.find(handle);
    return library ? body(*library) : CUDA_ERROR_INVALID_HANDLE;
  });
}
CUresult with_function(CUfunction handle, auto body) {
  return with_driver([&](Driver& driver) {
    const auto function = driver.functions.find(handle);
    return function ? body(*function) : CUDA_ERROR_INVALID_HANDLE;
  });
}

CUresult find_variable(const Module& module, const char* name, CUdeviceptr* address, size_t* size) {
  const auto found = module.variables.find(name);
  if (found == module.variables.end()) return CUDA_ERROR_NOT_FOUND;
  if (address != nullptr) *address = found->second.address;
  if (size != nullptr) *size = found->second.size;
  return CUDA_SUCCESS;
}

/// Of a kernel that nobody has compiled.
CUresult function_attribute(Context* context, int attribute, int* out) {
  switch (attribute) {
    case 0:  // MAX_THREADS_PER_BLOCK
      return answer(out, 1024);
    case 4:  // NUM_REGS
      return answer(out, 32);
    case 5:    // PTX_VERSION
    case 6: {  // BINARY_VERSION
      const auto* const device = context == nullptr ? nullptr : &context->device;
      return answer(out, device == nullptr
                             ? 0
                             : 10 * device->gpu->model.compute_major + device->gpu->model.compute_minor);
    }
    case 8:  // MAX_DYNAMIC_SHARED_SIZE_BYTES
      return answer(out, 48 << 10);
    default:
      return attribute > 0 && attribute < 18 ? answer(out, 0) : CUDA_ERROR_INVALID_VALUE;
  }
}

const auto kIntoModule = [](CUmodule* out) {
  return [out](std::string_view text) { return load_module(out, text); };
};
const auto kIntoLibrary = [](CUlibrary* out) {
  return [out](std::string_view text) { return load_library(out, text); };
};

}  // namespace

CUresult cuModuleLoad(CUmodule* out, const char* file) {
  return from_file(file, kIntoModule(out));
}
CUresult cuModuleLoadData(CUmodule* out, const void* image) {
  return from_memory(image, kIntoModule(out));
}
CUresult cuModuleLoadDataEx(CUmodule* out, const void* image, unsigned int, CUjit_option*, void**) {
  return from_memory(image, kIntoModule(out));
}
CUresult cuModuleLoadFatBinary(CUmodule* out, const void* image) {
  return from_memory(image, kIntoModule(out));
}
CUresult cuModuleUnload(CUmodule handle) {
  return with_driver([&](Driver& driver) {
    const auto module = driver.modules.remove(handle);
    if (!module) return CUDA_ERROR_INVALID_HANDLE;
    module->unload();
    return CUDA_SUCCESS;
  });
}
CUresult cuModuleGetFunction(CUfunction* out, CUmodule handle, const char* name) {
  return with_module(handle, [&](Module& module) {
    if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto found = module.functions.find(name);
    return found == module.functions.end() ? CUDA_ERROR_NOT_FOUND
                                           : answer(out, function_handle(found->second.get()));
  });
}
CUresult cuModuleGetFunctionCount(unsigned int* count, CUmodule handle) {
  return with_module(handle, [&](Module& module) { return answer(count, module.functions.size()); });
}
CUresult cuModuleGetGlobal_v2(CUdeviceptr* address, size_t* size, CUmodule handle, const char* name) {
  return with_module(handle, [&](Module& module) {
    return name == nullptr ? CUDA_ERROR_INVALID_VALUE : find_variable(module, name, address, size);
  });
}
CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
  constexpr int kEager = 1;
  return with_driver([&](Driver&) { return answer(mode, kEager); });
}

CUresult cuLibraryLoadData(CUlibrary* out, const void* image, CUjit_option*, void**, unsigned int,
                           CUlibraryOption*, void**, unsigned int) {
  return from_memory(image, kIntoLibrary(out));
}
CUresult cuLibraryLoadFromFile(CUlibrary* out, const char* file, CUjit_option*, void**, unsigned int,
                               CUlibraryOption*, void**, unsigned int) {
  return from_file(file, kIntoLibrary(out));
}
CUresult cuLibraryUnload(CUlibrary handle) {
  return with_driver([&](Driver& driver) {
    const auto library = driver.libraries.remove(handle);
    if (!library) return CUDA_ERROR_INVALID_HANDLE;
    for (const auto& [name, kernel] : library->kernels)
      driver.functions.remove(function_handle(kernel.get()));
    const std::scoped_lock lock(library->mutex);
    for (const auto& [context, module] : library->modules) {
      if (!module) continue;
      driver.modules.remove(module_handle(module.get()));
      module->unload();
    }
    return CUDA_SUCCESS;
  });
}
CUresult cuLibraryGetKernel(CUkernel* out, CUlibrary handle, const char* name) {
  return with_library(handle, [&](Library& library) {
    if (name == nullptr || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto found = library.kernels.find(name);
    if (found == library.kernels.end()) return CUDA_ERROR_NOT_FOUND;
    *out = reinterpret_cast<CUkernel>(found->second.get());
    return CUDA_SUCCESS;
  });
}
CUresult cuLibraryGetKernelCount(unsigned int* count, CUlibrary handle) {
  return with_library(handle, [&](Library& library) { return answer(count, library.kernels.size()); });
}
CUresult cuLibraryGetModule(CUmodule* out, CUlibrary handle) {
  return with_library(handle, [&](Library& library) {
    return in_context([&](Context& context) {
      CUresult result{};
      const auto module = library.module_in(context, result);
      return module ? answer(out, module_handle(module.get())) : result;
    });
  });
}
CUresult cuLibraryGetGlobal(CUdeviceptr* address, size_t* size, CUlibrary handle, const char* name) {
  CUmodule module = nullptr;
  const auto result = cuLibraryGetModule(&module, handle);
  return result == CUDA_SUCCESS ? cuModuleGetGlobal_v2(address, size, module, name) : result;
}

CUresult cuKernelGetFunction(CUfunction* out, CUkernel kernel) {
  return with_function(reinterpret_cast<CUfunction>(kernel), [&](Function& function) {
    return in_context([&](Context& context) {
      const auto library = function.library.lock();
      if (!library) return CUDA_ERROR_INVALID_HANDLE;
      CUresult result{};
      const auto module = library->module_in(context, result);
      return module ? answer(out, function_handle(module->functions[function.name].get())) : result;
    });
  });
}
CUresult cuKernelGetName(const char** name, CUkernel kernel) {
  return cuFuncGetName(name, reinterpret_cast<CUfunction>(kernel));
}
CUresult cuKernelGetLibrary(CUlibrary* out, CUkernel kernel) {
  return with_function(reinterpret_cast<CUfunction>(kernel), [&](Function& function) {
    const auto library = function.library.lock();
    return library ? answer(out, Handles<Library, CUlibrary>::to_handle(library.get()))
                   : CUDA_ERROR_INVALID_HANDLE;
  });
}
CUresult cuKernelGetAttribute(int* value, CUfunction_attribute attribute, CUkernel kernel, CUdevice) {
  return cuFuncGetAttribute(value, attribute, reinterpret_cast<CUfunction>(kernel));
}

CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction handle) {
  return with_function(handle,
                       [&](Function&) { return function_attribute(current_context(), attribute, value); });
}
CUresult cuFuncSetAttribute(CUfunction handle, CUfunction_attribute attribute, int) {
  return with_function(handle, [&](Function&) {
    return attribute >= 0 && attribute < 18 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}
CUresult cuFuncSetCacheConfig(CUfunction handle, CUfunc_cache) {
  return with_function(handle, [](Function&) { return CUDA_SUCCESS; });
}
CUresult cuFuncGetModule(CUmodule* out, CUfunction handle) {
  return with_function(handle, [&](Function& function) {
    const auto module = function.module.lock();
    return module ? answer(out, module_handle(module.get())) : CUDA_ERROR_INVALID_HANDLE;
  });
}
CUresult cuFuncGetName(const char** name, CUfunction handle) {
  return with_function(handle, [&](Function& function) { return answer(name, function.name.c_str()); });
}
CUresult cuFuncIsLoaded(CUfunctionLoadingState* state, CUfunction handle) {
  return with_function(handle, [&](Function&) { return answer(state, 1); });
}
CUresult cuFuncLoad(CUfunction handle) {
  return with_function(handle, [](Function&) { return CUDA_SUCCESS; });
}
