#pragma once

// Code that was loaded: modules belong to a context, libraries to the process.

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "sim/cuda/context.h"
#include "sim/cuda/image.h"

namespace drover::sim::cuda {

struct Function {
  std::string name;
  std::weak_ptr<Module> module;    ///< none of kernels
  std::weak_ptr<Library> library;  ///< of kernels

  /// Whether it keeps the GPU busy for as many microseconds as its first parameter says.
  bool spins() const { return name == "spin"; }
};

struct Module : std::enable_shared_from_this<Module> {
  struct Variable {
    std::uint64_t address = 0;
    std::uint64_t size = 0;
  };

  /// Takes memory for the variables. Null, with the reason in `result`, when there is no room.
  static std::shared_ptr<Module> load(Context& context, const Image& image, CUresult& result);
  /// Its handles are gone from then on, and so is its memory.
  void unload();

  Driver* driver = nullptr;
  std::weak_ptr<Context> context;
  std::unique_ptr<Heap> heap;
  std::map<std::string, Variable, std::less<>> variables;
  std::map<std::string, std::shared_ptr<Function>, std::less<>> functions;
};

struct Library : std::enable_shared_from_this<Library> {
  /// Loads it into the context, if it is not there yet.
  std::shared_ptr<Module> module_in(Context& context, CUresult& result);

  Image image;
  std::map<std::string, std::shared_ptr<Function>, std::less<>> kernels;
  std::mutex mutex;
  std::map<std::uint64_t, std::shared_ptr<Module>> modules;  ///< by the context's number
};

}  // namespace drover::sim::cuda
