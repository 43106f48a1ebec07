#pragma once

// One attempt at a task as a pod: what the journal expects of it, what the cluster shows of it, and what
// follows from the two. Pure.
//
// An attempt has one pod, whose name is the attempt's, so that making it again is harmless. It has a
// finalizer, which is taken off when its end is in the journal: so a pod that is not there was not made yet,
// or somebody took the finalizer off by force.

#include <string_view>

namespace drover::pods {

/// By the journal.
enum class Expected {
  kNothing,    ///< it has ended and that is recorded, or nobody knows of it
  kWaiting,    ///< it is to run; nothing was told of its pod
  kPlaced,     ///< it has a node
  kRunning,    ///< its container was started
  kCancelled,  ///< it is to end, and had no node when that was decided
  kStopping,   ///< it is to end
};
inline constexpr int kExpectedStates = 6;
std::string_view to_string(Expected expected);

/// By the cluster. "Leaving": somebody has deleted the pod, and it is on its way out.
enum class Actual {
  kAbsent,
  kUnplaced,
  kUnplacedLeaving,
  kPlaced,  ///< it has a node; as far as that has told, no container was started
  kPlacedLeaving,
  kPlacedEvicted,  ///< leaving, to make room for others
  kRunning,
  kRunningLeaving,
  kRunningEvicted,
  kEnded,  ///< its container has ended, and how is known
  kEndedEvicted,
  kRefused,  ///< its node did not take it: nothing of it has run
  kLost,     ///< it is over, and nobody can say how it ended
};
inline constexpr int kActualStates = 13;
std::string_view to_string(Actual actual);

/// What the journal is to hear: it moves the attempt on, so that nothing is told twice for good.
enum class News {
  kNone,
  kPlaced,
  kStarted,
  kEvicted,  ///< it makes room for others: its end is not its own
  kEnded,
  kNeverRan,  ///< it is over without having begun
  kPutBack,   ///< the same, and nobody wanted that: another attempt follows
  kLost,
};
std::string_view to_string(News news);

/// What the cluster is to be told. Each may be repeated at will.
enum class Deed {
  kNone,
  kCreate,
  kDelete,   ///< its container gets the time that it was promised
  kRelease,  ///< takes the finalizer off, and deletes what is left
};
std::string_view to_string(Deed deed);

struct Reaction {
  News news = News::kNone;
  Deed deed = Deed::kNone;

  bool operator==(const Reaction&) const = default;
};

/// What is seen may be older than what the journal was told already, but never than what was done: whoever
/// has made or deleted a pod looks at it as the answer says.
Reaction react(Expected expected, Actual actual);

}  // namespace drover::pods
