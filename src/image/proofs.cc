#include "image/proofs.h"

#include <fcntl.h>

#include "base/ids.h"

namespace drover::image {
namespace {

std::string file_name(const std::string& key) {
  return sha256_hex(key);
}

}  // namespace

Result<std::string> boot_id() {
  DROVER_TRY(auto boot, read_file("/proc/sys/kernel/random/boot_id"));
  while (boot.ends_with('\n')) boot.pop_back();
  return boot;
}

Result<Proofs> Proofs::open(const Directory& folder) {
  DROVER_TRY(const auto boot, boot_id());
  DROVER_TRY(auto current, folder.make_subdirectory(boot, 0700));
  DROVER_TRY(const auto boots, folder.list());
  for (const auto& other : boots)
    if (other != boot) DROVER_CHECK_OK(folder.remove_tree(other));
  return Proofs(std::move(current));
}

bool Proofs::contains(const std::string& key) const {
  return folder_.exists(file_name(key));
}

void Proofs::add(const std::string& key) const {
  (void)folder_.open_file(file_name(key), O_WRONLY | O_CREAT, 0600);
}

}  // namespace drover::image
