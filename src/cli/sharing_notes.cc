#include "cli/sharing_notes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <nlohmann/json.hpp>

#include "base/users.h"
#include "cli/printable.h"
#include "cli/words.h"

namespace drover::cli {
namespace {

using nlohmann::json;

json object_in(const json& value, const char* field) {
  const auto found = value.find(field);
  return found != value.end() && found->is_object() ? *found : json::object();
}

double number_in(const json& value, const char* field) {
  const auto found = value.find(field);
  return found != value.end() && found->is_number() ? found->get<double>() : 0;
}

}  // namespace

std::string queue_line(const json& queue) {
  const auto users = queue.value("users", std::vector<std::string>());
  std::string times;
  if (const auto most = queue.value("timeout", ""); !most.empty())
    times += ", tasks run for " + most + " at most";
  if (const auto idle = queue.value("idle_timeout", ""); !idle.empty())
    times += ", GPUs are idle for " + idle + " at most";
  return printable(fmt::format("{}: guarantee {}, limit {}, weight {}, users {}{}", queue.value("queue", ""),
                               amounts(object_in(queue, "guarantee"), true),
                               amounts(object_in(queue, "limit"), true), queue.value("weight", 1),
                               users.empty() ? "all" : fmt::format("{}", fmt::join(users, ",")), times));
}

std::string quota_line(const json& quota) {
  const auto limit = amounts(object_in(quota, "limit"), true);
  if (!quota.contains("user"))
    return printable(fmt::format("namespace:{}: limit {}", quota.value("namespace", ""), limit));
  return printable(fmt::format("user:{}: limit {}, highest priority {}", quota.value("user", ""), limit,
                               quota.value("max_priority", 0)));
}

std::vector<std::string> guarantees_too_large(const json& queue, const json& nodes) {
  constexpr std::array kAmounts = {std::pair("gpus", "gpus"), std::pair("cpus", "cpus"),
                                   std::pair("memory", "memory_bytes")};
  const auto guarantee = object_in(queue, "guarantee");
  std::vector<std::string> sentences;
  for (const auto& [amount, field] : kAmounts) {
    double total = 0;
    for (const auto& node : nodes) total += number_in(object_in(node, field), "total");
    if (number_in(guarantee, amount) <= total) continue;
    const json there = {
        {amount, amount == std::string("memory") ? json(static_cast<std::uint64_t>(total)) : json(total)}};
    sentences.push_back(fmt::format("The guarantee of '{}' cannot be kept: {} of it, and the machine has {}",
                                    queue.value("queue", ""), amounts({{amount, guarantee.at(amount)}}, true),
                                    amounts(there, true)));
  }
  return sentences;
}

std::vector<std::string> unknown_users(const std::vector<std::string>& names) {
  std::vector<std::string> sentences;
  for (const auto& name : names)
    if (const auto user = find_user(name); !user && user.error().kind == ErrorKind::kNotFound)
      sentences.push_back(fmt::format("There is no user '{}' on this machine yet", name));
  return sentences;
}

}  // namespace drover::cli
