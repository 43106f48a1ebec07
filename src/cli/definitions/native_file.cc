#include "cli/definitions/native_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/whereabouts.h"
#include "placement/rules_json.h"
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

/// Mistakes at what was renamed are told at the word that the file has.
void tell_by_short_word(const std::vector<std::string>& renamed, std::vector<Error> found,
                        std::vector<Error>& mistakes) {
  for (auto& error : found) {
    if (std::ranges::find(renamed, error.path) != renamed.end())
      error.path.replace(error.path.size() - std::string_view(kLong).size(), std::string::npos, kShort);
    mistakes.push_back(std::move(error));
  }
}

/// What says of a rule which one it is.
std::string name_field(const json& body) {
  for (const auto* field : {"queue", "user"})
    if (body.contains(field)) return fmt::format("/{}", field);
  return "/namespace";
}

/// A queue, or a quota. `check` is of the rule alone.
template <typename T>
NativeFile read_rule_file(const json& value, placement::Read<T> (*read)(const json&),
                          Status (*check)(const T&), std::string (*name_of)(const T&)) {
  NativeFile file{value, "", {}};
  std::vector<std::string> renamed;
  for (const auto* amounts : {"limit", "guarantee"})
    if (file.body.contains(amounts))
      use_long_word(file.body[amounts], fmt::format("/{}", amounts), renamed, file.mistakes);
  const auto rule = read(file.body);
  if (!rule) {
    tell_by_short_word(renamed, rule.error(), file.mistakes);
    return file;
  }
  if (const auto sound = check(*rule); !sound) {
    auto error = sound.error();
    error.path = placement::rule_path(error.path).field;
    if (error.path.empty()) error.path = name_field(file.body);
    tell_by_short_word(renamed, {std::move(error)}, file.mistakes);
  }
  file.body = placement::encode(*rule);
  file.name = name_of(*rule);
  return file;
}

}  // namespace

NativeFile read_task_file(const json& value, const std::string& folder) {
  NativeFile file{value, "", {}};
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
  if (read)
    file.name = workload::requests_in(*read).front().task.name;
  else
    tell_by_short_word(renamed, read.error(), file.mistakes);
  return file;
}

NativeFile read_queue_file(const json& value) {
  return read_rule_file<placement::Queue>(
      value, placement::read_queue,
      [](const placement::Queue& queue) { return placement::validate({.queues = {{queue.path, queue}}}); },
      [](const placement::Queue& queue) { return queue.path; });
}

NativeFile read_quota_file(const json& value) {
  return read_rule_file<placement::Quota>(
      value, placement::read_quota,
      [](const placement::Quota& quota) { return placement::validate({.quotas = {{quota.subject, quota}}}); },
      [](const placement::Quota& quota) { return placement::to_string(quota.subject); });
}

}  // namespace drover::cli
