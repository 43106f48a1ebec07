#pragma once

// Apps, schedules and jobs as objects of a cluster: what one asks for, what the daemon has of it, what is to
// be done about the two, and what the object's status says then. What a definition may say is left to the
// daemon's API, which each is sent to as its user would send it. Pure; values.
//
// By a mark in the definition it is known which object it came from: a label of apps and tasks, a variable of
// schedules. What has no mark of this object is somebody else's, and never touched.

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "kube/client/object.h"
#include "kube/events/event_book.h"

namespace drover::objects {

inline const kube::Resource kApps{"drover.dev", "v1alpha1", "apps"};
inline const kube::Resource kSchedules{"drover.dev", "v1alpha1", "schedules"};
inline const kube::Resource kJobs{"drover.dev", "v1alpha1", "jobs"};

inline constexpr const char* kFinalizer = "drover.dev/definition";
inline constexpr const char* kMarkLabel = "drover.dev/object";
inline constexpr const char* kMarkVariable = "DROVER_OBJECT";

enum class Kind { kApp, kSchedule, kJob };

struct Definition {
  Kind kind{};
  kube::ObjectPath path;
  std::string uid;
  std::string id;  ///< of the app, or the schedule's name; of a job, its mark
  bool deleting = false;
  bool held = false;    ///< by our finalizer
  nlohmann::json meta;  ///< status, and of the metadata what is needed: the spec may be large

  std::string mark() const;  ///< "namespace/name/uid"
};

/// Of any object; what is wrong with its spec the daemon says.
Definition read_definition(Kind kind, const nlohmann::json& object);
/// Under which a change of what it defined is told: "App /web".
std::string thing(Kind kind, const std::string& id);

/// One request to the daemon's API.
struct Call {
  std::string method;
  std::string target;
  nlohmann::json body = nullptr;
  std::optional<std::pair<Kind, std::string>> about = std::nullopt;  ///< whose that is, is to be said too

  bool operator==(const Call&) const = default;
};
struct Answer {
  int status = 0;  ///< as HTTP has it
  nlohmann::json body;
  bool of_others = false;  ///< what it is about is another user's: root sees all, and marks can be forged
};

/// What the daemon has under the definition's id.
struct Known {
  bool there = false;
  bool ours = false;
  nlohmann::json shown;     ///< the app, the schedule, or a job's list of task records
  std::string fingerprint;  ///< of what it says; another when somebody has changed it

  bool ended() const;  ///< of a job: all its tasks
};
Call ask_for(const Definition& definition);
/// kUnavailable and the like when the daemon has not said.
Result<Known> read_known(const Definition& definition, const Answer& answer);

/// Why an object is not accepted.
struct Refusal {
  std::string reason;   ///< for programs: Exists, Invalid, Forbidden, …
  std::string message;  ///< for people: all mistakes, with their paths

  bool operator==(const Refusal&) const = default;
};
/// nullopt when the daemon did it; kUnavailable and the like when it could not say.
Result<std::optional<Refusal>> read_refusal(const Answer& answer);

enum class Deed {
  kNothing,
  kCreate,   ///< submit(); it is to have our finalizer before
  kChange,   ///< submit()
  kRemove,   ///< withdraw(), and look again
  kRelease,  ///< take our finalizer off
};
struct Decision {
  Deed deed = Deed::kNothing;
  std::optional<Refusal> refusal;
};
Decision decide(const Definition& definition, const Known& known);

/// `spec`: the object's. With its mark.
Call submit(const Definition& definition, const nlohmann::json& spec, bool is_new);
std::vector<Call> withdraw(const Definition& definition, const Known& known);

/// The status that the object is to have. `known`: after what was done.
nlohmann::json status_of(const Definition& definition, const Known& known,
                         const std::optional<Refusal>& refusal, TimePoint now);
/// A merge patch of the object; nullopt when it has that status.
std::optional<nlohmann::json> status_patch(const Definition& definition, const nlohmann::json& status);
/// What is told of the step from the status that it has to this one.
std::vector<kube::EventText> events_of(const Definition& definition, const nlohmann::json& status);

}  // namespace drover::objects
