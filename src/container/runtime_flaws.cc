#include "container/runtime_flaws.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <compare>
#include <limits>

namespace drover::container {
namespace {

constexpr int kFinal = std::numeric_limits<int>::max();

struct Release {
  int major = 0, minor = 0, patch = 0;
  int candidate = kFinal;  ///< "1.2.0-rc.3" is before "1.2.0"

  auto operator<=>(const Release&) const = default;
};

struct Known {
  std::string_view program, id;
  std::vector<std::string_view>
      mended;  ///< the first version of each line of releases without it, oldest first
  bool avoided;
  std::string_view what;
};

const std::vector<Known>& all_known() {
  static const std::vector<Known> known = {
      {"runc",
       "CVE-2019-5736",
       {"1.0.0-rc7"},
       false,
       "root in a container can replace the machine's runc while a command joins it"},
      {"runc",
       "CVE-2021-30465",
       {"1.0.0-rc95"},
       true,
       "volumes could be mounted outside of the container; their places are found before the runtime starts"},
      {"runc",
       "CVE-2024-21626",
       {"1.1.12"},
       true,
       "a working folder could be one of the machine's; the runtime enters none, a task does so with its own "
       "rights"},
      {"runc",
       "CVE-2024-45310",
       {"1.1.14", "1.2.0-rc.3"},
       true,
       "places of volumes could be made on the machine as root; the runtime makes none that a user can "
       "reach"},
      {"runc",
       "CVE-2025-31133",
       {"1.2.8", "1.3.3", "1.4.0-rc.3"},
       true,
       "who shares a mount in /dev could unmask files of /proc; tasks cannot have one there"},
      {"runc",
       "CVE-2025-52565",
       {"1.2.8", "1.3.3", "1.4.0-rc.3"},
       true,
       "who shares a mount in /dev could have files mounted over its console; tasks cannot have one there"},
      {"runc",
       "CVE-2025-52881",
       {"1.2.8", "1.3.3", "1.4.0-rc.3"},
       true,
       "who shares a mount in /proc could redirect what the runtime writes; tasks cannot have one there"},
      {"runc",
       "CVE-2026-41579",
       {"1.3.6", "1.4.3", "1.5.0-rc.3"},
       true,
       "an image whose /dev is a link could change the machine's folders; such a link is never followed"},
      {"crun",
       "CVE-2025-24965",
       {"1.20"},
       true,
       "an image could write to the machine through the handler for virtual machines; tasks never have that "
       "handler"},
      {"crun",
       "CVE-2026-47766",
       {"1.28"},
       true,
       "an image whose /dev is a link could change the machine's folders; such a link is never followed"},
      {"docker",
       "CVE-2024-41110",
       {"23.0.15", "25.0.6", "26.1.5", "27.1.1"},
       false,
       "who may speak with the engine can get around its authorization plugins"},
      {"docker",
       "CVE-2026-41567",
       {"29.5.1"},
       false,
       "copying a compressed archive into a container by 'docker cp' can run a program of its image as root"},
      {"docker",
       "CVE-2026-41568",
       {"29.5.1"},
       false,
       "'docker cp' with the container of a running task can make files on the machine; Drover itself never "
       "copies there"},
      {"docker",
       "CVE-2026-42306",
       {"29.5.1"},
       false,
       "'docker cp' with the container of a running task can mount over the machine's files; Drover itself "
       "never copies there"},
  };
  return known;
}

std::optional<int> take_number(std::string_view& text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || value < 0) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

std::optional<Release> parse_release(std::string_view text) {
  take(text, "v");
  Release release;
  const auto major = take_number(text);
  if (!major || !take(text, ".")) return std::nullopt;
  const auto minor = take_number(text);
  if (!minor) return std::nullopt;
  release.major = *major;
  release.minor = *minor;
  if (take(text, ".")) {
    const auto patch = take_number(text);
    if (!patch) return std::nullopt;
    release.patch = *patch;
  }
  // Debian writes "~rc3", so that it sorts before.
  if (take(text, "-rc") || take(text, "~rc")) {
    take(text, ".");
    release.candidate = take_number(text).value_or(0);
  }
  return release;
}

/// The version that mends it for this release; "" when that has it mended.
std::string_view mended_after(const Known& known, const Release& release) {
  std::string_view next;
  for (auto it = known.mended.rbegin(); it != known.mended.rend(); ++it) {
    const auto mended = *parse_release(*it);
    const bool same_line = mended.major == release.major && mended.minor == release.minor;
    const bool newest_line = it == known.mended.rbegin();
    if (release >= mended && (same_line || newest_line)) return "";
    if (release < mended) next = *it;
  }
  return next;
}

}  // namespace

std::vector<RuntimeFlaw> known_flaws(std::string_view program, std::string_view version,
                                     std::string_view changelog) {
  std::vector<RuntimeFlaw> flaws;
  const auto release = parse_release(version);
  if (!release) return flaws;
  for (const auto& known : all_known()) {
    if (known.program != program || changelog.find(known.id) != std::string_view::npos) continue;
    if (const auto mended = mended_after(known, *release); !mended.empty())
      flaws.push_back({std::string(known.id), std::string(known.what), known.avoided, std::string(mended)});
  }
  return flaws;
}

}  // namespace drover::container
