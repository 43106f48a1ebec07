#include "base/time_zone.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

#include "base/decode.h"
#include "base/files.h"
#include "base/posix_zone.h"

namespace drover {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using SysTime = std::chrono::sys_time<milliseconds>;

constexpr const char* kDatabase = "/usr/share/zoneinfo";
constexpr std::size_t kMaxZoneFile = 1U << 20;
constexpr std::size_t kMaxName = 64;

/// Reads big-endian numbers; past the end everything is zero and `good` false.
class Bytes {
 public:
  explicit Bytes(std::string_view bytes) : bytes_(bytes) {}
  bool good() const { return good_; }
  std::string_view take(std::size_t count) {
    if (count > bytes_.size()) {
      good_ = false;
      bytes_ = {};
      return {};
    }
    const auto taken = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return taken;
  }
  std::int64_t number(std::size_t width) {
    std::uint64_t value = 0;
    const auto taken = take(width);
    for (const char c : taken) value = value << 8 | static_cast<unsigned char>(c);
    if (taken.empty()) return 0;
    return width == 4 ? static_cast<std::int32_t>(value) : static_cast<std::int64_t>(value);
  }
  std::string_view rest() const { return bytes_; }

 private:
  std::string_view bytes_;
  bool good_ = true;
};

struct Header {
  char version = 0;
  std::size_t isut = 0, isstd = 0, leap = 0, time = 0, type = 0, chars = 0;

  std::size_t block(std::size_t width) const {
    return time * (width + 1) + type * 6 + chars + leap * (width + 4) + isstd + isut;
  }
};

std::optional<Header> read_header(Bytes& bytes) {
  if (bytes.take(4) != "TZif") return std::nullopt;
  Header header;
  const auto version = bytes.take(16);
  header.version = version.empty() ? '\0' : version[0];
  for (auto* count : {&header.isut, &header.isstd, &header.leap, &header.time, &header.type, &header.chars}) {
    const auto value = bytes.number(4);
    if (value < 0 || value > static_cast<std::int64_t>(kMaxZoneFile)) return std::nullopt;
    *count = static_cast<std::size_t>(value);
  }
  if (!bytes.good() || header.type == 0) return std::nullopt;
  return header;
}

}  // namespace

struct TimeZone::Data {
  std::string name;
  seconds first{0};  ///< before all transitions
  struct Transition {
    std::int64_t at;  ///< seconds since 1970, UTC
    seconds offset;   ///< from then on
  };
  std::vector<Transition> transitions;  ///< in order
  std::optional<PosixZone> later;       ///< after the last of them

  seconds offset_at(std::int64_t second) const {
    if (later && (transitions.empty() || second >= transitions.back().at)) return later->offset_at(second);
    const auto next = std::upper_bound(transitions.begin(), transitions.end(), second,
                                       [](std::int64_t value, const auto& each) { return value < each.at; });
    return next == transitions.begin() ? first : std::prev(next)->offset;
  }
};

TimeZone::TimeZone() {
  static const auto utc = std::make_shared<const Data>(Data{"UTC", seconds(0), {}, {}});
  data_ = utc;
}

TimeZone TimeZone::fixed(seconds offset) {
  if (offset.count() == 0) return {};
  const auto minutes = std::abs(offset.count()) / 60;
  auto name = fmt::format("{}{:02}:{:02}", offset.count() < 0 ? '-' : '+', minutes / 60, minutes % 60);
  return TimeZone(std::make_shared<const Data>(Data{std::move(name), offset, {}, {}}));
}

Result<TimeZone> TimeZone::parse(std::string name, std::string_view content) {
  const auto damaged = [&] {
    return fail(ErrorKind::kCorrupt, fmt::format("The data of the time zone '{}' is damaged", name),
                "install the package tzdata anew");
  };
  Bytes bytes(content);
  auto header = read_header(bytes);
  if (!header || header->version < '2') return damaged();
  bytes.take(header->block(4));  // the same once more in 32 bits, for old readers
  header = read_header(bytes);
  if (!header || header->block(8) > bytes.rest().size()) return damaged();
  Data data;
  std::vector<std::int64_t> times;
  for (std::size_t i = 0; i < header->time; ++i) times.push_back(bytes.number(8));
  const auto types = bytes.take(header->time);
  std::vector<seconds> offsets;
  for (std::size_t i = 0; i < header->type; ++i) {
    offsets.emplace_back(bytes.number(4));
    bytes.take(2);
    if (std::abs(offsets.back().count()) >= 26 * 3600) return damaged();  // RFC 8536, 3.2
  }
  for (std::size_t i = 0; i < times.size(); ++i) {
    const auto type = static_cast<unsigned char>(types[i]);
    if (type >= offsets.size() || (i > 0 && times[i] <= times[i - 1])) return damaged();
    data.transitions.push_back({times[i], offsets[type]});
  }
  bytes.take(header->chars + header->leap * 12 + header->isstd + header->isut);
  auto footer = bytes.rest();
  if (!bytes.good() || footer.size() < 2 || footer.front() != '\n' || footer.back() != '\n') return damaged();
  footer = footer.substr(1, footer.size() - 2);
  if (!footer.empty() && !(data.later = parse_posix_zone(footer))) return damaged();
  data.first = offsets.front();
  data.name = std::move(name);
  return TimeZone(std::make_shared<const Data>(std::move(data)));
}

const std::string& TimeZone::name() const {
  return data_->name;
}

seconds TimeZone::offset_at(SysTime time) const {
  return data_->offset_at(std::chrono::floor<seconds>(time).time_since_epoch().count());
}

WallTime TimeZone::to_wall(SysTime time) const {
  return WallTime(time.time_since_epoch() + offset_at(time));
}

SysTime TimeZone::from_wall(WallTime wall) const {
  // Offsets are less than a day and change seldom: those of a day before and after are all there can be.
  constexpr std::chrono::hours kDay(24);
  const SysTime as_utc(wall.time_since_epoch());
  const auto before = offset_at(as_utc - kDay);
  const auto after = offset_at(as_utc + kDay);
  const auto first = as_utc - before;
  if (before == after || offset_at(first) == before) return first;
  const auto second = as_utc - after;
  return offset_at(second) == after ? second : first;
}

namespace {

/// What Java's TimeZone knows and the database does not.
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kShortNames = {{
    {"PST", "America/Los_Angeles"},
    {"CST", "America/Chicago"},
    {"IST", "Asia/Kolkata"},
    {"JST", "Asia/Tokyo"},
}};

bool is_zone_name(std::string_view name) {
  if (name.empty() || name.size() > kMaxName || name.front() == '/' || name.find("..") != name.npos)
    return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '+' || c == '-' || c == '/';
  });
}

std::set<std::string> known_names() {
  namespace fs = std::filesystem;
  std::set<std::string> names;
  std::error_code error;
  fs::recursive_directory_iterator each(kDatabase, error);
  for (; !error && each != fs::recursive_directory_iterator(); each.increment(error)) {
    const auto name = each->path().lexically_relative(kDatabase).string();
    if (name == "posix" || name == "right") {
      each.disable_recursion_pending();
    } else if (!each->is_directory(error) && name.find('.') == std::string::npos && name[0] >= 'A' &&
               name[0] <= 'Z') {
      names.insert(name);
    }
  }
  return names;
}

Failure unknown_zone(const std::string& name) {
  const auto shown = name.size() <= kMaxName ? name : name.substr(0, kMaxName) + "…";
  static const auto names = known_names();  // going through the whole database takes milliseconds
  if (names.empty())
    return fail(ErrorKind::kUnsupported, "This machine has no data of time zones",
                "install the package tzdata");
  const auto near = nearest(shown, names);
  return fail(
      ErrorKind::kInvalid, fmt::format("There is no time zone '{}'", shown),
      near.empty() ? "write it as for example Europe/Berlin" : fmt::format("did you mean '{}'?", near));
}

Result<TimeZone> read_time_zone(const std::string& name) {
  for (const auto& [shortened, whole] : kShortNames)
    if (name == shortened) return read_time_zone(std::string(whole));
  if (name == "UTC" || name == "Z") return TimeZone();
  const bool relative = name.starts_with("GMT") || name.starts_with("UTC");
  if (const auto offset = parse_offset(relative ? std::string_view(name).substr(3) : name))
    return TimeZone::fixed(*offset);
  if (!is_zone_name(name)) return unknown_zone(name);
  const auto path = fmt::format("{}/{}", kDatabase, name);
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return unknown_zone(name);
  DROVER_TRY(const std::string content, read_file(path, kMaxZoneFile));
  if (!content.starts_with("TZif")) return unknown_zone(name);
  return TimeZone::parse(name, content);
}

}  // namespace

Result<TimeZone> find_time_zone(const std::string& name) {
  static std::mutex mutex;
  static std::map<std::string, TimeZone> kept;
  const std::lock_guard lock(mutex);
  if (const auto found = kept.find(name); found != kept.end()) return found->second;
  auto zone = read_time_zone(name);
  if (zone) kept.emplace(name, *zone);
  return zone;
}

Result<seconds> parse_offset(std::string_view text) {
  const auto bad = [&] {
    return fail(ErrorKind::kInvalid, fmt::format("'{}' is not an offset from UTC", text),
                "write it as +02:00");
  };
  if (text.size() < 2 || text.size() > 6 || (text[0] != '+' && text[0] != '-')) return bad();
  std::string digits;
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (text[i] == ':' && i + 3 == text.size() && !digits.empty()) continue;
    if (text[i] < '0' || text[i] > '9') return bad();
    digits += text[i];
  }
  const int number = std::stoi(digits);
  const int hours = digits.size() <= 2 ? number : number / 100;
  const int minutes = digits.size() <= 2 ? 0 : number % 100;
  if (digits.size() > 4 || hours > 23 || minutes > 59) return bad();
  const auto size = std::chrono::hours(hours) + std::chrono::minutes(minutes);
  return text[0] == '-' ? -size : size;
}

}  // namespace drover
