#include "cli/sandbox_archive.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/units.h"
#include "cli/context.h"
#include "cli/tar.h"

namespace drover::cli {
namespace {

using nlohmann::json;

constexpr std::size_t kMostListed = 10'000;  // docs/openapi.yaml: of one folder

class Archive {
 public:
  Archive(const Client& client, const std::string& task, const std::function<Status(std::string_view)>& write)
      : client_(client), task_(task), write_(write) {}

  /// Not by recursion: how deep it goes is up to a task.
  Result<std::vector<std::string>> add(const std::string& path, const std::string& name) {
    folders_.push_back({path, name});
    while (!folders_.empty()) {
      const auto folder = std::exchange(folders_.back(), {});
      folders_.pop_back();
      DROVER_CHECK_OK(add_folder(folder));
    }
    DROVER_CHECK_OK(write_(tar_end()));
    return std::move(left_out_);
  }

 private:
  struct Folder {
    std::string path, name, mode = "0755";
    TimePoint modified_at{};
  };

  std::string target(std::string_view verb, const std::string& path) const {
    return task_target(task_, fmt::format("/files/{}?path={}", verb, percent_encode(path)));
  }

  Status add_folder(const Folder& folder) {
    DROVER_TRY(const auto listing, client_.get(target("browse", folder.path)));
    DROVER_CHECK_OK(write_(tar_header({folder.name, true, 0, mode_of(folder.mode), folder.modified_at})));
    const auto files = listing.value("files", json::array());
    if (files.size() >= kMostListed) left_out_.push_back(folder.name + "/…");
    const auto first = folders_.size();
    for (const auto& file : files) {
      const auto name = file.value("name", "");
      const Folder below{folder.path + "/" + name, folder.name + "/" + name, file.value("mode", ""),
                         parse_time(file.value("modified_at", "")).value_or(TimePoint())};
      const auto kind = file.value("kind", "");
      if (name == "." || name == ".." || name.find('/') != std::string::npos)
        left_out_.push_back(below.name);  // whoever unpacks it is led nowhere else
      else if (kind == "directory")
        folders_.push_back(below);
      else if (kind == "file")
        DROVER_CHECK_OK(add_file(below, file.value("size", std::uint64_t{0})));
      else
        left_out_.push_back(below.name);
    }
    std::reverse(folders_.begin() + static_cast<std::ptrdiff_t>(first), folders_.end());
    return {};
  }

  Status add_file(const Folder& file, std::uint64_t size) {
    DROVER_CHECK_OK(write_(tar_header({file.name, false, size, mode_of(file.mode), file.modified_at})));
    Status written;
    auto left = size;
    DROVER_CHECK_OK(client_.stream(target("download", file.path), "", [&](std::string_view piece) {
      const auto part = piece.substr(0, std::min<std::uint64_t>(piece.size(), left));
      left -= part.size();
      written = write_(part);
      return written.has_value() && left > 0;
    }));
    DROVER_CHECK_OK(written);
    if (left > 0)
      return fail(ErrorKind::kConflict, fmt::format("'{}' became shorter while it was read", file.path),
                  "try again when the task does not write to it");
    return write_(tar_padding(size));
  }

  /// "0644"
  static unsigned mode_of(const std::string& text) {
    unsigned mode = 0;
    for (const char digit : text)
      if (digit >= '0' && digit <= '7') mode = mode * 8 + static_cast<unsigned>(digit - '0');
    return mode;
  }

  const Client& client_;
  const std::string& task_;
  const std::function<Status(std::string_view)>& write_;
  std::vector<Folder> folders_;  ///< that are still to come, the next one last
  std::vector<std::string> left_out_;
};

}  // namespace

Result<std::vector<std::string>> write_archive(const Client& client, const SandboxFolder& folder,
                                               const std::function<Status(std::string_view)>& write) {
  return Archive(client, folder.task, write).add(folder.path, folder.name);
}

}  // namespace drover::cli
