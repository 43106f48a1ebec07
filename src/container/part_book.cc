#include "container/part_book.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/decode.h"
#include "base/json_text.h"
#include "container/task_folder.h"
#include "image/proofs.h"

namespace drover::container {
namespace {

using nlohmann::json;

constexpr mode_t kPartsMode = 0600;
constexpr std::int64_t kMostNumber = 1 << 20;

struct KeptPart {
  gpu::MigPart part;
  std::string uuid;  ///< "" before it was made
};

Status keep(const Directory& folder, const std::vector<KeptPart>& kept) {
  auto list = json::array();
  for (const auto& [part, uuid] : kept)
    list.push_back({{"gpu", part.gpu},
                    {"profile_id", part.profile_id},
                    {"start", part.placement.start},
                    {"size", part.placement.size},
                    {"uuid", uuid}});
  DROVER_TRY(const auto boot, image::boot_id());
  return folder.write(kPartsFile, to_text(json{{"boot", boot}, {"parts", std::move(list)}}), kPartsMode);
}

/// None without the file, and none of one from before the machine was started anew: instances do not outlive
/// that, and what is in their places is somebody else's.
Result<std::vector<KeptPart>> read_kept(const Directory& folder) {
  const auto text = folder.read(kPartsFile);
  if (!text && text.error().kind == ErrorKind::kNotFound) return std::vector<KeptPart>{};
  if (!text) return Failure(text.error());
  const auto where = fmt::format("'{}/{}'", folder.path(), kPartsFile);
  const auto corrupt = [&](const std::string& why) {
    return fail(ErrorKind::kCorrupt,
                fmt::format("{} does not say which MIG instances it is of: {}", where, why),
                "destroy those instances by hand (nvidia-smi mig -dci, -dgi), and remove the file");
  };
  const auto value = parse_json(*text, where);
  if (!value) return corrupt(value.error().message);
  std::vector<Error> mistakes;
  Decoder decoder(*value, mistakes);
  std::vector<KeptPart> kept;
  for (auto& one : decoder.objects("parts")) {
    const auto number = [&](const char* name) {
      return static_cast<unsigned>(one.integer(name, 0, kMostNumber).value_or(0));
    };
    KeptPart part;
    part.part = {one.string("gpu").value_or(""), number("profile_id"), {number("start"), number("size")}};
    part.uuid = one.string("uuid").value_or("");
    one.finish();
    kept.push_back(std::move(part));
  }
  const auto boot = decoder.string("boot").value_or("");
  decoder.finish();
  if (!mistakes.empty()) return corrupt(mistakes.front().message);
  DROVER_TRY(const auto now, image::boot_id());
  return boot == now ? kept : std::vector<KeptPart>{};
}

}  // namespace

Result<std::unique_ptr<PartBook>> PartBook::open(const std::string& state, std::unique_ptr<PartMaker> maker) {
  std::unique_ptr<PartBook> book(new PartBook(std::move(maker)));
  const auto tasks = Directory::open(state + "/" + kTasksFolder);
  if (!tasks && tasks.error().kind == ErrorKind::kNotFound) return book;
  if (!tasks) return Failure(tasks.error());
  DROVER_TRY(const auto names, tasks->list());
  for (const auto& name : names) {
    if (!check_task_id(name)) continue;
    const auto folder = tasks->subdirectory(name);
    if (!folder) continue;  // no task's: whoever looks for tasks says so
    DROVER_TRY(const auto kept, read_kept(*folder));
    for (const auto& [part, uuid] : kept) book->owners_.emplace(part, name);
  }
  return book;
}

Status PartBook::claim(const std::string& task_id, const std::vector<gpu::MigPart>& parts) {
  const std::lock_guard lock(mutex_);
  for (const auto& part : parts)
    for (const auto& [other, owner] : owners_)
      if (other.gpu == part.gpu && other.placement.overlaps(part.placement))
        return fail(ErrorKind::kConflict,
                    fmt::format("The MIG instance of task '{}' on GPU {} is not gone yet", owner, part.gpu),
                    "start it again");
  for (const auto& part : parts) owners_.emplace(part, task_id);
  return {};
}

Result<std::vector<MadePart>> PartBook::make(const Directory& folder, const std::string& task_id,
                                             const std::vector<gpu::MigPart>& parts) {
  DROVER_CHECK_OK(release(folder, task_id));
  for (const auto& part : parts) {
    DROVER_TRY(const bool there, maker_->exists(part));
    if (there)
      return fail(ErrorKind::kConflict,
                  fmt::format("GPU {} has a MIG instance that is none of Drover's where the task's was to be",
                              part.gpu),
                  "start it again: it gets another place, if there is one");
  }
  DROVER_CHECK_OK(claim(task_id, parts));
  std::vector<KeptPart> kept;
  for (const auto& part : parts) kept.push_back({part, ""});
  DROVER_CHECK_OK(keep(folder, kept));
  std::vector<MadePart> made;
  for (auto& [part, uuid] : kept) {
    DROVER_TRY(auto one, maker_->make(part));
    uuid = one.uuid;
    made.push_back(std::move(one));
  }
  DROVER_CHECK_OK(keep(folder, kept));
  return made;
}

/// Also of parts that were claimed, and never came into the file.
Status PartBook::release(const Directory& folder, const std::string& task_id) {
  DROVER_TRY(const auto kept, read_kept(folder));
  for (const auto& [part, uuid] : kept) DROVER_CHECK_OK(maker_->destroy(part));
  DROVER_CHECK_OK(folder.remove_tree(kPartsFile));
  const std::lock_guard lock(mutex_);
  std::erase_if(owners_, [&](const auto& owned) { return owned.second == task_id; });
  return {};
}

std::vector<std::string> PartBook::uuids(const Directory& folder) {
  std::vector<std::string> uuids;
  for (auto& [part, uuid] : read_kept(folder).value_or(std::vector<KeptPart>{})) {
    if (uuid.empty()) return {};
    uuids.push_back(uuid);
  }
  return uuids;
}

std::set<gpu::MigPart> PartBook::parts() const {
  const std::lock_guard lock(mutex_);
  std::set<gpu::MigPart> all;
  for (const auto& [part, owner] : owners_) all.insert(part);
  return all;
}

}  // namespace drover::container
