#include "kube/gpu_edits.h"

#include <fmt/format.h>

#include "driver/cdi.h"
#include "driver/guard.h"

namespace drover::kube {

cdi::Edits guarded_edits(const GpuEdits& edits, const std::string& pages) {
  auto made = edits.common;
  auto checked = edits.guard.mounts;
  for (const auto& page : driver::kGuardPages) {
    const cdi::Mount mount{fmt::format("{}/{}", pages, page.place),
                           fmt::format("{}/{}", driver::kContainerFolder, page.place),
                           "",
                           {page.writable ? "rw" : "ro", "nosuid", "nodev", "noexec", "rbind", "rprivate"}};
    made.mounts.push_back(mount);
    checked.push_back(mount);
  }
  made.hooks.push_back(driver::guard_hook(checked, edits.guard.program));
  return made;
}

}  // namespace drover::kube
