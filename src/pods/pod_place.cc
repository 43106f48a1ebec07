#include "pods/pod_place.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/ids.h"
#include "kube/scheduler/labels.h"
#include "pods/pod_view.h"

namespace drover::pods {
namespace {

using nlohmann::json;
using workload::NodeRule;
using workload::NodeRuleKind;

constexpr const char* kRequired = "requiredDuringSchedulingIgnoredDuringExecution";
constexpr std::size_t kLongestValue = 63;
constexpr std::size_t kDigestDigits = 32;

std::string key_of(const std::string& attribute) {
  return attribute == "hostname" ? kHostName : attribute;
}

Status check_label(const std::string& name, const std::vector<std::string>& values) {
  if (!kube::scheduler::is_qualified_name(name))
    return fail(ErrorKind::kInvalid, fmt::format("No node of a cluster has a label '{}'", name),
                "attributes are labels of nodes there: name one as 'kubectl get nodes --show-labels' does",
                "/constraints");
  // A value is a name without a prefix, or nothing.
  const auto odd = std::ranges::find_if(values, [](const auto& value) {
    return !value.empty() &&
           (value.find('/') != std::string::npos || !kube::scheduler::is_qualified_name(value));
  });
  if (odd == values.end()) return {};
  return fail(ErrorKind::kInvalid, fmt::format("No label of a node has the value '{}'", *odd),
              "values are letters, digits, '-', '_' and '.', and 63 of them at most", "/constraints");
}

class Place {
 public:
  Place(const json& labels, json& spec) : labels_(labels), spec_(spec) {}

  void one_of(const std::string& attribute, const std::vector<std::string>& values) {
    const auto key = key_of(attribute);
    if (!values.empty()) return expect(key, "In", values);
    // No node has a label and lacks it.
    expect(key, "Exists");
    expect(key, "DoesNotExist");
  }

  void keep(const NodeRule& rule) {
    const auto key = key_of(rule.label);
    switch (rule.kind) {
      case NodeRuleKind::kOneOf:
        return one_of(rule.label, rule.values);
      case NodeRuleKind::kNoneOf:
        if (!rule.values.empty()) expect(key, "NotIn", rule.values);
        return;
      case NodeRuleKind::kApart:
        if (key != kHostName) expect(key, "Exists");
        return relate("podAntiAffinity", key, rule.number > 0);
      case NodeRuleKind::kTogether:
        return relate("podAffinity", key, false);
      case NodeRuleKind::kSpread: {
        json spread = {{"maxSkew", 1},
                       {"topologyKey", key},
                       {"whenUnsatisfiable", "DoNotSchedule"},
                       {"nodeTaintsPolicy", "Honor"},
                       {"labelSelector", others(false)}};
        if (rule.number > 0) spread["minDomains"] = rule.number;
        spec_["topologySpreadConstraints"].push_back(std::move(spread));
        return;
      }
    }
  }

  void finish() {
    if (!expressions_.empty())
      spec_["affinity"]["nodeAffinity"][kRequired]["nodeSelectorTerms"] =
          json::array({{{"matchExpressions", std::move(expressions_)}}});
  }

 private:
  void expect(const std::string& key, const char* operation, const std::vector<std::string>& values = {}) {
    json expression = {{"key", key}, {"operator", operation}};
    if (!values.empty()) expression["values"] = values;
    expressions_.push_back(std::move(expression));
  }

  /// The instances of its service, or those of its set.
  json others(bool of_its_set) const {
    json same = json::object();
    for (const auto* label : {kJournalLabel, kServiceLabel}) same[label] = labels_.at(label);
    if (of_its_set) same[kSetLabel] = labels_.at(kSetLabel);
    return {{"matchLabels", std::move(same)}};
  }

  void relate(const char* how, const std::string& key, bool of_its_set) {
    spec_["affinity"][how][kRequired].push_back(
        {{"topologyKey", key}, {"labelSelector", others(of_its_set)}});
  }

  const json& labels_;
  json& spec_;
  json expressions_ = json::array();
};

}  // namespace

std::string service_label(const std::string& service) {
  auto label = service.substr(std::min<std::size_t>(service.find_first_not_of('/'), service.size()));
  std::ranges::replace(label, '/', '_');
  const auto is_plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  const bool sound =
      !label.empty() && label.size() <= kLongestValue && is_plain(label.front()) && is_plain(label.back()) &&
      std::ranges::all_of(label, [&](char c) { return is_plain(c) || c == '-' || c == '.' || c == '_'; });
  return sound ? label : sha256_hex(service).substr(0, kDigestDigits);
}

Status check_place(const workload::Task& task, const std::vector<NodeRule>& rules) {
  for (const auto& [name, any_of] : task.resources.attributes) DROVER_CHECK_OK(check_label(name, any_of));
  for (const auto& rule : rules) DROVER_CHECK_OK(check_label(rule.label, rule.values));
  return {};
}

void write_place(const workload::Task& task, const std::vector<NodeRule>& rules, json& spec, json& labels) {
  if (task.origin.kind == workload::OriginKind::kService)
    labels[kServiceLabel] = service_label(task.origin.name);
  for (const auto& rule : rules)
    if (rule.number > 0 && rule.kind == NodeRuleKind::kApart) labels[kSetLabel] = std::to_string(rule.number);
  Place place(labels, spec);
  for (const auto& [name, any_of] : task.resources.attributes) place.one_of(name, any_of);
  for (const auto& rule : rules) place.keep(rule);
  place.finish();
}

}  // namespace drover::pods
