#include "cli/definitions/task_file.h"

#include <fmt/format.h>

#include "cli/whereabouts.h"
#include "workload/submission.h"

namespace drover::cli {
namespace {

using nlohmann::json;

constexpr const char* kShort = "mem";
constexpr const char* kLong = "memory";

/// What a gang says of its members one by one; null when it does not.
json* members_of(json& body) {
  const auto gang = body.find("gang");
  if (gang == body.end() || !gang->is_object()) return nullptr;
  const auto members = gang->find("members");
  return members == gang->end() || !members->is_array() ? nullptr : &*members;
}

void set_in_full(json& path, const std::string& folder) {
  if (!path.is_string()) return;
  const auto said = path.get<std::string>();
  if (!said.empty() && !said.starts_with('/') && said.find("://") == std::string::npos)
    path = path_from(folder, said);
}

/// Makes absolute what a task or a member says by paths of the machine. With an image the working directory
/// is one of the image's.
void use_full_paths(json& object, bool image, const std::string& folder) {
  if (!object.is_object()) return;
  if (object.contains("working_directory") && !image && !object.contains("image"))
    set_in_full(object["working_directory"], folder);
  for (const auto& [list, name] : {std::pair("volumes", "host_path"), std::pair("fetch", "uri")})
    if (const auto found = object.find(list); found != object.end() && found->is_array())
      for (auto& each : *found) {
        if (each.is_object() && each.contains(name)) set_in_full(each[name], folder);
        if (each.is_string()) set_in_full(each, folder);
      }
}

/// Calls `memory` by the API's word, and says where that was not so.
void use_long_word(json& object, const std::string& path, std::vector<std::string>& renamed,
                   std::vector<Error>& mistakes) {
  if (!object.is_object() || !object.contains(kShort)) return;
  if (object.contains(kLong))
    mistakes.push_back({ErrorKind::kInvalid, "the memory is said twice, here and as 'memory'",
                        "leave one of the two out", fmt::format("{}/{}", path, kShort)});
  else
    object[kLong] = std::move(object[kShort]);
  object.erase(kShort);
  renamed.push_back(fmt::format("{}/{}", path, kLong));
}

}  // namespace

TaskFile read_task_file(const json& value, const std::string& folder) {
  TaskFile file{value, "", {}};
  std::vector<std::string> renamed;
  use_long_word(file.body, "", renamed, file.mistakes);
  const bool image = file.body.contains("image");
  use_full_paths(file.body, image, folder);
  if (auto* members = members_of(file.body))
    for (std::size_t rank = 0; rank < members->size(); ++rank) {
      use_long_word((*members)[rank], fmt::format("/gang/members/{}", rank), renamed, file.mistakes);
      use_full_paths((*members)[rank], image, folder);
    }
  const auto read = workload::read_submission(file.body);
  if (!read) {
    for (auto error : read.error()) {
      if (std::find(renamed.begin(), renamed.end(), error.path) != renamed.end())
        error.path.replace(error.path.size() - std::string_view(kLong).size(), std::string::npos, kShort);
      file.mistakes.push_back(std::move(error));
    }
  } else {
    file.name = workload::requests_in(*read).front().task.name;
  }
  return file;
}

}  // namespace drover::cli
