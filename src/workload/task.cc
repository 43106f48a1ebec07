#include "workload/task.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/decode.h"
#include "base/json_writer.h"
#include "base/units.h"
#include "workload/attachment_fields.h"
#include "workload/resource_fields.h"
#include "workload/stored.h"
#include "workload/submission.h"
#include "workload/task_writer.h"

namespace drover::workload {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxName = 128;
constexpr std::size_t kMaxImage = 4096;
constexpr std::size_t kMaxUser = 64;
constexpr std::size_t kMaxWords = 4096;
constexpr std::size_t kMostMistakes = 100;
constexpr std::size_t kMaxLevels = 8;
constexpr std::array<std::string_view, 2> kDriverSources = {"host", "none"};
constexpr std::int64_t kMaxId = 0xffffffffLL;
/// Of the same number: ContainerType. The last is another word for "mesos".
constexpr std::array<std::string_view, 4> kContainerTypes = {"any", "mesos", "docker", "oci"};

bool is_environment_name(const std::string& name) {
  return !name.empty() && name.find('=') == std::string::npos && name.find('\0') == std::string::npos;
}

bool is_printable(const std::string& text) {
  return std::none_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

bool has_nul(const std::string& text) {
  return text.find('\0') != std::string::npos;
}

void check_strings(Decoder& decoder, const Task& task) {
  if (task.name.size() > kMaxName || !is_printable(task.name))
    decoder.mistake("name", fmt::format("a name has at most {} printable characters", kMaxName));
  if (task.command.size() > kMaxWords)
    decoder.mistake("command", fmt::format("a command has at most {} words", kMaxWords));
  if (std::any_of(task.command.begin(), task.command.end(), has_nul))
    decoder.mistake("command", "a word of the command contains a zero byte");
  if (!task.command.empty() && task.command->front().empty())
    decoder.mistake("command", "the first word, the program, is empty");
  if (task.command.empty() && !task.image)
    decoder.mistake("command", "there is nothing to run: neither a command nor an image",
                    "write the command after '--'");
  for (const auto& [name, value] : task.environment)
    if (!is_environment_name(name) || has_nul(value))
      decoder.mistake("env", fmt::format("'{}' is not a name for an environment variable", name));
  if (task.image && (task.image->empty() || task.image->size() > kMaxImage || !is_printable(*task.image)))
    decoder.mistake("image", fmt::format("an image reference has 1 to {} printable characters", kMaxImage));
  if (task.resources.share_by == ShareBy::kLimits && task.image && task.driver == DriverSource::kNone)
    decoder.mistake("share_by", "the guard goes before the driver, and this container gets none",
                    "leave driver out");
  if (task.driver == DriverSource::kNone && !task.image)
    decoder.mistake("driver", "a task without an image uses the machine's own driver",
                    "name an image that carries one");
  if (!task.working_directory.empty() &&
      (task.working_directory.front() != '/' || has_nul(task.working_directory)))
    decoder.mistake("working_directory", fmt::format("'{}' is not an absolute path", task.working_directory));
}

std::string default_name(const Task& task) {
  if (!task.command.empty()) {
    const auto& program = task.command->front();
    const auto slash = program.rfind('/');
    return (slash == std::string::npos ? program : program.substr(slash + 1)).substr(0, kMaxName);
  }
  return task.image.value_or("task").substr(0, kMaxName);
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

GangMembership decode_membership(Decoder& decoder) {
  GangMembership gang;
  gang.id = decoder.string("id").value_or("");
  gang.rank = static_cast<int>(decoder.integer("rank", 0, kMaxGang).value_or(0));
  gang.size = static_cast<int>(decoder.integer("size", 1, kMaxGang).value_or(1));
  if (const auto chosen = decoder.choice("arrangement", kArrangements))
    gang.arrangement = static_cast<Arrangement>(*chosen);
  return gang;
}

Limits decode_limits(Decoder& decoder) {
  constexpr std::int64_t kMost = 1LL << 53;  // as long as JSON tells one from the next
  Limits limits;
  if (const auto cpus = decoder.number("cpus", 0, kMost / 1e3))
    limits.milli_cpus = std::llround(*cpus * 1000);
  if (const auto bytes = decoder.integer("memory", 0, kMost))
    limits.memory_bytes = static_cast<std::uint64_t>(*bytes);
  return limits;
}

/// "tty": true, or its size.
std::optional<Terminal> decode_terminal(Decoder& decoder) {
  const auto* given = decoder.value("tty");
  if (given == nullptr) return std::nullopt;
  if (given->is_boolean()) return given->get<bool>() ? std::optional<Terminal>(Terminal{}) : std::nullopt;
  auto fields = decoder.object("tty");
  if (!fields) return std::nullopt;
  Terminal terminal;
  terminal.rows = static_cast<int>(fields->integer("rows", 1, kMaxTerminalSide).value_or(terminal.rows));
  terminal.columns =
      static_cast<int>(fields->integer("columns", 1, kMaxTerminalSide).value_or(terminal.columns));
  fields->finish();
  return terminal;
}

/// The fields that a request and a stored task share.
void decode_common(Decoder& decoder, Task& task) {
  task.name = decoder.string("name").value_or("");
  task.command = decoder.string_list("command").value_or(std::vector<std::string>{});
  task.image = decoder.string("image");
  if (const auto policy = decoder.choice("pull", kPullPolicyNames))
    task.pull = static_cast<PullPolicy>(*policy);
  task.environment = decoder.string_map("env").value_or(std::map<std::string, std::string>{});
  task.working_directory = decoder.string("working_directory").value_or("");
  task.read_only = decoder.boolean("read_only").value_or(false);
  task.terminal = decode_terminal(decoder);
  task.takes_input = decoder.boolean("stdin").value_or(false) || task.terminal;
  if (const auto type = decoder.choice("container_type", kContainerTypes))
    task.container_type = *type == 3 ? ContainerType::kMesos : static_cast<ContainerType>(*type);
  task.privileged = decoder.boolean("privileged").value_or(false);
  if (const auto chosen = decoder.choice("driver", kDriverSources))
    task.driver = static_cast<DriverSource>(*chosen);
  if (const auto processes = decoder.integer("pids", 1, kMaxProcesses))
    task.processes = static_cast<int>(*processes);
  task.labels = decoder.string_map("labels").value_or(std::map<std::string, std::string>{});
  task.queue = decoder.string("queue").value_or(kDefaultQueue);
  task.name_space = decoder.string("namespace").value_or("");
  task.priority = static_cast<int>(decoder.integer("priority", kMinPriority, kMaxPriority).value_or(0));
}

template <typename Part>
void decode_stored(Decoder& decoder, const char* name, Part& part) {
  const auto* given = decoder.value(name);
  if (given == nullptr) return;
  if (auto value = from_stored<Part>(*given, name))
    part = std::move(*value);
  else
    decoder.mistake(name, value.error().message);
}

void decode_stored_files(Decoder& decoder, Task& task) {
  std::vector<Fetch> fetch;
  std::vector<Volume> volumes;
  decode_stored(decoder, "fetch", fetch);
  decode_stored(decoder, "volumes", volumes);
  task.fetch = std::move(fetch);
  task.volumes = std::move(volumes);
}

void decode_request(Decoder& decoder, TaskRequest& request, const std::vector<Error>& mistakes) {
  auto& task = request.task;
  decode_common(decoder, task);
  decode_resources(decoder, task.resources);
  request.says_cpus = decoder.value("cpus") != nullptr;
  request.says_memory = decoder.value("memory") != nullptr;
  decode_attachments(decoder, task);
  request.user = decoder.string("user");
  if (request.user &&
      (request.user->empty() || request.user->size() > kMaxUser || !is_printable(*request.user)))
    decoder.mistake("user", fmt::format("a user is a name of 1 to {} characters, or a number", kMaxUser));
  task.timeout = decoder.duration("timeout");
  if (task.timeout && task.timeout->count() == 0)
    decoder.mistake("timeout", "a timeout is longer than nothing");
  task.pull_timeout = decoder.duration("pull_timeout");
  if (task.pull_timeout && task.pull_timeout->count() == 0)
    decoder.mistake("pull_timeout", "a timeout is longer than nothing");
  task.grace = decoder.duration("grace").value_or(task.grace);
  decode_batch(decoder, task.batch, request.begin_in);
  if (task.batch.idle_timeout && task.resources.gpu_count() == 0)
    decoder.mistake("idle_timeout", "a task without GPUs has none that could be idle");
  if (!is_queue_path(task.queue))
    decoder.mistake("queue", fmt::format("'{}' is not the path of a queue", task.queue),
                    "write for example \"research/vision\"");
  if (const auto* given = decoder.value("namespace");
      given != nullptr && given->is_string() && !is_plain_name(task.name_space))
    decoder.mistake("namespace", "a namespace has 1 to 64 letters, digits, dots, dashes and underscores");
  if (mistakes.empty()) check_strings(decoder, task);
  decoder.finish();
  if (task.name.empty()) task.name = default_name(task);
}

/// What is wrong with one member, with paths into `member` for what it says itself and into the body for what
/// it has from there.
std::vector<Error> decode_member(const json& common, const json& member, std::size_t rank,
                                 TaskRequest& request) {
  std::vector<Error> mistakes;
  const auto path = fmt::format("/gang/members/{}", rank);
  json whole = common;
  whole.update(member);
  Decoder decoder(whole, mistakes, path);
  decode_request(decoder, request, mistakes);
  for (auto& mistake : mistakes) {
    const auto field = mistake.path.substr(std::min(path.size() + 1, mistake.path.size()));
    if (!member.contains(field.substr(0, field.find('/')))) mistake.path = "/" + field;
  }
  return mistakes;
}

/// Whether so many bytes of definitions are too many. Said before they are copied for each member.
bool too_large(Decoder& gang, const std::string& field, std::uint64_t bytes) {
  if (bytes <= kMaxGangBytes) return false;
  gang.mistake(field,
               fmt::format("the definitions of all together would have {} bytes, and {} are allowed", bytes,
                           kMaxGangBytes),
               "bring what is large as a file");
  return true;
}

void decode_members(Decoder& gang, const json& body, GangRequest& request, std::vector<Error>& mistakes) {
  const auto* members = gang.value("members");
  if (!members->is_array() || members->empty() || members->size() > kMaxGang) {
    gang.mistake("members", fmt::format("a list of 1 to {} members is expected", kMaxGang));
    return;
  }
  json common = body;
  common.erase("gang");
  std::uint64_t bytes = 0;
  DefinitionSizes sizes;
  for (std::size_t rank = 0; rank < members->size(); ++rank) {
    const auto& member = (*members)[rank];
    if (mistakes.size() >= kMostMistakes) return;  // nobody reads more
    std::vector<Error> found;
    if (member.is_object())
      found = decode_member(common, member, rank, request.members.emplace_back());
    else
      found = {{ErrorKind::kInvalid, fmt::format("expected an object, found {}", member.type_name()), "",
                fmt::format("/gang/members/{}", rank)}};
    if (found.empty()) {
      auto& task = request.members.back().task;
      share_equal_parts(task, request.members.front().task);
      bytes += sizes.of(task);
    }
    if (too_large(gang, "members", bytes)) return;
    for (auto& mistake : found)  // what all members have in common is said once
      if (std::find(mistakes.begin(), mistakes.end(), mistake) == mistakes.end())
        mistakes.push_back(std::move(mistake));
  }
}

tl::expected<GangRequest, std::vector<Error>> read_gang(const json& body) {
  std::vector<Error> mistakes;
  GangRequest request;
  Decoder outer(body, mistakes);
  auto gang = *outer.object("gang");
  if (const auto chosen = gang.choice("arrangement", kArrangements))
    request.arrangement = static_cast<Arrangement>(*chosen);
  const auto size = gang.integer("size", 1, kMaxGang);
  if (gang.value("members") != nullptr) {
    if (gang.value("size") != nullptr)
      gang.mistake("size", "the members are listed, so it follows from them", "leave it out");
    decode_members(gang, body, request, mistakes);
  } else {
    if (gang.value("size") == nullptr && body["gang"].is_object())
      gang.mistake("size", "a gang needs a size, or a list of its members");
    json common = body;
    common.erase("gang");
    std::vector<Error> found;
    Decoder decoder(common, found);
    TaskRequest member;
    decode_request(decoder, member, found);
    mistakes.insert(mistakes.end(), found.begin(), found.end());
    const auto copies = static_cast<std::size_t>(size.value_or(1));
    if (!too_large(gang, "size", copies * definition_bytes(member.task)))
      request.members.assign(copies, member);
  }
  gang.finish();
  const auto is_interactive = [](const TaskRequest& member) {
    return member.task.takes_input || member.task.terminal;
  };
  if (std::any_of(request.members.begin(), request.members.end(), is_interactive))
    outer.mistake("gang", "nobody types into several tasks at once",
                  "ask for input and a terminal, or for a gang");
  if (!mistakes.empty()) return tl::unexpected(std::move(mistakes));
  return request;
}

tl::expected<ArrayRequest, std::vector<Error>> read_array(const json& body) {
  std::vector<Error> mistakes;
  ArrayRequest request;
  Decoder outer(body, mistakes);
  if (const auto text = outer.string("array")) {
    if (auto array = parse_array(*text))
      request.array = std::move(*array);
    else
      outer.mistake("array", array.error().message, array.error().hint);
  }
  json common = body;
  common.erase("array");
  Decoder decoder(common, mistakes);
  decode_request(decoder, request.task, mistakes);
  if (request.task.task.takes_input)
    outer.mistake("array", "nobody types into several tasks at once",
                  "ask for input and a terminal, or for an array");
  too_large(outer, "array", request.array.indices.size() * definition_bytes(request.task.task));
  if (!mistakes.empty()) return tl::unexpected(std::move(mistakes));
  return request;
}

tl::expected<TaskRequest, std::vector<Error>> read_task(const json& body) {
  std::vector<Error> mistakes;
  Decoder decoder(body, mistakes);
  TaskRequest request;
  decode_request(decoder, request, mistakes);
  if (!mistakes.empty()) return tl::unexpected(std::move(mistakes));
  return request;
}

bool has(const json& body, const char* field) {
  return body.is_object() && body.contains(field) && !body[field].is_null();
}

}  // namespace

bool is_queue_name(std::string_view text) {
  return is_plain_name(text) && text != "." && text != "..";
}

bool is_queue_path(std::string_view text) {
  std::size_t levels = 0;
  for (std::size_t begin = 0; begin <= text.size();) {
    const auto end = std::min(text.find('/', begin), text.size());
    if (!is_queue_name(text.substr(begin, end - begin)) || ++levels > kMaxLevels) return false;
    begin = end + 1;
  }
  return true;
}

Result<TaskRequest> decode_task_request(const json& body) {
  auto request = read_task(body);
  if (!request) return Failure(join_mistakes(request.error(), "The task"));
  return std::move(*request);
}

tl::expected<Submission, std::vector<Error>> read_submission(const json& body) {
  if (has(body, "gang") && has(body, "array"))
    return tl::unexpected(
        std::vector<Error>{{ErrorKind::kInvalid, "an array of gangs cannot be submitted at once",
                            "submit a gang for each number", "/array"}});
  if (has(body, "gang"))
    return read_gang(body).map([](GangRequest gang) { return Submission(std::move(gang)); });
  if (has(body, "array"))
    return read_array(body).map([](ArrayRequest array) { return Submission(std::move(array)); });
  return read_task(body).map([](TaskRequest task) { return Submission(std::move(task)); });
}

Result<Submission> decode_submission(const json& body) {
  auto submission = read_submission(body);
  const auto* what = has(body, "gang") ? "The gang" : has(body, "array") ? "The array" : "The task";
  if (!submission) return Failure(join_mistakes(submission.error(), what));
  return std::move(*submission);
}

json encode(const Task& task) {
  std::string text;
  JsonWriter writer(text);
  write(writer, task);
  return json::parse(text);
}

void take_template(Task& task, const Task& from) {
  each_template_part([](auto& part, const auto& its) { part = its; }, task, from);
}

void share_equal_parts(Task& task, const Task& with) {
  each_template_part(
      [](auto& part, const auto& other) {
        if (part == other) part = other;
      },
      task, with);
}

bool shares_template(const Task& one, const Task& other) {
  bool shares = true;
  each_template_part([&](const auto& part, const auto& its) { shares = shares && part.is_one_with(its); },
                     one, other);
  return shares;
}

Result<Task> decode_template(const json& value) {
  std::vector<Error> mistakes;
  Decoder decoder(value, mistakes);
  Task task;
  decode_common(decoder, task);
  decode_stored_files(decoder, task);
  if (!mistakes.empty()) return Failure(join_mistakes(mistakes, "A stored template"));
  return task;
}

Result<Task> decode_task(const json& value) {
  std::vector<Error> mistakes;
  Decoder decoder(value, mistakes);
  Task task;
  decode_common(decoder, task);
  decode_stored_resources(decoder, task.resources);
  if (auto gang = decoder.object("gang")) task.gang = decode_membership(*gang);
  task.batch = decode_stored_batch(decoder);
  task.id = decoder.string("id").value_or("");
  task.owner = static_cast<uid_t>(decoder.integer("owner", 0, kMaxId).value_or(0));
  task.bypass_entrypoint = decoder.boolean("bypass_entrypoint").value_or(false);
  constexpr std::int64_t kLongest = 1LL << 53;
  task.grace = std::chrono::milliseconds(decoder.integer("grace_ms", 0, kLongest).value_or(0));
  if (const auto timeout = decoder.integer("timeout_ms", 0, kLongest))
    task.timeout = std::chrono::milliseconds(*timeout);
  if (const auto timeout = decoder.integer("pull_timeout_ms", 0, kLongest))
    task.pull_timeout = std::chrono::milliseconds(*timeout);
  if (auto user = decoder.object("user"))
    task.user = decode_user(*user, value["user"]);
  else
    decoder.mistake("user", "missing");
  // Older daemons did not keep the name.
  task.owner_name = decoder.string("owner_name")
                        .value_or(task.user.uid == task.owner ? task.user.name : std::to_string(task.owner));
  decode_stored_files(decoder, task);
  if (auto limits = decoder.object("limits")) task.limits = decode_limits(*limits);
  task.devices = decoder.string_list("devices").value_or(task.devices);
  decode_stored(decoder, "network", task.network);
  decode_stored(decoder, "origin", task.origin);
  if (!mistakes.empty()) return Failure(join_mistakes(mistakes, "A stored task"));
  return task;
}

}  // namespace drover::workload
