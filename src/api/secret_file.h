#pragma once

// Files of secrets that are the daemon's alone, and what is made with them. Files block; thread safe.

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace drover::api {

/// 256 random bits, as hex digits.
Result<std::string> random_secret();

/// What the file holds; nullopt when there is none. Refuses one that somebody else owns or may read. `what`
/// names it: "The credentials file".
Result<std::optional<std::string>> read_secret_file(const std::string& path, const std::string& what);

/// The key in the file, which is made where there is none. `hint`: what follows when one that is damaged is
/// removed.
Result<std::string> open_key(const std::string& path, const std::string& what, const std::string& hint);

/// What only who has the key can say of the text: 64 hex digits.
std::string code_of(const std::string& key, std::string_view text);
/// Takes the same time wherever two of one length differ.
bool is_same_secret(std::string_view one, std::string_view other);

}  // namespace drover::api
