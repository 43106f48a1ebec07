#include "workload/task.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/decode.h"
#include "base/units.h"

namespace drover::workload {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxName = 128;
constexpr std::size_t kMaxWords = 4096;
constexpr int kMaxGpus = 1024;
constexpr std::int64_t kMaxMilliCpus = 1'000'000;
constexpr std::uint64_t kMinMemory = 4ULL << 20;
constexpr std::int64_t kMaxId = 0xffffffffLL;

bool is_environment_name(const std::string& name) {
  return !name.empty() && name.find('=') == std::string::npos && name.find('\0') == std::string::npos;
}

bool is_printable(const std::string& text) {
  return std::none_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

bool has_nul(const std::string& text) {
  return text.find('\0') != std::string::npos;
}

int decode_gpus(Decoder& decoder) {
  const auto gpus = decoder.number("gpus", 0, kMaxGpus).value_or(0);
  if (gpus == static_cast<int>(gpus)) return static_cast<int>(gpus);
  decoder.mistake("gpus", fmt::format("a part of a GPU ({}) cannot be given: GPUs are given whole", gpus),
                  "ask for a whole number of GPUs; sharing one GPU is not available yet");
  return 0;
}

/// A size as a number of bytes or as text: "16GiB".
std::optional<std::uint64_t> decode_memory(Decoder& decoder, const json& body) {
  const auto field = body.is_object() ? body.find("memory") : body.end();
  if (body.is_object() && field != body.end() && field->is_number()) {
    const auto bytes = decoder.integer("memory", 0, 1LL << 60);
    return bytes ? std::optional<std::uint64_t>(static_cast<std::uint64_t>(*bytes)) : std::nullopt;
  }
  const auto text = decoder.string("memory");
  if (!text) return std::nullopt;
  const auto bytes = parse_bytes(*text);
  if (bytes) return *bytes;
  decoder.mistake("memory", bytes.error().message, bytes.error().hint);
  return std::nullopt;
}

std::optional<std::chrono::milliseconds> decode_duration(Decoder& decoder, const std::string& name) {
  const auto text = decoder.string(name);
  if (!text) return std::nullopt;
  const auto duration = parse_duration(*text);
  if (duration) return *duration;
  decoder.mistake(name, duration.error().message, duration.error().hint);
  return std::nullopt;
}

void check_strings(Decoder& decoder, const Task& task) {
  if (task.name.size() > kMaxName || !is_printable(task.name))
    decoder.mistake("name", fmt::format("a name has at most {} printable characters", kMaxName));
  if (task.command.size() > kMaxWords)
    decoder.mistake("command", fmt::format("a command has at most {} words", kMaxWords));
  if (std::any_of(task.command.begin(), task.command.end(), has_nul))
    decoder.mistake("command", "a word of the command contains a zero byte");
  if (!task.command.empty() && task.command.front().empty())
    decoder.mistake("command", "the first word, the program, is empty");
  if (task.command.empty() && !task.image)
    decoder.mistake("command", "there is nothing to run: neither a command nor an image",
                    "write the command after '--'");
  for (const auto& [name, value] : task.environment)
    if (!is_environment_name(name) || has_nul(value))
      decoder.mistake("env", fmt::format("'{}' is not a name for an environment variable", name));
  if (task.image && (task.image->empty() || !is_printable(*task.image)))
    decoder.mistake("image", "an image reference is printable and not empty");
  if (!task.working_directory.empty() &&
      (task.working_directory.front() != '/' || has_nul(task.working_directory)))
    decoder.mistake("working_directory", fmt::format("'{}' is not an absolute path", task.working_directory));
}

std::string default_name(const Task& task) {
  if (!task.command.empty()) {
    const auto& program = task.command.front();
    const auto slash = program.rfind('/');
    return (slash == std::string::npos ? program : program.substr(slash + 1)).substr(0, kMaxName);
  }
  return task.image.value_or("task").substr(0, kMaxName);
}

json encode_user(const User& user) {
  return {{"uid", user.uid},
          {"gid", user.gid},
          {"groups", user.groups},
          {"name", user.name},
          {"home", user.home}};
}

User decode_user(Decoder decoder, const json& value) {
  User user;
  user.uid = static_cast<uid_t>(decoder.integer("uid", 0, kMaxId).value_or(0));
  user.gid = static_cast<gid_t>(decoder.integer("gid", 0, kMaxId).value_or(0));
  user.name = decoder.string("name").value_or("");
  user.home = decoder.string("home").value_or("/");
  user.groups = value.value("groups", std::vector<gid_t>{});
  return user;
}

/// The fields that a request and a stored task share.
void decode_common(Decoder& decoder, const json& value, Task& task) {
  task.name = decoder.string("name").value_or("");
  task.command = decoder.string_list("command").value_or(std::vector<std::string>{});
  task.image = decoder.string("image");
  task.environment = decoder.string_map("env").value_or(std::map<std::string, std::string>{});
  task.working_directory = decoder.string("working_directory").value_or("");
  task.read_only = decoder.boolean("read_only").value_or(false);
  task.labels = decoder.string_map("labels").value_or(std::map<std::string, std::string>{});
  if (const int gpus = decode_gpus(decoder); gpus > 0) task.resources.gpus = {{gpus, {}}};
  if (const auto cpus = decoder.number("cpus", 0.001, kMaxMilliCpus / 1e3))
    task.resources.milli_cpus = static_cast<std::int64_t>(*cpus * 1000 + 0.5);
  if (const auto memory = decode_memory(decoder, value)) task.resources.memory_bytes = *memory;
}

}  // namespace

Result<TaskRequest> decode_task_request(const json& body) {
  std::vector<Error> mistakes;
  Decoder decoder(body, mistakes);
  TaskRequest request;
  auto& task = request.task;
  decode_common(decoder, body, task);
  request.user = decoder.string("user");
  task.timeout = decode_duration(decoder, "timeout");
  if (task.timeout && task.timeout->count() == 0)
    decoder.mistake("timeout", "a timeout is longer than nothing");
  task.grace = decode_duration(decoder, "grace").value_or(task.grace);
  if (task.resources.memory_bytes < kMinMemory)
    decoder.mistake(
        "memory",
        fmt::format("{} is too little to start a container", format_bytes(task.resources.memory_bytes)),
        fmt::format("give at least {}", format_bytes(kMinMemory)));
  if (mistakes.empty()) check_strings(decoder, task);
  decoder.finish();
  if (!mistakes.empty()) return Failure(join_mistakes(mistakes, "The task"));
  if (task.name.empty()) task.name = default_name(task);
  return request;
}

json encode(const Task& task) {
  json value = {{"id", task.id},
                {"name", task.name},
                {"command", task.command},
                {"env", task.environment},
                {"working_directory", task.working_directory},
                {"user", encode_user(task.user)},
                {"owner", task.owner},
                {"owner_name", task.owner_name},
                {"read_only", task.read_only},
                {"gpus", task.resources.gpu_count()},
                {"cpus", static_cast<double>(task.resources.milli_cpus) / 1000},
                {"memory", task.resources.memory_bytes},
                {"grace_ms", task.grace.count()},
                {"labels", task.labels}};
  if (task.image) value["image"] = *task.image;
  if (task.timeout) value["timeout_ms"] = task.timeout->count();
  return value;
}

Result<Task> decode_task(const json& value) {
  std::vector<Error> mistakes;
  Decoder decoder(value, mistakes);
  Task task;
  decode_common(decoder, value, task);
  task.id = decoder.string("id").value_or("");
  task.owner = static_cast<uid_t>(decoder.integer("owner", 0, kMaxId).value_or(0));
  constexpr std::int64_t kLongest = 1LL << 53;
  task.grace = std::chrono::milliseconds(decoder.integer("grace_ms", 0, kLongest).value_or(0));
  if (const auto timeout = decoder.integer("timeout_ms", 0, kLongest))
    task.timeout = std::chrono::milliseconds(*timeout);
  if (auto user = decoder.object("user"))
    task.user = decode_user(*user, value["user"]);
  else
    decoder.mistake("user", "missing");
  // Older daemons did not keep the name.
  task.owner_name = decoder.string("owner_name")
                        .value_or(task.user.uid == task.owner ? task.user.name : std::to_string(task.owner));
  if (!mistakes.empty()) return Failure(join_mistakes(mistakes, "A stored task"));
  return task;
}

}  // namespace drover::workload
