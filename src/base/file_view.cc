#include "base/file_view.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include "base/files.h"

namespace drover {

std::string file_view() {
  auto boot = read_file("/proc/sys/kernel/random/boot_id");
  struct stat mounts{};
  struct stat root{};
  if (!boot || ::stat("/proc/self/ns/mnt", &mounts) != 0 || ::stat("/", &root) != 0) return "";
  boot->erase(boot->find_last_not_of('\n') + 1);
  return fmt::format("{}:{}:{}:{}", *boot, mounts.st_ino, root.st_dev, root.st_ino);
}

}  // namespace drover
