#pragma once

// Ids of apps and groups: paths as "/shop/web". Pure.

#include <string>
#include <string_view>
#include <vector>

namespace drover::marathon {

inline constexpr std::size_t kMaxPath = 256;

/// `path` seen from `base` (absolute), without "." and "..": "web" from "/shop" is "/shop/web", "../db" is
/// "/db". What begins with a slash needs no base. Doubled slashes and one at the end do not count.
std::string absolute_path(std::string_view path, std::string_view base = "/");

/// "/shop" of "/shop/web"; "/" of "/shop" and of "/".
std::string parent_path(std::string_view path);

/// Whether the absolute `path` is `group` or stands anywhere below it. Everything is below "/".
bool is_within(std::string_view path, std::string_view group);

/// "web" of "/shop/web"; "" of "/".
std::string_view last_segment(std::string_view path);

/// What is wrong with an absolute id, in Marathon's words; none when it is right.
std::vector<std::string> path_mistakes(std::string_view path);
/// The same, for the id of an app.
std::vector<std::string> app_path_mistakes(std::string_view path);

}  // namespace drover::marathon
