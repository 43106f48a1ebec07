#pragma once

// What lies in an image of a Docker Engine. An image itself cannot be looked into: a container is made of it,
// which is never started, and only when something is to be seen that was not seen before. Only single names
// are asked for, so nothing large or hostile is ever read. For one thread.

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "container/docker/engine.h"
#include "container/docker/image_path.h"
#include "image/merged.h"

namespace drover::container::docker {

/// What was seen of one image, which never changes. Thread safe.
struct SeenOfImage {
  std::mutex mutex;
  std::map<std::string, std::string> files;
  std::map<std::string, std::optional<PathStat>> stats;
  std::map<std::string, std::string> links;  ///< their targets, as they were written
};

class ImageProbe {
 public:
  /// `name` and `labels` are those of the container. `engine` must outlive it.
  ImageProbe(const Engine& engine, std::string image_id, std::string name,
             std::map<std::string, std::string> labels, std::shared_ptr<SeenOfImage> seen);
  ImageProbe(const ImageProbe&) = delete;
  ImageProbe& operator=(const ImageProbe&) = delete;
  /// Removes the container; what cannot be removed now is removed with the task's own, by its labels.
  ~ImageProbe();

  /// A small file; "" when there is none.
  Result<std::string> read(const std::string& path);
  /// As image::list_merged does it, but only libraries of a driver that a loader would find, by the link that
  /// it follows ("libcuda.so.1"), and folders with the usual names.
  Result<std::vector<image::MergedEntry>> list(const std::string& folder,
                                               const std::function<bool(std::string_view)>& wanted);
  /// Where a path leads. The container has no volumes: an engine that is asked about one which has makes
  /// their places.
  Result<ImagePath> walk(const std::string& path);

 private:
  Result<std::optional<PathStat>> stat(const std::string& path);
  Result<std::string> target_of_link(const std::string& path);
  /// The id of the container.
  Result<std::string> container();

  const Engine& engine_;
  const std::string image_id_;
  const std::string name_;
  const std::map<std::string, std::string> labels_;
  const std::shared_ptr<SeenOfImage> seen_;
  std::string container_;  ///< "" before it is made
};

}  // namespace drover::container::docker
