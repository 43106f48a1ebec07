#include "kube_node/guard.h"

#include <fmt/format.h>

#include <map>

#include "base/files.h"
#include "base/ids.h"
#include "share/page_folders.h"

namespace drover {
namespace {

/// Containers that run keep what is mounted; those that start again in a pod of before need it by its name.
Status remove_others(const Directory& folder, const std::string& kept,
                     const std::vector<std::string>& shares) {
  for (const auto& path : shares) {
    DROVER_TRY(const auto pages, share::PageFolders(path).list());
    if (!pages.empty()) return {};
  }
  DROVER_TRY(const auto names, folder.list());
  for (const auto& name : names)
    if (name != kept) DROVER_CHECK_OK(folder.remove_tree(name));
  return {};
}

}  // namespace

Result<driver::Guard> place_guard(const std::string& state, const std::vector<std::string>& shares) {
  auto guard = driver::find_guard().value_or(driver::Guard{});
  if (guard.empty()) return guard;
  std::map<std::string, std::string> contents;
  std::string digests;
  for (const auto& library : guard) {
    DROVER_TRY(contents[library.name], read_file(library.source));
    digests += sha256_hex(contents[library.name]);
  }
  const auto digest = sha256_hex(digests);
  DROVER_TRY(const auto state_folder, Directory::open(state));
  DROVER_TRY(const auto folder, state_folder.make_subdirectory("guard"));
  DROVER_TRY(const auto own, folder.make_subdirectory(digest));
  for (auto& library : guard) {
    // Never another file of the same name: what containers have is known by it.
    if (own.read(library.name).value_or("") != contents[library.name])
      DROVER_CHECK_OK(own.write(library.name, contents[library.name], 0755));
    library.source = fmt::format("{}/guard/{}/{}", state, digest, library.name);
  }
  DROVER_CHECK_OK(remove_others(folder, digest, shares));
  return guard;
}

}  // namespace drover
