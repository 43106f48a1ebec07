#pragma once

// What Marathon says when it refuses a definition: one sentence, and every mistake with its path in
// Marathon's own spelling ("/healthChecks(0)/protocol"; "/" is the whole). Clients show these texts to
// people, and some compare them.

#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "base/result.h"

namespace drover::marathon {

struct Detail {
  std::string path;
  std::vector<std::string> errors;

  bool operator==(const Detail&) const = default;
};

struct Refusal {
  int status = 422;  ///< of the HTTP answer
  std::string message;
  std::vector<Detail> details;
  std::string text;  ///< in place of the details, where Marathon gives them as one text

  bool operator==(const Refusal&) const = default;
};

template <typename T>
using Decoded = tl::expected<T, Refusal>;

/// {"message": …, "details": …}; without details when there are none.
std::string to_json_text(const Refusal& refusal);
/// For the command line: all mistakes as one error.
Error to_error(const Refusal& refusal, std::string_view what);

/// Gathers every mistake of one document.
class Mistakes {
 public:
  /// A value of another type than the wire has: "error.expected.jsstring".
  void wrong_type(const std::string& path, std::string code);
  /// A rule that is broken, in words.
  void broken_rule(const std::string& path, std::string text);

  /// All mistakes of a part that stands at `path` ("/apps(0)").
  void add_part(const Refusal& part, const std::string& path);

  bool empty() const { return details_.empty(); }
  /// All of them: "Invalid JSON" when any value had the wrong type, else "Object is not valid".
  Refusal refusal() const;

 private:
  void add(const std::string& path, std::string text);

  std::vector<Detail> details_;
  bool any_wrong_type_ = false;
};

}  // namespace drover::marathon
