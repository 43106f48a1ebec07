#pragma once

// Shows how far a pull has come: a bar a layer on a terminal, painted over and over, and else a line a layer
// that is ready. Makes text only.

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>

namespace drover::cli {

class PullView {
 public:
  explicit PullView(bool terminal) : terminal_(terminal) {}
  /// What to write for this progress (api: event "progress").
  std::string show(const nlohmann::json& progress);

 private:
  bool terminal_;
  std::size_t painted_ = 0;      ///< lines that stand on the terminal
  std::set<std::string> ready_;  ///< layers that were told of
};

}  // namespace drover::cli
