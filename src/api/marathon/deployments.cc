// Deployments under way, and the queue of what waits to be launched.

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "api/marathon/answers.h"
#include "api/marathon/changes.h"
#include "api/marathon/handlers.h"
#include "api/marathon/views.h"
#include "base/json_text.h"
#include "control/controller.h"
#include "control/upgrade_block.h"
#include "marathon/path.h"

namespace drover::api::marathon_v2 {

using control::ServiceRecord;
using nlohmann::json;
using placement::Dimension;

namespace {

Answer write_deployments(const Services& services, const Request&, const World& world) {
  json deployments = json::array();
  for (const auto& [id, deployment] : world.state().deployments)
    if (world.may_see(deployment)) deployments.push_back(deployment_view(world, deployment));
  return answer(services, to_text(deployments));
}

}  // namespace

AnswerBeside list_deployments(const Services& services, const Request& request) {
  return beside_of(services, request, Scope::kSome, write_deployments);
}

namespace {

/// What it would bring back.
Status check_revert(const World& world, const control::Deployment& deployment) {
  for (const auto& [id, before] : deployment.before) {
    const auto now = world.state().services.find(id);
    if (before && now != world.state().services.end())
      DROVER_CHECK_OK(check_definition(world, *before, now->second.target));
  }
  return {};
}

}  // namespace

Answer cancel_deployment(const Services& services, const Request& request) {
  const World world(services, *request.caller);
  const auto& id = request.parameters.at("id");
  const auto found = world.state().deployments.find(id);
  if (found == world.state().deployments.end() || !world.may_see(found->second))
    return refuse(services, 404, "DeploymentPlan " + id + " does not exist");
  if (!world.may_change(found->second)) return not_his(services);
  if (const auto allowed = check_revert(world, found->second); !flag(request, "force") && !allowed)
    return refuse(services, allowed.error());
  control::event::DeploymentCancelled event{id, !flag(request, "force"), request.caller->user.uid};
  const auto made = services.decisions->change(event);
  if (!made) return refuse(services, made.error());
  if (!event.revert) {
    auto response = answer(services, "", 202);
    response.content_type = "";
    return response;
  }
  return deployment_result(services, made->id, made->version);
}

namespace {

/// Marathon's reasons in its order, and which of ours each stands for.
struct RejectReason {
  const char* name;
  std::vector<Dimension> dimensions;
};
const std::vector<RejectReason>& reject_reasons() {
  static const std::vector<RejectReason> all = {
      {"UnfulfilledRole", {}},
      {"UnfulfilledConstraint", {Dimension::kAttribute, Dimension::kEligibility, Dimension::kCordon}},
      {"NoCorrespondingReservationFound", {}},
      {"AgentMaintenance", {}},
      {"InsufficientCpus", {Dimension::kCpus, Dimension::kCpuAffinity}},
      {"InsufficientMemory", {Dimension::kMemory}},
      {"InsufficientDisk", {}},
      {"InsufficientGpus",
       {Dimension::kGpuCount, Dimension::kModel, Dimension::kGpuMemory, Dimension::kComputeCapability,
        Dimension::kEcc, Dimension::kDriver, Dimension::kUnhealthy, Dimension::kFreeGpus, Dimension::kShare,
        Dimension::kCapabilities, Dimension::kInterconnect, Dimension::kDifferentModels, Dimension::kGroup}},
      {"InsufficientPorts", {}},
      {"DeclinedScarceResources", {Dimension::kQuota}}};
  return all;
}

/// The one machine is the one offer: which reasons declined it.
json reject_summary(const placement::Reasons* reasons) {
  json summary = json::array();
  for (const auto& reason : reject_reasons()) {
    const bool declined =
        reasons != nullptr && std::ranges::any_of(reasons->list, [&](const placement::Reason& each) {
          return std::ranges::find(reason.dimensions, each.dimension) != reason.dimensions.end();
        });
    summary.push_back({{"reason", reason.name}, {"declined", declined ? 1 : 0}, {"processed", 1}});
  }
  return summary;
}

json offers_summary(const World& world, const std::vector<const control::TaskRecord*>& waiting) {
  const placement::Reasons* known = nullptr;
  json words = json::array();
  if (!waiting.empty()) {
    const auto& positions = world.state().positions;
    if (positions) {
      const auto found = positions->reasons.find(waiting.front()->task.id);
      if (found != positions->reasons.end()) known = &found->second;
    }
    words = control::waiting_reasons(world.state(), *waiting.front());
    if (auto block = control::upgrade_block(world.state(), waiting.front()->task.origin.name))
      words.push_back(std::move(*block));
  }
  const int tried = waiting.empty() ? 0 : 1;
  json summary = {{"processedOffersCount", tried},
                  {"unusedOffersCount", tried},
                  {"rejectSummaryLastOffers", reject_summary(known)},
                  {"rejectSummaryLaunchAttempt", reject_summary(known)},
                  {"reasons", std::move(words)}};
  if (tried > 0) summary["lastUnusedOfferAt"] = format_time(world.now());
  return summary;
}

/// One app that has fewer instances than it is to have, as text; none when it has them.
std::optional<std::string> queued(const World& world, const ServiceRecord& record, bool with_offers) {
  const auto waiting = world.waiting(record.target.id);
  const auto& applied = record.applied.id.empty() ? record.target : record.applied;
  const auto there = static_cast<int>(world.instances(record.target.id).size() + waiting.size());
  const bool delayed = record.not_before > world.steady() && there < applied.instances;
  const auto count = static_cast<int>(waiting.size()) + (delayed ? applied.instances - there : 0);
  if (count == 0) return std::nullopt;
  const auto left =
      delayed ? std::chrono::ceil<std::chrono::seconds>(record.not_before - world.steady()).count() : 0;
  auto summary = offers_summary(world, waiting);
  if (delayed)
    summary["reasons"].push_back("its instances fail: the next one is started in " + std::to_string(left) +
                                 " s");
  const auto since = waiting.empty() ? record.target.version : waiting.front()->submitted_at;
  std::string item;
  JsonWriter writer(item);
  writer.begin_object();
  writer.field_raw("app", marathon::show(record.target));
  writer.field("count", count);
  writer.field_raw("delay", fmt::format(R"({{"overdue":{},"timeLeftSeconds":{}}})", left == 0, left));
  if (with_offers) writer.field_raw("lastUnusedOffers", "[]");
  writer.field_raw("processedOffersSummary", to_text(summary));
  writer.field("since", format_time(since));
  writer.end_object();
  return item;
}

Answer write_queue(const Services& services, const Request& request, const World& world) {
  const auto embed = values(request, "embed");
  const bool with_offers = std::ranges::find(embed, "lastUnusedOffers") != embed.end();
  std::string text = R"({"queue":)";
  JsonWriter writer(text);
  writer.begin_array();
  for (const auto* record : world.services())
    if (const auto item = queued(world, *record, with_offers)) writer.raw(*item);
  writer.end_array();
  return answer(services, text + "}");
}

}  // namespace

AnswerBeside list_queue(const Services& services, const Request& request) {
  return beside_of(services, request, Scope::kAll, write_queue);
}

Answer reset_delay(const Services& services, const Request& request) {
  const World world(services, *request.caller);
  const auto id = marathon::absolute_path(request.parameters.at("id"));
  const auto* record = world.service(id);
  if (record == nullptr || !queued(world, *record, false))
    return refuse(services, 404, "Application " + id + " not found in tasks queue.");
  if (const auto done = services.decisions->change(control::event::DelayReset{id}); !done)
    return refuse(services, done.error());
  return answer(services, "", 204);
}

}  // namespace drover::api::marathon_v2
