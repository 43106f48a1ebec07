// Who may have how much: queues and quotas.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/units.h"
#include "cli/commands/commands.h"
#include "cli/commands/on_cluster.h"
#include "cli/printable.h"
#include "cli/services/rules.h"
#include "cli/sharing_notes.h"
#include "cli/table.h"
#include "cli/words.h"

namespace drover::cli {
namespace {

using nlohmann::json;

/// Empty: not given, so left as it is.
struct QueueOptions {
  std::string path, gpus_limit, cpus_limit, memory_limit, gpus_guarantee, cpus_guarantee, memory_guarantee;
  std::string weight, users, timeout, idle_timeout;
};
struct QuotaOptions {
  std::string subject, gpus, cpus, memory, max_priority;
};

/// Takes a limit away.
constexpr const char* kNone = "none";

Result<json> parse_number(const std::string& text, const std::string& flag) {
  if (text == kNone) return json();
  double value = 0;
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value, std::chars_format::fixed);
  if (error != std::errc() || end != last || !std::isfinite(value))
    return fail(ErrorKind::kInvalid, fmt::format("{}: '{}' is not a number", flag, text),
                fmt::format("write for example {} 4, or {} none", flag, flag));
  return json(value);
}

Result<json> parse_whole(const std::string& text, const std::string& flag) {
  if (text == kNone) return json();
  std::int64_t value = 0;
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  if (error != std::errc() || end != last)
    return fail(ErrorKind::kInvalid, fmt::format("{}: '{}' is not a whole number", flag, text),
                fmt::format("write for example {} 4", flag));
  return json(value);
}

Status set_amounts(json& limits, const std::array<std::pair<const char*, const std::string*>, 3>& given,
                   const std::string& suffix) {
  for (const auto& [field, text] : given) {
    if (text->empty()) continue;
    const std::string name = field;
    if (name == "memory") {
      if (*text == kNone) {
        limits[name] = nullptr;
        continue;
      }
      const auto bytes = parse_bytes(*text);
      if (!bytes) return Failure(context(bytes.error(), "--mem" + suffix));
      limits[name] = *bytes;
    } else {
      DROVER_TRY(limits[name], parse_number(*text, "--" + name + suffix));
    }
  }
  return {};
}

Result<json> parse_limit_of_time(const std::string& text, const std::string& flag) {
  if (text == kNone) return json();
  if (const auto time = parse_duration(text); !time) return Failure(context(time.error(), flag));
  return json(text);
}

/// "alice,bob"; "all" is the empty list.
json parse_users(const std::string& text) {
  json users = json::array();
  for (std::size_t begin = 0; text != "all" && begin <= text.size();) {
    const auto end = std::min(text.find(',', begin), text.size());
    users.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return users;
}

std::string queue_target(const std::string& path) {
  return "/v1/queues/" + percent_encode(path);
}
std::string quota_target(const std::string& subject) {
  return "/v1/quotas/" + percent_encode(subject);
}

/// The flag in place of the field's path: "/limit/gpus" → "--gpus-limit" for a queue, "--gpus" for a quota.
Error in_flags_of(Error error, bool of_queue) {
  const auto slash = error.path.rfind('/');
  if (slash == std::string::npos) return error;
  auto field = error.path.substr(slash + 1);
  const auto outer = error.path.substr(0, slash);
  if (field == "gpu_milli") field = "gpus";
  if (field == "milli_cpus") field = "cpus";
  if (field == "memory" || field == "memory_bytes") field = "mem";
  if (field == "max_priority") field = "max-priority";
  if (field == "idle_timeout") field = "idle-timeout";
  if (of_queue && (outer == "/limit" || outer == "/guarantee")) field += "-" + outer.substr(1);
  error.path = "--" + field;
  return error;
}

std::string waited(const json& waiting) {
  const auto submitted = parse_time(waiting.value("submitted_at", ""));
  if (!submitted) return "";
  const auto now = wall_clock();
  return format_duration(std::max(now - *submitted, std::chrono::milliseconds(0)));
}

std::string text_or_dash(const json& value) {
  if (value.is_null()) return "-";
  return value.is_string() ? value.get<std::string>() : value.dump();
}

/// Of all queues, in the order in which they stand, each with the name of its queue.
std::vector<json> waiting_of(const json& queues) {
  std::vector<json> all;
  for (const auto& queue : queues)
    for (auto waiting : queue.value("waiting", json::array())) {
      waiting["queue"] = queue.value("queue", "");
      all.push_back(std::move(waiting));
    }
  std::ranges::sort(all, {}, [](const json& waiting) { return waiting.value("place", 0); });
  return all;
}

std::string render_waiting(const std::vector<json>& all) {
  Table table({"PLACE", "QUEUE", "TASK", "USER", "WANTS", "PRIORITY", "WAITS", "WHY"});
  for (const auto& waiting : all) {
    const int members = waiting.value("members", 1);
    std::string why;
    for (const auto& reason : waiting.value("reasons", json::array()))
      why += (why.empty() ? "" : "; ") + reason.get<std::string>();
    table.add({std::to_string(waiting.value("place", 0)), waiting.value("queue", ""),
               text_or_dash(waiting.value("id", json())) +
                   (members > 1 ? fmt::format(" (gang of {})", members) : ""),
               waiting.value("user", ""), amounts(waiting.value("wanted", json::object()), false),
               text_or_dash(waiting.value("priority", json())), waited(waiting), why});
  }
  return shown(table);
}

struct ListQueuesOptions : TableOptions {
  OnCluster cluster;
};

Result<int> list_queues(Context& context, const ListQueuesOptions& options) {
  DROVER_TRY(const auto listing, options.cluster.asked ? list_queues_of_cluster(context, options.cluster)
                                                       : context.client().get("/v1/queues"));
  if (options.json) {
    print_json(listing);
    return 0;
  }
  Table queues({"QUEUE", "USED", "GUARANTEE", "LIMIT", "WEIGHT", "USERS", "WAITING"});
  const auto all = listing.value("queues", json::array());
  for (const auto& queue : all) {
    const auto users = queue.value("users", std::vector<std::string>());
    queues.add({queue.value("queue", ""), amounts(queue.value("used", json::object()), false),
                amounts(queue.value("guarantee", json::object()), true),
                amounts(queue.value("limit", json::object()), true), std::to_string(queue.value("weight", 1)),
                users.empty() ? "all" : fmt::format("{}", fmt::join(users, ",")),
                std::to_string(queue.value("waiting", json::array()).size())});
  }
  DROVER_TRY(const auto text, shown(queues, options));
  print(text);
  if (const auto waiting = waiting_of(all); !waiting.empty() && options.format.empty())
    print("\n" + render_waiting(waiting));
  return 0;
}

/// The item of a listing in which a field is this; null when there is none.
json item_of(const Client& client, const std::string& what, const char* field, const std::string& value) {
  if (const auto listing = list_rules(client, what))
    for (const auto& item : *listing)
      if (item.value(field, json()) == value) return item;
  return {};
}

/// After a change: what the queue is now, and what of that cannot be.
void tell_of_queue(const Context& context, const Client& client, const std::string& path) {
  const auto queue = item_of(client, "queues", "queue", path);
  if (!queue.is_object()) return;
  print(queue_line(queue) + "\n");
  report_doubts(context, client, {queue}, {});
}

/// The same for "user:ann".
void tell_of_quota(const Context& context, const Client& client, const std::string& subject) {
  const auto colon = subject.find(':');
  const auto kind = subject.substr(0, colon), name = subject.substr(colon + 1);
  const auto quota = item_of(client, "quotas", kind.c_str(), name);
  if (!quota.is_object()) return;
  print(quota_line(quota) + "\n");
  report_doubts(context, client, {}, {quota});
}

Result<int> set_queue(Context& context, const QueueOptions& options) {
  json body = json::object();
  json limit = json::object();
  json guarantee = json::object();
  DROVER_CHECK_OK(set_amounts(
      limit,
      {{{"gpus", &options.gpus_limit}, {"cpus", &options.cpus_limit}, {"memory", &options.memory_limit}}},
      "-limit"));
  DROVER_CHECK_OK(set_amounts(guarantee,
                              {{{"gpus", &options.gpus_guarantee},
                                {"cpus", &options.cpus_guarantee},
                                {"memory", &options.memory_guarantee}}},
                              "-guarantee"));
  if (!limit.empty()) body["limit"] = limit;
  if (!guarantee.empty()) body["guarantee"] = guarantee;
  if (!options.weight.empty()) {
    DROVER_TRY(body["weight"], parse_whole(options.weight, "--weight"));
  }
  for (const auto& [field, flag, text] :
       {std::tuple("timeout", "--timeout", &options.timeout),
        std::tuple("idle_timeout", "--idle-timeout", &options.idle_timeout)})
    if (!text->empty()) {
      DROVER_TRY(body[field], parse_limit_of_time(*text, flag));
    }
  if (!options.users.empty()) body["users"] = parse_users(options.users);
  const auto client = context.client();
  const auto answer = client.patch(queue_target(options.path), body);
  if (!answer) return Failure(in_flags_of(answer.error(), true));
  tell_of_queue(context, client, options.path);
  return 0;
}

/// Of all queues, or quotas, the one that is called so, as JSON.
Result<int> print_one(Context& context, const std::string& noun, const std::string& name,
                      const std::function<std::string(const json&)>& name_of) {
  DROVER_TRY(const auto listing, context.client().get("/v1/" + noun + "s"));
  for (const auto& each : listing.value(noun + "s", json::array()))
    if (name_of(each) == name) {
      print_json(each);
      return 0;
    }
  return fail(ErrorKind::kNotFound, fmt::format("There is no {} '{}'", noun, name),
              fmt::format("'drover {}' lists those that you may see", noun));
}

Result<int> inspect_queue(Context& context, const QueueOptions& options) {
  return print_one(context, "queue", options.path,
                   [](const json& queue) { return queue.value("queue", ""); });
}

Result<int> remove_queue(Context& context, const QueueOptions& options) {
  DROVER_CHECK_OK(context.client().remove(queue_target(options.path)));
  print(fmt::format("{}: removed\n", printable(options.path)));
  return 0;
}

/// "user:alice", "namespace:vision"
std::string whose(const json& quota) {
  return quota.contains("user") ? "user:" + quota.value("user", "")
                                : "namespace:" + quota.value("namespace", "");
}

Result<int> list_quotas(Context& context, const TableOptions& options) {
  DROVER_TRY(const auto listing, context.client().get("/v1/quotas"));
  if (options.json) {
    print_json(listing);
    return 0;
  }
  Table table({"WHOSE", "USED", "LIMIT", "HIGHEST PRIORITY"});
  for (const auto& quota : listing.value("quotas", json::array())) {
    const bool user = quota.contains("user");
    table.add({whose(quota), amounts(quota.value("used", json::object()), false),
               amounts(quota.value("limit", json::object()), true),
               user ? std::to_string(quota.value("max_priority", 0)) : "-"});
  }
  DROVER_TRY(const auto text, shown(table, options));
  print(text);
  return 0;
}

Result<int> set_quota(Context& context, const QuotaOptions& options) {
  json body = json::object();
  json limit = json::object();
  DROVER_CHECK_OK(set_amounts(
      limit, {{{"gpus", &options.gpus}, {"cpus", &options.cpus}, {"memory", &options.memory}}}, ""));
  if (!limit.empty()) body["limit"] = limit;
  if (!options.max_priority.empty()) {
    DROVER_TRY(body["max_priority"], parse_whole(options.max_priority, "--max-priority"));
  }
  const auto client = context.client();
  const auto answer = client.patch(quota_target(options.subject), body);
  if (!answer) return Failure(in_flags_of(answer.error(), false));
  tell_of_quota(context, client, options.subject);
  return 0;
}

Result<int> inspect_quota(Context& context, const QuotaOptions& options) {
  return print_one(context, "quota", options.subject, whose);
}

Result<int> remove_quota(Context& context, const QuotaOptions& options) {
  DROVER_CHECK_OK(context.client().remove(quota_target(options.subject)));
  print(fmt::format("{}: removed\n", printable(options.subject)));
  return 0;
}

/// A command that lists when it is called alone, and has others below it.
template <typename Options>
CLI::App* add_group(CLI::App& app, Context& context, const std::string& name, const std::string& help,
                    Result<int> (*body)(Context&, const Options&), void (*add_flags)(CLI::App&, Options&)) {
  auto options = std::make_shared<Options>();
  auto* command = app.add_subcommand(name, help);
  command->require_subcommand(0, 1);
  add_flags(*command, *options);
  command->callback([&context, options, body, command] {
    if (command->get_subcommands().empty()) finish(context, body(context, *options));
  });
  auto* listed = command->add_subcommand("ls", "The same as without a word");
  add_flags(*listed, *options);
  on_call(listed, context, options, body);
  return command;
}

void add_queue_list_flags(CLI::App& command, ListQueuesOptions& options) {
  add_list_flags(command, options);
  add_on_cluster_flags(command, options.cluster);
}

void add_amount(CLI::App* command, const std::string& name, std::string& value, const char* help) {
  command->add_option(name, value, help)->type_name(name.starts_with("--mem") ? "SIZE" : "N");
}

void add_queues(CLI::App& app, Context& context) {
  auto* queue = add_group(app, context, "queue", "List the queues, what they hold, and what waits",
                          list_queues, add_queue_list_flags);
  auto setting = std::make_shared<QueueOptions>();
  auto* set = queue->add_subcommand("set", "Make a queue, or change what is named of it (root)");
  set->add_option("queue", setting->path, "Its path: research/vision")->required()->type_name("QUEUE");
  add_amount(set, "--gpus-guarantee", setting->gpus_guarantee, "GPUs that it gets back when it wants them");
  add_amount(set, "--cpus-guarantee", setting->cpus_guarantee, "The same for CPUs");
  add_amount(set, "--mem-guarantee", setting->memory_guarantee, "The same for memory");
  add_amount(set, "--gpus-limit", setting->gpus_limit, "GPUs that it holds at most; 'none' takes it away");
  add_amount(set, "--cpus-limit", setting->cpus_limit, "The same for CPUs");
  add_amount(set, "--mem-limit", setting->memory_limit, "The same for memory");
  add_amount(set, "--weight", setting->weight, "Its share against its siblings; 1 when never given");
  set->add_option("--timeout", setting->timeout,
                  "So long its tasks run at most, but for those of apps; 'none'")
      ->type_name("TIME");
  set->add_option("--idle-timeout", setting->idle_timeout,
                  "So long the GPUs of its tasks may do nothing; 'none'")
      ->type_name("TIME");
  set->add_option("--users", setting->users, "Who may use it, with commas; 'all'")->type_name("NAMES");
  on_call(set, context, setting, set_queue);
  auto looking = std::make_shared<QueueOptions>();
  auto* inspect = queue->add_subcommand("inspect", "Print all that is known of a queue, as JSON");
  inspect->add_option("queue", looking->path, "Its path")->required()->type_name("QUEUE");
  on_call(inspect, context, looking, inspect_queue);
  auto removing = std::make_shared<QueueOptions>();
  auto* remove = queue->add_subcommand("rm", "Remove a queue that holds nothing (root)");
  remove->add_option("queue", removing->path, "Its path")->required()->type_name("QUEUE");
  on_call(remove, context, removing, remove_queue);
}

void add_quotas(CLI::App& app, Context& context) {
  auto* quota = add_group(app, context, "quota", "List how much you may hold; root: everybody", list_quotas,
                          add_list_flags);
  auto setting = std::make_shared<QuotaOptions>();
  auto* set = quota->add_subcommand("set", "Set a quota, or change what is named of it (root)");
  set->add_option("subject", setting->subject, "user:NAME or namespace:NAME")->required()->type_name("WHOSE");
  add_amount(set, "--gpus", setting->gpus, "GPUs that may be held at once; 'none' takes it away");
  add_amount(set, "--cpus", setting->cpus, "The same for CPUs");
  add_amount(set, "--mem", setting->memory, "The same for memory");
  add_amount(set, "--max-priority", setting->max_priority, "Highest priority that the user may ask for");
  on_call(set, context, setting, set_quota);
  auto looking = std::make_shared<QuotaOptions>();
  auto* inspect = quota->add_subcommand("inspect", "Print all that is known of a quota, as JSON");
  inspect->add_option("subject", looking->subject, "Whose")->required()->type_name("WHOSE");
  on_call(inspect, context, looking, inspect_quota);
  auto removing = std::make_shared<QuotaOptions>();
  auto* remove = quota->add_subcommand("rm", "Take a quota away (root)");
  remove->add_option("subject", removing->subject, "Whose")->required()->type_name("WHOSE");
  on_call(remove, context, removing, remove_quota);
}

}  // namespace

void add_sharing(CLI::App& app, Context& context) {
  add_queues(app, context);
  add_quotas(app, context);
}

}  // namespace drover::cli
