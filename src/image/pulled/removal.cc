#include "image/pulled/removal.h"

#include <algorithm>

#include "image/digest.h"
#include "image/layout.h"
#include "image/platform.h"

namespace drover::image {

DiffIds diff_ids_of_paths(const std::vector<std::string>& paths) {
  DiffIds diff_ids;
  for (const auto& path : paths)
    if (auto diff_id = "sha256:" + path.substr(path.rfind('/') + 1); digest_hex(diff_id))
      diff_ids.insert(std::move(diff_id));
  return diff_ids;
}

Result<Removal> Removal::begin(const Stock& stock) {
  auto sweep = stock.leases.sweep();  // before the tasks are asked: what they write down meanwhile is leased
  DROVER_TRY(std::unique_ptr<ImageFiles> files, stock.blobs.files());
  Removal removal(stock, std::move(sweep), std::move(files));
  if (!stock.in_use) return removal;
  DROVER_TRY(const auto used, stock.in_use());
  for (const auto& paths : used) removal.tasks_.push_back(diff_ids_of_paths(paths));
  return removal;
}

/// Of one that is damaged, what is known.
const Removal::Content& Removal::content_of(const NamedImage& image) {
  const auto& digest = image.manifest.digest;
  if (const auto known = contents_.find(digest); known != contents_.end()) return known->second;
  Content content{{digest}, {}};
  if (!image.has_variants()) {
    if (const auto read = read_image(*files_, image.manifest, architecture_of_machine())) {
      content.blobs.insert(sha256_of(read->configuration));
      for (const auto& layer : read->layers) {
        content.blobs.insert(layer.digest);
        content.diff_ids.insert(layer.diff_id);
      }
    }
  }
  return contents_.emplace(digest, std::move(content)).first->second;
}

Removal::Content Removal::needed() {
  Content needed;
  for (const auto& task : tasks_) needed.diff_ids.insert(task.begin(), task.end());
  for (const auto& image : stock_.catalog.list()) {
    const auto& content = content_of(image);
    needed.blobs.insert(content.blobs.begin(), content.blobs.end());
    needed.diff_ids.insert(content.diff_ids.begin(), content.diff_ids.end());
  }
  return needed;
}

Status Removal::take_names(const std::function<bool(const NamedImage&)>& may_go) {
  DROVER_TRY(const auto gone, stock_.catalog.remove_all([&](const NamedImage& image) {
    return may_go(image) && !sweep_.knows(image.name.canonical()) && !sweep_.knows(image.manifest.digest) &&
           std::ranges::find(tasks_, content_of(image).diff_ids) == tasks_.end();
  }));
  for (const auto& image : gone) pruned_.names.push_back(image.name.familiar());
  return {};
}

Result<DiffIds> Removal::loose_layers() {
  const auto kept = needed().diff_ids;
  DROVER_TRY(const auto all, stock_.layers.list());
  DiffIds loose(all.begin(), all.end());
  std::erase_if(loose, [&](const std::string& diff_id) { return kept.contains(diff_id); });
  return loose;
}

Status Removal::remove_blobs(const Content& needed) {
  Status done;
  DROVER_TRY(const auto all, stock_.blobs.list());
  for (const auto& digest : all) {
    if (needed.blobs.contains(digest)) continue;
    sweep_.remove_if_free(digest, [&] {
      const auto size = stock_.blobs.size(digest).value_or(0);
      if (auto removed = stock_.blobs.remove(digest); !removed && done) done = std::move(removed);
      pruned_.bytes += size;
      ++pruned_.blobs;
    });
  }
  DROVER_TRY(const auto begun, stock_.blobs.list_partial());
  for (const auto& name : begun)
    sweep_.remove_if_free("sha256:" + name.substr(0, name.find('.')),
                          [&] { pruned_.bytes += stock_.blobs.remove_partial(name).value_or(0); });
  return done;
}

Status Removal::remove_loose(const DiffIds& spared) {
  auto kept = needed();
  kept.diff_ids.insert(spared.begin(), spared.end());
  auto done = remove_blobs(kept);
  DROVER_TRY(const auto all, stock_.layers.list());
  for (const auto& diff_id : all) {
    if (kept.diff_ids.contains(diff_id)) continue;
    sweep_.remove_if_free(diff_id, [&] {
      if (auto removed = stock_.layers.discard(diff_id); !removed && done) done = std::move(removed);
      ++pruned_.layers;
    });
  }
  DROVER_CHECK_OK(done);
  DROVER_TRY(const auto freed, stock_.layers.clear_discarded());
  pruned_.bytes += freed;
  return {};
}

}  // namespace drover::image
