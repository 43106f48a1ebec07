#pragma once

// Fields of the objects that an API server keeps. What is absent and what is null are the same there, and so
// are an empty list and none. Not thread safe.

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kube/scheduler/nanos.h"

namespace drover::kube::scheduler {

/// By the names of resources.
using Quantities = std::map<std::string, Nanos, std::less<>>;

/// Reads fields, and keeps the first that is of another kind than Kubernetes' schema has it: every read goes
/// on with what an absent field means.
class FieldReader {
 public:
  /// A field of an object as it is; null when it has none.
  const nlohmann::json& field(const nlohmann::json& object, const char* name);
  /// An object, or null.
  const nlohmann::json& object(const nlohmann::json& object, const char* name);
  /// A list of objects, or an empty one.
  const nlohmann::json& objects(const nlohmann::json& object, const char* name);
  std::string text(const nlohmann::json& object, const char* name);
  std::optional<std::int64_t> number(const nlohmann::json& object, const char* name);
  bool flag(const nlohmann::json& object, const char* name);
  std::vector<std::string> texts(const nlohmann::json& object, const char* name);
  std::map<std::string, std::string, std::less<>> text_map(const nlohmann::json& object, const char* name);
  Quantities quantities(const nlohmann::json& object, const char* name);

  /// An object's metadata.name, which each has.
  std::string name(const nlohmann::json& object);

  void mistake(std::string message);
  /// Fails with the first mistake, as "`what`: …".
  Status status(std::string_view what) const;

 private:
  const nlohmann::json& list(const nlohmann::json& object, const char* name);
  void wrong_kind(const char* name, std::string_view kind);

  std::optional<Error> mistake_;
};

}  // namespace drover::kube::scheduler
