#include "kube/scheduler/gangs/member.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/shorten.h"
#include "base/text.h"
#include "kube/scheduler/fields.h"

namespace drover::kube::scheduler {
namespace {

using nlohmann::json;

const Resource kPodGroups{"scheduling.k8s.io", "v1beta1", "podgroups"};
const Resource kCoschedulingGroups{"scheduling.x-k8s.io", "v1alpha1", "podgroups"};
const Resource kVolcanoGroups{"scheduling.volcano.sh", "v1beta1", "podgroups"};
const Resource kKaiGroups{"scheduling.run.ai", "v2alpha2", "podgroups"};
const Resource kLeaderWorkerSets{"leaderworkerset.x-k8s.io", "v1", "leaderworkersets"};
const Resource kJobSets{"jobset.x-k8s.io", "v1alpha2", "jobsets"};
const Resource kJobs{"batch", "v1", "jobs"};

constexpr const char* kOf = "drover/gang-of";

// As labels or annotations; the rank among the pods of one controller.
constexpr std::array kRanks{kGangRank,
                            "batch.kubernetes.io/job-completion-index",
                            "leaderworkerset.sigs.k8s.io/worker-index",
                            "training.kubeflow.org/replica-index",
                            "volcano.sh/task-index",
                            "apps.kubernetes.io/pod-index"};

template <typename Number>
std::optional<Number> parse_number(std::string_view text, Number least) {
  Number number{};
  const auto* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || at != end || number < least) return std::nullopt;
  return number;
}

class GangMemberReader {
 public:
  explicit GangMemberReader(const json& pod)
      : pod_(pod),
        metadata_(reader_.object(pod, "metadata")),
        spec_(reader_.object(pod, "spec")),
        labels_(reader_.text_map(metadata_, "labels")),
        annotations_(reader_.text_map(metadata_, "annotations")) {
    for (const auto& owner : reader_.objects(metadata_, "ownerReferences"))
      if (reader_.flag(owner, "controller")) controller_ = &owner;
  }

  Result<std::optional<GangMember>> read() {
    auto member = find();
    if (member) {
      member->gang.name_space = reader_.text(metadata_, "namespace");
      member->rank = rank(member->gang.kind);
      member->arrangement = arrangement();
      member->succeeded = reader_.text(reader_.object(pod_, "status"), "phase") == "Succeeded";
    }
    DROVER_CHECK_OK(reader_.status(fmt::format("the pod '{}'", shortened(key_of(pod_)))));
    return member;
  }

 private:
  using Find = std::optional<GangMember> (GangMemberReader::*)();

  std::optional<GangMember> find() {
    static constexpr Find kFinds[] = {&GangMemberReader::native,
                                      &GangMemberReader::ours,
                                      &GangMemberReader::coscheduling,
                                      &GangMemberReader::volcano,
                                      &GangMemberReader::kai,
                                      &GangMemberReader::kueue,
                                      &GangMemberReader::leader_worker_set,
                                      &GangMemberReader::job_of_choice,
                                      &GangMemberReader::job_set,
                                      &GangMemberReader::kubeflow};
    for (const auto find : kFinds)
      if (auto member = (this->*find)()) return member;
    return std::nullopt;
  }

  std::optional<GangMember> native() {
    const auto name = reader_.text(reader_.object(spec_, "schedulingGroup"), "podGroupName");
    return of_object(GangKind::kPodGroup, name, kPodGroups, "PodGroup");
  }

  std::optional<GangMember> ours() {
    const auto has_size = annotations_.contains(kGangSize);
    auto name = label(kGangName);
    if (name.empty() && has_size && controller_ != nullptr)
      name = fmt::format("{}/{}", reader_.text(*controller_, "kind"), reader_.text(*controller_, "name"));
    if (name.empty()) {
      if (has_size)
        reader_.mistake(
            fmt::format("it has the annotation '{}', and neither a controller nor the label "
                        "'{}' that names the gang",
                        kGangSize, kGangName));
      return std::nullopt;
    }
    return sized(GangKind::kDrover, std::move(name), kGangSize);
  }

  std::optional<GangMember> coscheduling() {
    return of_object(GangKind::kCoscheduling, label("scheduling.x-k8s.io/pod-group"), kCoschedulingGroups,
                     "PodGroup");
  }

  std::optional<GangMember> volcano() {
    auto name = annotation("scheduling.k8s.io/group-name");
    if (name.empty()) name = annotation("scheduling.volcano.sh/group-name");
    if (name.empty()) return std::nullopt;
    constexpr auto* kLeast = "scheduling.volcano.sh/group-min-member";
    auto member = annotations_.contains(kLeast)
                      ? sized(GangKind::kVolcano, name, kLeast)
                      : of_object(GangKind::kVolcano, name, kVolcanoGroups, "PodGroup");
    member->subgroup = annotation("volcano.sh/task-spec");
    return member;
  }

  std::optional<GangMember> kai() {
    auto member = of_object(GangKind::kKai, annotation("pod-group-name"), kKaiGroups, "PodGroup");
    if (member) member->subgroup = label("kai.scheduler/subgroup-name");
    return member;
  }

  std::optional<GangMember> kueue() {
    auto name = label("kueue.x-k8s.io/pod-group-name");
    if (name.empty()) return std::nullopt;
    return sized(GangKind::kKueue, std::move(name), "kueue.x-k8s.io/pod-group-total-count");
  }

  std::optional<GangMember> leader_worker_set() {
    const auto set = label("leaderworkerset.sigs.k8s.io/name");
    if (label("leaderworkerset.sigs.k8s.io/group-key").empty() || set.empty() || opted_out()) return {};
    auto member = of_object(GangKind::kLeaderWorkerSet, set, kLeaderWorkerSets, "LeaderWorkerSet");
    member->gang.name = fmt::format("{}-{}", set, label("leaderworkerset.sigs.k8s.io/group-index"));
    return member;
  }

  std::optional<GangMember> job_of_choice() {
    const auto choice = annotation(kOf);
    if (choice.empty() || choice == "none") return std::nullopt;
    if (choice == "job" && controller_ != nullptr && reader_.text(*controller_, "kind") == "Job")
      return of_object(GangKind::kJob, reader_.text(*controller_, "name"), kJobs, "Job");
    reader_.mistake(choice == "job"
                        ? fmt::format("it has the annotation '{}: job', and belongs to no Job", kOf)
                        : fmt::format("the annotation '{}' is '{}', and neither 'job' nor 'none'", kOf,
                                      shortened(choice)));
    return std::nullopt;
  }

  std::optional<GangMember> job_set() {
    if (opted_out()) return std::nullopt;
    return of_object(GangKind::kJobSet, label("jobset.sigs.k8s.io/jobset-name"), kJobSets, "JobSet");
  }

  std::optional<GangMember> kubeflow() {
    if (controller_ == nullptr || opted_out()) return std::nullopt;
    const auto version = reader_.text(*controller_, "apiVersion");
    constexpr std::string_view kGroup = "kubeflow.org/";
    const auto kind = reader_.text(*controller_, "kind");
    if (!version.starts_with(kGroup) || !kind.ends_with("Job")) return std::nullopt;
    return of_object(GangKind::kKubeflow, label("training.kubeflow.org/job-name"),
                     {"kubeflow.org", version.substr(kGroup.size()), lower(kind) + "s"}, kind);
  }

  std::optional<GangMember> of_object(GangKind kind, const std::string& name, Resource resource,
                                      std::string object_kind) {
    if (name.empty()) return std::nullopt;
    GangMember member{{kind, "", name}};
    member.object = GangObject{std::move(resource), std::move(object_kind), name};
    return member;
  }

  std::optional<GangMember> sized(GangKind kind, std::string name, const char* key) {
    const auto text = annotation(key);
    GangMember member{{kind, "", std::move(name)}};
    member.size = parse_number(text, 1);
    if (!member.size)
      reader_.mistake(text.empty()
                          ? fmt::format("it belongs to the gang '{}', and has no annotation '{}' that "
                                        "says of how many pods",
                                        shortened(member.gang.name), key)
                          : fmt::format("the annotation '{}' is '{}', and no whole number from 1 on", key,
                                        shortened(text)));
    return member;
  }

  std::vector<std::int64_t> rank(GangKind kind) {
    std::vector<std::int64_t> rank;
    const auto add = [&](std::string_view key) {
      const auto number = parse_number(either(key), std::int64_t{0});
      if (number) rank.push_back(*number);
      return number.has_value();
    };
    if (kind == GangKind::kJobSet && !add("jobset.sigs.k8s.io/job-global-index"))
      add("jobset.sigs.k8s.io/job-index");
    if (kind == GangKind::kKubeflow) rank.push_back(leads() ? 0 : 1);
    std::ranges::any_of(kRanks, add);
    if (const auto ours = either(kGangRank); !ours.empty() && !parse_number(ours, std::int64_t{0}))
      reader_.mistake(fmt::format("'{}' is '{}', and no whole number from 0 on", kGangRank, shortened(ours)));
    return rank;
  }

  bool leads() {
    const auto type = label("training.kubeflow.org/replica-type");
    return type == "master" || type == "chief" || type == "launcher";
  }

  std::optional<placement::Arrangement> arrangement() {
    const auto word = annotation(kGangArrangement);
    if (word.empty()) return std::nullopt;
    if (word == "pack") return placement::Arrangement::kPack;
    if (word == "spread") return placement::Arrangement::kSpread;
    if (word == "any") return placement::Arrangement::kAny;
    reader_.mistake(fmt::format("the annotation '{}' is '{}', and neither 'pack', 'spread' nor 'any'",
                                kGangArrangement, shortened(word)));
    return std::nullopt;
  }

  bool opted_out() { return annotation(kOf) == "none"; }
  std::string label(std::string_view key) { return value(labels_, key); }
  std::string annotation(std::string_view key) { return value(annotations_, key); }
  std::string either(std::string_view key) {
    auto text = label(key);
    return text.empty() ? annotation(key) : text;
  }
  static std::string value(const std::map<std::string, std::string, std::less<>>& map, std::string_view key) {
    const auto found = map.find(key);
    return found == map.end() ? "" : found->second;
  }

  FieldReader reader_;
  const json& pod_;
  const json& metadata_;
  const json& spec_;
  std::map<std::string, std::string, std::less<>> labels_;
  std::map<std::string, std::string, std::less<>> annotations_;
  const json* controller_ = nullptr;
};

}  // namespace

std::string describe(const GangIdentity& gang) {
  return fmt::format("{}/{}", shortened(gang.name_space), shortened(gang.name));
}

Result<std::optional<GangMember>> read_gang_member(const json& pod) {
  return GangMemberReader(pod).read();
}

}  // namespace drover::kube::scheduler
