#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "api/chronos/handlers.h"
#include "api/chronos/job_view.h"
#include "api/mesos/master.h"

namespace drover::api::chronos {
namespace {

using nlohmann::ordered_json;

constexpr std::array<std::pair<std::string_view, double>, 5> kPercentiles = {{{"99thPercentile", 0.99},
                                                                              {"98thPercentile", 0.98},
                                                                              {"95thPercentile", 0.95},
                                                                              {"75thPercentile", 0.75},
                                                                              {"median", 0.5}}};

}  // namespace

Result<Response> get_job_statistics(const Services& services, const Request& request) {
  DROVER_TRY(const auto* record, find_job(services, request));
  return json_text(encode_statistics(services.decisions->state(), *record, services.decisions->now()));
}

/// The longest first.
AnswerBeside get_statistics(const Services& services, const Request& request) {
  const auto& wanted = request.parameters.at("statistic");
  std::optional<double> part;
  for (const auto& [name, value] : kPercentiles)
    if (name == wanted) part = value;
  if (!part && wanted != "mean")
    return fail(ErrorKind::kInvalid, fmt::format("There is no statistic '{}'", wanted),
                "there are 99thPercentile, 98thPercentile, 95thPercentile, 75thPercentile, median and mean");
  return beside_of(services, request, [part](const control::State& state, const Request& asked) {
    std::vector<std::pair<double, std::string>> times;
    each_job(state, asked, [&](const control::ScheduleRecord& record) {
      times.emplace_back(-(part ? percentile(record, *part) : mean(record)) / 1000, record.schedule.name);
    });
    std::ranges::sort(times);
    auto shown = ordered_json::array();
    for (const auto& [time, name] : times) shown.push_back({{"jobNameLabel", name}, {"time", -time}});
    return json_text(shown.dump());
  });
}

AnswerBeside get_graph_dot(const Services& services, const Request& request) {
  return beside_of(services, request, [](const control::State& state, const Request& asked) {
    std::string nodes, links;
    each_job(state, asked, [&](const control::ScheduleRecord& record) {
      const auto& name = record.schedule.name;
      nodes += fmt::format("  \"{}\" [ label=\"{}\" ];\n", name, name);
      for (const auto& parent : record.schedule.parents)
        links += fmt::format("  \"{}\" -> \"{}\";\n", parent, name);
    });
    return plain_text("digraph G {\n" + nodes + links + "}\n");
  });
}

AnswerBeside get_graph_csv(const Services& services, const Request& request) {
  return beside_of(services, request, [](const control::State& state, const Request& asked) {
    std::string nodes, links;
    each_job(state, asked, [&](const control::ScheduleRecord& record) {
      const auto& name = record.schedule.name;
      nodes += fmt::format("node,{},{},{}\n", name, status_of(record), state_of(state, record));
      for (const auto& parent : record.schedule.parents) links += fmt::format("link,{},{}\n", parent, name);
    });
    return plain_text(nodes + links);
  });
}

Result<Response> get_leader(const Services& services, const Request&) {
  return json_text(ordered_json({{"leader", services.address}}).dump());
}

}  // namespace drover::api::chronos
