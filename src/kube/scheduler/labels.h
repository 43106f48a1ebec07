#pragma once

// Labels, and what selects by them: label selectors of pods and namespaces, and the terms by which pods and
// volumes choose nodes. The rules are those of k8s.io/apimachinery/pkg/labels and
// k8s.io/component-helpers/scheduling/corev1/nodeaffinity. Pure.

#include <compare>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kube/scheduler/fields.h"

namespace drover::kube::scheduler {

using Labels = std::map<std::string, std::string, std::less<>>;
/// nullptr when there is none of that key.
const std::string* label(const Labels& labels, std::string_view key);

/// kGreater and kLess compare whole numbers: what is none never matches.
enum class LabelOperator { kIn, kNotIn, kExists, kDoesNotExist, kGreater, kLess };

struct Requirement {
  std::string key;
  LabelOperator is = LabelOperator::kExists;
  std::vector<std::string> values = {};

  auto operator<=>(const Requirement&) const = default;
};
bool matches(const Requirement& requirement, const Labels& labels);

/// All requirements must hold. An absent selector selects nothing, one without requirements everything.
struct Selector {
  bool nothing = true;
  std::vector<Requirement> requirements = {};

  bool everything() const { return !nothing && requirements.empty(); }
  auto operator<=>(const Selector&) const = default;
};
bool matches(const Selector& selector, const Labels& labels);
/// nullopt for one that Kubernetes takes for a mistake.
std::optional<Selector> read_selector(FieldReader& reader, const nlohmann::json& selector);

/// Both lists must hold. One that Kubernetes takes for a mistake is kept as one that never matches.
struct NodeTerm {
  bool valid = true;
  std::vector<Requirement> labels = {};
  std::vector<Requirement> fields = {};  ///< kIn and kNotIn with one value

  auto operator<=>(const NodeTerm&) const = default;
};
/// One of them must match: none of none does.
using NodeTerms = std::vector<NodeTerm>;
/// Without a name only labels are looked at, as for volumes.
bool matches(const NodeTerms& terms, const Labels& labels, std::string_view node_name);
/// Of an object with `nodeSelectorTerms`; nullopt of null.
std::optional<NodeTerms> read_node_terms(FieldReader& reader, const nlohmann::json& selector);

/// "nvidia.com/gpu", "app": with a prefix that is a DNS name, or none.
bool is_qualified_name(std::string_view name);

}  // namespace drover::kube::scheduler
