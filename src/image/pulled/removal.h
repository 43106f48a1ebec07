#pragma once

// The removal of what nobody needs, a step at a time: names, and then what no name and no task leads to. What
// is being used or made ready while it lasts is leased, and stays: whoever looks at an image takes the lease
// first, so that he finds it whole, or not at all. One removal at a time. Blocks; may take long.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "image/image_files.h"
#include "image/layers.h"
#include "image/pulled/blobs.h"
#include "image/pulled/catalog.h"
#include "image/pulled/leases.h"

namespace drover::image {

struct Pruned {
  std::vector<std::string> names;  ///< as people write them
  std::size_t blobs = 0;
  std::size_t layers = 0;
  std::uint64_t bytes = 0;  ///< that became free
};

/// Who uses what: the paths of the layers of each task.
using LayersInUse = std::function<Result<std::vector<std::vector<std::string>>>()>;

using DiffIds = std::set<std::string>;
/// Layers are known by the last part of their path; a root folder is none.
DiffIds diff_ids_of_paths(const std::vector<std::string>& paths);

/// What there is, and who uses it. The parts must outlive whoever has it.
struct Stock {
  const Blobs& blobs;
  Catalog& catalog;
  const Leases& leases;
  const Layers& layers;
  const LayersInUse& in_use;
};

class Removal {
 public:
  static Result<Removal> begin(const Stock& stock);

  /// Takes the names away for which `may_go` holds, unless a task is made of what they mean or somebody works
  /// with it.
  Status take_names(const std::function<bool(const NamedImage&)>& may_go);
  /// The layers that no name and no task leads to.
  Result<DiffIds> loose_layers();
  /// Removes what no name and no task leads to, but for these layers.
  Status remove_loose(const DiffIds& spared = {});

  /// What was removed so far.
  const Pruned& pruned() const { return pruned_; }

 private:
  /// What an image consists of.
  struct Content {
    std::set<std::string> blobs;
    DiffIds diff_ids;
  };

  Removal(const Stock& stock, Leases::Sweep sweep, std::unique_ptr<ImageFiles> files)
      : stock_(stock), sweep_(std::move(sweep)), files_(std::move(files)) {}
  const Content& content_of(const NamedImage& image);
  Content needed();
  Status remove_blobs(const Content& needed);

  Stock stock_;
  Leases::Sweep sweep_;
  std::unique_ptr<ImageFiles> files_;
  std::vector<DiffIds> tasks_;
  std::map<std::string, Content> contents_;  ///< of images, by the digest of the manifest
  Pruned pruned_;
};

}  // namespace drover::image
