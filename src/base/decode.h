#pragma once

// Decoding of JSON that comes from outside. A Decoder reads one object field by field and gathers ALL
// mistakes with their paths ("/resources/gpus") in one list, instead of stopping at the first. Fields that
// nobody asked for are mistakes too, reported by finish(). Not thread safe; the JSON value must outlive the
// Decoder.

#include <chrono>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace drover {

/// A name as one part of a JSON pointer: "a/b" → "a~1b".
std::string pointer_token(std::string_view name);

class Decoder {
 public:
  /// `errors` collects; `path` is where this object stands in the document ("" for its root).
  Decoder(const nlohmann::json& value, std::vector<Error>& errors, std::string path = "");

  // Each returns nullopt when the field is absent or null, and also when it is wrong (which is recorded).
  std::optional<std::string> string(const std::string& name);
  /// "90s", "1h30m"
  std::optional<std::chrono::milliseconds> duration(const std::string& name);
  std::optional<std::int64_t> integer(const std::string& name, std::int64_t min, std::int64_t max);
  std::optional<double> number(const std::string& name, double min, double max);
  std::optional<bool> boolean(const std::string& name);
  std::optional<std::vector<std::string>> string_list(const std::string& name);
  std::optional<std::map<std::string, std::string>> string_map(const std::string& name);
  /// A nested object; finish() it like the outer one.
  std::optional<Decoder> object(const std::string& name);
  /// A nested array of objects.
  std::vector<Decoder> objects(const std::string& name);

  /// The field as it stands, for the caller to judge; nullptr when it is absent or null.
  const nlohmann::json* value(const std::string& name);
  /// One string, or a list of strings.
  std::optional<std::vector<std::string>> strings(const std::string& name);
  /// One of these words, by its position.
  std::optional<std::size_t> choice(const std::string& name, std::span<const std::string_view> words);

  /// What is kept on a disk says in which format it is, 1 where it does not say. A newer one than is known is
  /// a mistake: its fields may mean something else.
  void format(int known);

  /// Records a mistake at `name` found by the caller. What is very long loses its middle.
  void mistake(const std::string& name, std::string message, std::string hint = "");
  /// Records every field that nobody read as unknown, naming the nearest known one.
  void finish();

 private:
  std::string path_of(const std::string& name) const;

  const nlohmann::json* value_;
  std::vector<Error>* errors_;
  std::string path_;
  std::set<std::string> known_;
};

/// How deep lists and objects may stand in each other.
inline constexpr std::size_t kMostJsonLevels = 64;

/// Parses text; a syntax error, and bytes that are no UTF-8, are told by line and column, and by the path of
/// the value that cannot be read. A field that an object has twice is refused, since readers differ in which
/// of the two they take (RFC 8259, 4), and so is what is nested deeper than kMostJsonLevels. Time and memory
/// grow with the text, and neither with its depth. `what` names the document in the message.
Result<nlohmann::json> parse_json(std::string_view text, std::string_view what);

/// Many mistakes as one Error of kInvalid: one line each, with its path, for the first 20. `mistakes` must
/// not be empty.
Error join_mistakes(const std::vector<Error>& mistakes, std::string_view what);

/// The candidate that `word` was most likely meant to be, or "" when none is near.
std::string nearest(std::string_view word, const std::set<std::string>& candidates);

}  // namespace drover
