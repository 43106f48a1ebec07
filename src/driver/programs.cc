#include "driver/programs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "driver/elf.h"

namespace drover::driver {
namespace {

constexpr std::array kSearched = {"/usr/local/sbin", "/usr/local/bin", "/usr/sbin",
                                  "/usr/bin",        "/sbin",          "/bin"};
// Debian's, where its alternatives are not set up: as when packages are only unpacked.
constexpr const char* kOfDebian = "/usr/lib/nvidia/current";

}  // namespace

std::optional<Program> find_program(const Root& root, const std::string& name,
                                    const std::set<std::string>& library_folders) {
  std::vector<std::string> folders(kSearched.begin(), kSearched.end());
  folders.emplace_back(kOfDebian);
  for (const auto& folder : library_folders) folders.push_back(folder.substr(0, folder.rfind('/')) + "/bin");
  std::optional<Program> script;
  for (const auto& folder : folders) {
    auto file = root.open_file(folder + "/" + name);
    if (!file) continue;
    const bool known = std::ranges::find(kSearched, folder) != kSearched.end();
    const bool is_script = !read_elf(file->fd.get(), name);
    Program found{std::move(*file), fmt::format("{}/{}", known ? folder : "/usr/bin", name)};
    if (!is_script) return found;
    if (!script) script = std::move(found);
  }
  return script;
}

}  // namespace drover::driver
