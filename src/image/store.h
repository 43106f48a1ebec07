#pragma once

// The image store of this machine: unpacked layers, shared by all tasks, under one folder that only root
// enters. A layer is unpacked beside its place and renamed into it, so a crash leaves no half layer. Thread
// safe: two tasks that need the same layer wait for one unpacking. Blocks.

#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "base/users.h"
#include "image/image.h"

namespace drover::image {

class Layers;

class Store {
 public:
  /// `folder` is created when absent; leftovers of a crash are removed. `named` is the folder in which images
  /// lie under the names that registries give them; "" for none.
  static Result<Store> open(const std::string& folder, std::string named = "");
  ~Store();
  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;

  /// Makes an image ready. References: "oci:/layout[:tag]", "docker-archive:/file.tar[:name:tag]",
  /// "rootfs:/folder", a bare path whose kind is looked up, or a name of the folder of named images. The
  /// files are read with the rights of `reader`: nobody reads through the daemon what he could not read
  /// himself. `progress` hears a sentence per step, from the calling thread.
  Result<Image> prepare(const std::string& reference, const User& reader,
                        const std::function<void(const std::string&)>& progress = {});

 private:
  Store(std::unique_ptr<Layers> layers, std::string named);
  std::unique_ptr<Layers> layers_;
  std::string named_;
};

}  // namespace drover::image
