#include "pods/attempt.h"

#include <array>
#include <cstddef>

namespace drover::pods {
namespace {

constexpr Reaction kNone{};
constexpr Reaction kCreate{News::kNone, Deed::kCreate};
constexpr Reaction kDelete{News::kNone, Deed::kDelete};
constexpr Reaction kRelease{News::kNone, Deed::kRelease};
constexpr Reaction kPlaced{News::kPlaced};
constexpr Reaction kStarted{News::kStarted};
constexpr Reaction kEvicted{News::kEvicted};
constexpr Reaction kEnded{News::kEnded};
constexpr Reaction kNeverRan{News::kNeverRan};
constexpr Reaction kPutBack{News::kPutBack};
constexpr Reaction kLost{News::kLost};

using Row = std::array<Reaction, kActualStates>;

// The whole of it. What has no node is ended by nobody else, so what somebody deleted there is released: who
// still waits gets another pod of the same name. What the journal has as placed is placed, whatever an older
// view says of it.
constexpr std::array<Row, kExpectedStates> kTable = {{
    // clang-format off
    //absent     unplaced …leaving  placed   …leaving …evicted  running   …leaving  …evicted  ended     …evicted  refused    lost
    {kNone,     kDelete, kRelease, kDelete, kNone,   kNone,    kDelete,  kNone,    kNone,    kRelease, kRelease, kRelease,  kRelease},  // nothing
    {kCreate,   kNone,   kRelease, kPlaced, kPlaced, kEvicted, kStarted, kStarted, kStarted, kEnded,   kEvicted, kPutBack,  kLost},  // waiting
    {kLost,     kNone,   kNone,    kNone,   kNone,   kEvicted, kStarted, kStarted, kStarted, kEnded,   kEvicted, kPutBack,  kLost},  // placed
    {kLost,     kNone,   kNone,    kNone,   kNone,   kNone,    kNone,    kNone,    kEvicted, kEnded,   kEvicted, kLost,     kLost},  // running
    {kNeverRan, kDelete, kRelease, kDelete, kNone,   kNone,    kDelete,  kNone,    kNone,    kEnded,   kEnded,   kNeverRan, kLost},  // cancelled
    {kLost,     kNone,   kNone,    kDelete, kNone,   kNone,    kDelete,  kNone,    kNone,    kEnded,   kEnded,   kNeverRan, kLost},  // stopping
    // clang-format on
}};

constexpr std::array<std::string_view, kExpectedStates> kExpectedWords = {"nothing", "waiting",   "placed",
                                                                          "running", "cancelled", "stopping"};
constexpr std::array<std::string_view, kActualStates> kActualWords = {
    "absent",  "unplaced",         "unplaced, leaving", "placed", "placed, leaving", "placed, evicted",
    "running", "running, leaving", "running, evicted",  "ended",  "ended, evicted",  "refused",
    "lost"};
constexpr std::array<std::string_view, 8> kNewsWords = {"none",  "placed",    "started",  "evicted",
                                                        "ended", "never ran", "put back", "lost"};
constexpr std::array<std::string_view, 4> kDeedWords = {"none", "create", "delete", "release"};

}  // namespace

std::string_view to_string(Expected expected) {
  return kExpectedWords.at(static_cast<std::size_t>(expected));
}

std::string_view to_string(Actual actual) {
  return kActualWords.at(static_cast<std::size_t>(actual));
}

std::string_view to_string(News news) {
  return kNewsWords.at(static_cast<std::size_t>(news));
}

std::string_view to_string(Deed deed) {
  return kDeedWords.at(static_cast<std::size_t>(deed));
}

Reaction react(Expected expected, Actual actual) {
  return kTable.at(static_cast<std::size_t>(expected)).at(static_cast<std::size_t>(actual));
}

}  // namespace drover::pods
