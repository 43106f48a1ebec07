#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/ranges.h"
#include "cli/commands/commands.h"
#include "cli/commands/on_cluster.h"
#include "cli/printable.h"
#include "cli/task_flags.h"
#include "cli/whereabouts.h"
#include "cli/words.h"

namespace drover::cli {
namespace {

using nlohmann::json;

/// It could run, but not now.
constexpr int kWouldWait = 1;

struct PlanOptions {
  TaskFlags flags;
  bool json = false;
  OnCluster cluster;
  std::string file;  ///< of Pods; "": what the flags say
};

/// How the pairs of these GPUs are joined: "NV12", or "2 x NV2, 4 x NV1, 9 x SYS"; "" for fewer than two.
std::string joined(const json& grants, const json& topology) {
  std::vector<std::size_t> chosen;
  const auto gpus = topology.value("gpus", json::array());
  for (const auto& grant : grants)
    for (std::size_t i = 0; i < gpus.size(); ++i)
      if (gpus[i].value("uuid", "") == grant.value("gpu", "")) chosen.push_back(i);
  // Nearest first: more NVLinks, then what PCIe has; levels are ordered by name alone where links are equal.
  std::map<std::pair<int, std::string>, int> labels;
  for (std::size_t a = 0; a < chosen.size(); ++a)
    for (std::size_t b = a + 1; b < chosen.size(); ++b) {
      const auto& link = topology.at("links").at(chosen[a]).at(chosen[b]);
      ++labels[{-link.value("nvlinks", 0), link.value("label", "?")}];
    }
  if (labels.size() == 1) return labels.begin()->first.second;
  std::vector<std::string> words;
  for (const auto& [label, count] : labels) words.push_back(fmt::format("{} x {}", count, label.second));
  return fmt::format("{}", fmt::join(words, ", "));
}

/// "2 x NVIDIA A100, 1 x Tesla T4"; the model alone when there is one GPU.
std::string models(const json& grants, const KnownGpus& gpus) {
  std::map<std::string, int> counts;
  for (const auto& grant : grants) ++counts[gpus.model(grant.value("gpu", ""))];
  std::vector<std::string> words;
  for (const auto& [model, count] : counts)
    words.push_back(grants.size() == 1 ? model : fmt::format("{} x {}", count, model));
  return fmt::format("{}", fmt::join(words, ", "));
}

std::string place_of(const json& member, const json& share, const KnownGpus& gpus, const json& topology) {
  std::string text = "on " + member.value("node", "");
  const auto grants = member.value("gpus", json::array());
  if (!grants.empty())
    text += fmt::format(", GPU {}: {}", granted(grants, share, gpus), models(grants, gpus));
  if (const auto links = joined(grants, topology); !links.empty()) text += ", joined by " + links;
  if (const auto cpus = member.value("cpus", std::vector<int>()); !cpus.empty())
    text += ", CPU " + format_ranges(cpus);
  if (const auto nics = member.value("nics", std::vector<std::string>()); !nics.empty())
    text += fmt::format(", network card {}", fmt::join(nics, ", "));
  return text;
}

/// What each is given besides GPUs, also unasked: "  with 32 CPUs, 126 GiB", once where it is the same for
/// all.
std::string with_amounts(const json& plan) {
  const auto all = plan.value("wanted", std::vector<json>());
  const bool alike = std::ranges::all_of(all, [&](const json& one) { return one == all.front(); });
  std::string text;
  for (std::size_t rank = 0; rank < (alike ? std::min<std::size_t>(all.size(), 1) : all.size()); ++rank)
    text += fmt::format("  {}with {}\n",
                        all.size() == 1 ? ""
                        : alike         ? "each "
                                        : fmt::format("rank {} ", rank),
                        amounts(all[rank], false));
  return text;
}

std::string would_start(const json& plan, const json& share, const KnownGpus& gpus, const json& topology) {
  std::string text = "It would start now\n";
  const auto members = plan.value("members", json::array());
  for (std::size_t rank = 0; rank < members.size(); ++rank)
    text += (members.size() == 1 ? "  " : fmt::format("  rank {} ", rank)) +
            printable(place_of(members[rank], share, gpus, topology)) + "\n";
  return text + with_amounts(plan);
}

std::string would_wait(const json& plan) {
  std::string text = fmt::format("It would wait, at place {} of the queue\n", plan.value("place", 1));
  if (const int victims = plan.value("victims", 0); victims > 0) {
    text = fmt::format("It would start as soon as {} {} been ended to make room for it\n",
                       victims == 1 ? "a task" : fmt::format("{} tasks", victims),
                       victims == 1 ? "has" : "have");
    for (const auto& id : plan.value("victim_ids", json::array()))
      text += "  would end: " + id.get<std::string>() + "\n";
  }
  text += with_amounts(plan);
  for (const auto& reason : plan.value("reasons", json::array()))
    text += "  " + printable(reason.get<std::string>()) + "\n";
  for (const auto& remedy : plan.value("remedies", json::array()))
    text += "  what helps: " + printable(remedy.get<std::string>()) + "\n";
  return text;
}

/// The share that a request asks for, as a task that was accepted would show it.
json share_in(const json& body) {
  const auto share = body.value("gpu_share", json());
  if (share.is_number()) return {{"milli", static_cast<int>(share.get<double>() * 1000 + 0.5)}};
  const auto gpus = body.value("gpus", json());
  if (gpus.is_number_float() && gpus.get<double>() < 1)
    return {{"milli", static_cast<int>(gpus.get<double>() * 1000 + 0.5)}};
  return json();
}

/// What the members are granted of each GPU; by memory it is known from the grant alone.
json share_of(const json& body, const json& plan) {
  if (!body.value("gpu_share", json()).is_string()) return share_in(body);
  for (const auto& member : plan.value("members", json::array()))
    for (const auto& grant : member.value("gpus", json::array()))
      return {{"memory_bytes", grant.value("memory", std::uint64_t{0})}};
  return json();
}

Result<int> plan(Context& context, const PlanOptions& options) {
  if (options.cluster.asked)
    return plan_pods(context, options.cluster, options.file, options.flags, options.json);
  DROVER_TRY(auto request, task_request(options.flags, context.command));
  const auto client = context.client();
  DROVER_TRY(const auto body, start_here(client, context.endpoint, options.flags, std::move(request)));
  const auto answer = client.post("/v1/plan", body);
  if (!answer) return Failure(in_flags(answer.error()));
  const bool starts = answer->value("starts_now", false);
  if (options.json) {
    print_json(*answer);
  } else if (starts) {
    DROVER_TRY(const auto topology, client.get("/v1/topology"));
    if (topology.value("simulated", false))
      print(fmt::format("simulated GPUs (profile {})\n", printable(topology.value("simulation", ""))));
    print(would_start(*answer, share_of(body, *answer), KnownGpus(topology), topology));
  } else {
    print(would_wait(*answer));
  }
  return starts ? 0 : kWouldWait;
}

}  // namespace

void add_plan(CLI::App& app, Context& context) {
  auto* command =
      app.add_subcommand("plan", "Show what 'run' would do with the same flags, without doing it");
  auto options = std::make_shared<PlanOptions>();
  add_task_flags(*command, options->flags);
  command->add_flag("--json", options->json, "Print JSON");
  add_on_cluster_flags(*command, options->cluster);
  command
      ->add_option("--file,-f", options->file,
                   "Plan the Pods of this file, YAML or JSON; '-' is standard input")
      ->needs("--kube")
      ->group("On a Kubernetes cluster")
      ->type_name("FILE");
  on_call(command, context, options, plan);
}

}  // namespace drover::cli
