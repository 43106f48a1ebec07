#include "cdi/specification_folder.h"

#include "base/find_directory.h"

namespace drover::cdi {
namespace {

constexpr const char* kEnding = ".json";
/// Of NVIDIA's programs, which may have been here before.
constexpr const char* kOtherEnding = ".yaml";

}  // namespace

Status SpecificationFolder::remove_unfinished() const {
  DROVER_TRY(const auto folder, find_directory(folder_));
  return folder ? folder->remove_unfinished(prefix_) : Status();
}

Result<std::map<std::string, std::string>> SpecificationFolder::read() const {
  std::map<std::string, std::string> texts;
  DROVER_TRY(const auto folder, find_directory(folder_));
  if (!folder) return texts;
  DROVER_TRY(const auto names, folder->list());
  for (const auto& name : names)
    if (name.starts_with(prefix_) && (name.ends_with(kEnding) || name.ends_with(kOtherEnding)))
      texts.emplace(name.substr(prefix_.size(), name.rfind('.') - prefix_.size()),
                    folder->read(name).value_or(""));
  return texts;
}

Status SpecificationFolder::write(const std::string& name, const std::string& text) const {
  DROVER_TRY(const auto folder, Directory::create(folder_));
  if (folder.read(prefix_ + name + kEnding).value_or("") != text)
    DROVER_CHECK_OK(folder.write(prefix_ + name + kEnding, text));
  // Two files that tell of one device are in conflict, and nobody would get it.
  return folder.remove_tree(prefix_ + name + kOtherEnding);
}

Status SpecificationFolder::remove(const std::string& name) const {
  DROVER_TRY(const auto folder, find_directory(folder_));
  if (!folder) return {};
  for (const char* ending : {kEnding, kOtherEnding})
    DROVER_CHECK_OK(folder->remove_tree(prefix_ + name + ending));
  return folder->sync();
}

}  // namespace drover::cdi
