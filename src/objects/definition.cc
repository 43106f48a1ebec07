#include "objects/definition.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "kube/scheduler/condition.h"
#include "objects/kinds.h"

namespace drover::objects {
namespace {

using kube::text_at;
using nlohmann::json;

constexpr const char* kAccepted = "Accepted";
constexpr std::size_t kLongestId = 1024;

json part(const json& object, const char* name) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  return found == object.end() || !found->is_object() ? json::object() : *found;
}

/// The condition that the status has of it.
json accepted_of(const json& status) {
  const auto list = status.find("conditions");
  if (list != status.end() && list->is_array())
    for (const auto& each : *list)
      if (text_at(each, "/type") == kAccepted) return each;
  return json::object();
}

/// What is as the object says in this very generation.
bool is_accepted(const Definition& definition) {
  const auto accepted = accepted_of(part(definition.meta, "status"));
  return text_at(accepted, "/status") == "True" &&
         accepted.value("observedGeneration", json()) ==
             definition.meta["metadata"].value("generation", json());
}

std::string id_in(Kind kind, const json& object) {
  const auto spec = part(object, "spec");
  auto id = text_at(spec, kind == Kind::kApp ? "/id" : "/name");
  if (id.empty() || id.size() > kLongestId) id = text_at(object, "/metadata/name");
  return kind == Kind::kApp && !id.starts_with('/') ? "/" + id : id;
}

std::string details_in(const json& body) {
  std::string text;
  const auto list = body.find("details");
  if (list == body.end() || !list->is_array())
    return list == body.end() || !list->is_string() ? "" : list->get<std::string>();
  for (const auto& detail : *list)
    for (const auto& error : detail.value("errors", json::array()))
      if (error.is_string())
        text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", text_at(detail, "/path"),
                            error.get<std::string>());
  return text;
}

/// What an answer says for people, whichever API it is of.
std::string message_in(const json& body) {
  if (!body.is_object()) return "";
  if (const auto error = part(body, "error"); !error.empty()) {
    auto message = text_at(error, "/message");
    const auto path = text_at(error, "/path");
    const auto hint = text_at(error, "/hint");
    if (!path.empty() && message.find(path) == message.npos) message = path + ": " + message;
    return hint.empty() ? message : fmt::format("{} ({})", message, hint);
  }
  const auto details = details_in(body);
  return details.empty() ? text_at(body, "/message")
                         : fmt::format("{}: {}", text_at(body, "/message"), details);
}

}  // namespace

std::string Definition::mark() const {
  return fmt::format("{}/{}/{}", path.name_space, path.name, uid);
}

Definition read_definition(Kind kind, const json& object) {
  static const std::array kResources = {kApps, kSchedules, kJobs};
  Definition definition;
  definition.kind = kind;
  definition.path = {kResources.at(static_cast<std::size_t>(kind)), text_at(object, "/metadata/namespace"),
                     text_at(object, "/metadata/name")};
  definition.uid = text_at(object, "/metadata/uid");
  definition.id = kind == Kind::kJob ? definition.mark() : id_in(kind, object);
  definition.meta = {{"metadata", json::object()}, {"status", part(object, "status")}};
  for (const auto* name : {"uid", "generation", "resourceVersion", "deletionTimestamp", "finalizers"})
    if (const auto known = part(object, "metadata"); known.contains(name))
      definition.meta["metadata"][name] = known[name];
  const auto& metadata = definition.meta["metadata"];
  definition.deleting = !text_at(metadata, "/deletionTimestamp").empty();
  const auto finalizers = metadata.value("finalizers", json::array());
  definition.held = std::ranges::find(finalizers, json(kFinalizer)) != finalizers.end();
  return definition;
}

std::string thing(Kind kind, const std::string& id) {
  return std::string(kind_name(kind)) + " " + id;
}

Result<std::optional<Refusal>> read_refusal(const Answer& answer) {
  if (answer.status >= 200 && answer.status < 300) return std::nullopt;
  auto message = message_in(answer.body);
  if (message.empty()) message = fmt::format("The daemon answered with the status {}", answer.status);
  switch (answer.status) {
    case 503:
    case 504:
      return fail(ErrorKind::kUnavailable, message);
    case 409:
      return Refusal{"Exists", std::move(message)};
    case 403:
      return Refusal{"Forbidden", std::move(message)};
    case 507:
      return Refusal{"Exhausted", std::move(message)};
    default:
      return Refusal{answer.status >= 500 ? "Failed" : "Invalid", std::move(message)};
  }
}

Decision decide(const Definition& definition, const Known& known) {
  if (definition.deleting) {
    if (!definition.held) return {};
    return {known.ours ? Deed::kRemove : Deed::kRelease, std::nullopt};
  }
  const auto& status = definition.meta["status"];
  if (definition.kind == Kind::kJob) {
    const bool submitted = status.contains("phase");
    if (!known.there && !submitted) return {Deed::kCreate, std::nullopt};
    const auto of = status.value("generation", json());
    if (submitted && of != definition.meta["metadata"].value("generation", json()))
      return {
          Deed::kNothing,
          Refusal{"Immutable",
                  fmt::format("What was submitted is as generation {} says, and a job does not change after "
                              "that: delete the object, and make it anew",
                              of.dump())}};
    return {};
  }
  if (!known.there) return {Deed::kCreate, std::nullopt};
  if (!known.ours)
    return {Deed::kNothing,
            Refusal{"Exists",
                    fmt::format("There is {} '{}' already, which does not come from this object: give this "
                                "one another {}, or remove the other one",
                                definition.kind == Kind::kApp ? "an app" : "a job", definition.id,
                                definition.kind == Kind::kApp ? "id" : "name")}};
  const bool as_it_was = known.fingerprint == text_at(status, "/fingerprint");
  return {is_accepted(definition) && as_it_was ? Deed::kNothing : Deed::kChange, std::nullopt};
}

json status_of(const Definition& definition, const Known& known, const std::optional<Refusal>& refusal,
               TimePoint now) {
  const auto& before = definition.meta["status"];
  json status = json::object();
  const bool is_job = definition.kind == Kind::kJob;
  if (known.ours) {
    status = shown_status(definition.kind, known.shown, now);
    if (is_job)
      status["generation"] =
          before.value("generation", definition.meta["metadata"].value("generation", json(0)));
    else
      status["fingerprint"] = refusal ? text_at(before, "/fingerprint") : known.fingerprint;
  } else if (is_job && before.contains("phase")) {
    status = before;  // how it ended outlives the record of it
    if (!is_end(text_at(before, "/phase"))) {
      status["phase"] = "Lost";
      status["reason"] = "Somebody has removed its task";
    }
  }
  kube::scheduler::Condition condition{kAccepted, !refusal, "Accepted", "It is as the object says"};
  if (refusal) condition = {kAccepted, false, refusal->reason, refusal->message};
  const auto written = kube::scheduler::changed_condition(definition.meta, condition, now);
  status["conditions"] = json::array({written ? *written : accepted_of(before)});
  return status;
}

std::optional<json> status_patch(const Definition& definition, const json& status) {
  const auto& before = definition.meta["status"];
  if (before == status) return std::nullopt;
  json patch = json::object();
  for (const auto& [name, value] : before.items())
    if (!status.contains(name)) patch[name] = nullptr;
  for (const auto& [name, value] : status.items())
    if (before.value(name, json()) != value) patch[name] = value;
  return json{{"status", std::move(patch)}};
}

std::vector<kube::EventText> events_of(const Definition& definition, const json& status) {
  std::vector<kube::EventText> events;
  const auto& before = definition.meta["status"];
  const auto was = accepted_of(before), is = accepted_of(status);
  if (was != is) {
    const bool accepted = text_at(is, "/status") == "True";
    events.push_back({!accepted, accepted ? "Accepted" : "Refused", text_at(is, "/message")});
  }
  const auto flag = [](const json& object, const char* name) {
    return object.value(name, json(false)) == json(true);
  };
  if (flag(before, "deploying") && status.contains("deploying") && !flag(status, "deploying"))
    events.push_back({false, "Deployed", fmt::format("{} instances run", text_at(status, "/instances"))});
  const auto phase = text_at(status, "/phase");
  if (phase != text_at(before, "/phase") && is_end(phase)) {
    const auto reason = text_at(status, "/reason");
    const auto exit = status.find("exitStatus");
    events.push_back({phase != "Succeeded", phase,
                      !reason.empty()        ? reason
                      : exit != status.end() ? fmt::format("It ended with the status {}", exit->dump())
                                             : "It has ended"});
  }
  return events;
}

}  // namespace drover::objects
