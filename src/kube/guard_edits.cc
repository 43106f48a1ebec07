#include "kube/guard_edits.h"

#include <fmt/format.h>

#include <utility>

#include "driver/cdi.h"
#include "driver/files.h"
#include "share/pages.h"

namespace drover::kube {
namespace {

std::vector<cdi::Mount> mounts_of_pages(const std::string& folder) {
  const auto mount = [&](const char* page, const std::string& place, const char* access) {
    return cdi::Mount{fmt::format("{}/{}/{}", folder, share::kPagesFolder, page),
                      fmt::format("{}/{}", driver::kContainerFolder, place),
                      "",
                      {access, "nosuid", "nodev", "noexec", "rbind", "rprivate"}};
  };
  return {mount(share::kLimitsPage, driver::kGuardPages[0], "ro"),
          mount(share::kAccountPage, driver::kGuardPages[1], "rw")};
}

}  // namespace

cdi::Edits guarded_edits(const GuardEdits& edits, const std::string& pages) {
  auto made = edits.common;
  auto checked = edits.guard;
  for (auto& mount : mounts_of_pages(pages)) {
    made.mounts.push_back(mount);
    checked.push_back(std::move(mount));
  }
  made.hooks.push_back(driver::guard_hook(checked, edits.program));
  return made;
}

}  // namespace drover::kube
