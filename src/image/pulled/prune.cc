#include "image/pulled/prune.h"

#include <algorithm>
#include <set>

#include "image/digest.h"
#include "image/layout.h"
#include "image/platform.h"

namespace drover::image {
namespace {

using DiffIds = std::set<std::string>;

/// Layers are known by the last part of their path; a root folder is none.
DiffIds diff_ids_of_paths(const std::vector<std::string>& paths) {
  DiffIds diff_ids;
  for (const auto& path : paths)
    if (auto diff_id = "sha256:" + path.substr(path.rfind('/') + 1); digest_hex(diff_id))
      diff_ids.insert(std::move(diff_id));
  return diff_ids;
}

/// All that an image consists of; of one that is damaged, what is known.
struct Parts {
  std::set<std::string> blobs;
  DiffIds diff_ids;
};

Parts parts_of(const NamedImage& image, const ImageFiles& files) {
  Parts parts{{image.manifest.digest}, {}};
  if (image.has_variants()) return parts;
  const auto contents = read_image(files, image.manifest, architecture_of_machine());
  if (!contents) return parts;
  parts.blobs.insert(sha256_of(contents->configuration));
  for (const auto& layer : contents->layers) {
    parts.blobs.insert(layer.digest);
    parts.diff_ids.insert(layer.diff_id);
  }
  return parts;
}

}  // namespace

Result<Pruned> prune(const Blobs& blobs, Catalog& catalog, const Leases& leases, const Layers& layers,
                     const LayersInUse& in_use, const std::function<bool(const NamedImage&)>& may_remove) {
  const auto sweep = leases.sweep();  // before the tasks are asked: what they write down meanwhile is leased
  std::vector<DiffIds> tasks;
  if (in_use) {
    DROVER_TRY(const auto used, in_use());
    for (const auto& paths : used) tasks.push_back(diff_ids_of_paths(paths));
  }
  DROVER_TRY(const auto files, blobs.files());
  Pruned pruned;
  DROVER_TRY(const auto gone, catalog.remove_all([&](const NamedImage& image) {
    return may_remove(image) && !sweep.knows(image.manifest.digest) &&
           std::ranges::find(tasks, parts_of(image, *files).diff_ids) == tasks.end();
  }));
  for (const auto& image : gone) pruned.names.push_back(image.name.familiar());

  Parts kept;
  for (const auto& task : tasks) kept.diff_ids.insert(task.begin(), task.end());
  for (const auto& image : catalog.list()) {
    auto parts = parts_of(image, *files);
    kept.blobs.merge(parts.blobs);
    kept.diff_ids.merge(parts.diff_ids);
  }
  Status done;
  const auto note = [&](Status removed) {
    if (!removed && done) done = std::move(removed);
  };
  DROVER_TRY(const auto all_blobs, blobs.list());
  for (const auto& digest : all_blobs) {
    if (kept.blobs.contains(digest)) continue;
    sweep.remove_if_free(digest, [&] {
      const auto size = blobs.size(digest).value_or(0);
      note(blobs.remove(digest));
      pruned.bytes += size;
      ++pruned.blobs;
    });
  }
  DROVER_TRY(const auto all_layers, layers.list());
  for (const auto& diff_id : all_layers) {
    if (kept.diff_ids.contains(diff_id)) continue;
    sweep.remove_if_free(diff_id, [&] {
      note(layers.discard(diff_id));
      ++pruned.layers;
    });
  }
  DROVER_TRY(const auto begun, blobs.list_partial());
  for (const auto& name : begun)
    sweep.remove_if_free("sha256:" + name.substr(0, name.find('.')),
                         [&] { pruned.bytes += blobs.remove_partial(name).value_or(0); });
  DROVER_CHECK_OK(done);
  DROVER_TRY(const auto freed, layers.clear_discarded());
  pruned.bytes += freed;
  return pruned;
}

}  // namespace drover::image
