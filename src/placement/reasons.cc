#include <fmt/format.h>

#include <array>
#include <string_view>

#include "placement/decision.h"

namespace drover::placement {
namespace {

/// Clauses are written about one node: "lacks 2 free GPUs". Of several nodes it is "lack".
std::string in_plural(const std::string& clause) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 3> verbs{
      {{"has ", "have "}, {"is ", "are "}, {"lacks ", "lack "}}};
  for (const auto& [one, many] : verbs)
    if (clause.starts_with(one)) return std::string(many) + clause.substr(one.size());
  return clause;
}

}  // namespace

std::vector<std::string> describe(const Reasons& reasons) {
  std::string counted;
  std::vector<std::string> others;
  for (const auto& reason : reasons.list) {
    if (reason.nodes == 0 || reasons.nodes == 1) {
      others.push_back(reason.text);
      continue;
    }
    counted += fmt::format("{}{} {}", counted.empty() ? "" : ", ", reason.nodes,
                           reason.nodes == 1 ? reason.text : in_plural(reason.text));
  }
  if (!counted.empty()) others.insert(others.begin(), fmt::format("{} nodes: {}", reasons.nodes, counted));
  return others;
}

std::string describe_nodes(const Reason& reason, int of_nodes) {
  if (of_nodes == 1) return reason.text;
  return reason.nodes == 1 ? "1 node " + reason.text
                           : fmt::format("{} nodes {}", reason.nodes, in_plural(reason.text));
}

}  // namespace drover::placement
