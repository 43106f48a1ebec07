#include "api/marathon/endpoints.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

namespace drover::api::marathon_v2 {

using control::TaskRecord;

namespace {

std::string_view without_blanks(std::string_view text) {
  constexpr std::string_view kBlanks = " \t";
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  return text.substr(0, text.find_last_not_of(kBlanks) + 1);
}

/// Cuts off what is before the mark, which goes too.
std::string_view next_part(std::string_view& rest, char mark) {
  const auto part = rest.substr(0, rest.find(mark));
  rest.remove_prefix(std::min(part.size() + 1, rest.size()));
  return without_blanks(part);
}

/// How much `type` ("text/plain") is wanted, from 0 to 1: what the range says that fits it best (RFC
/// 9110, 12.5.1).
double quality_of(std::string_view accept, std::string_view type) {
  const auto family = std::string(type.substr(0, type.find('/'))) + "/*";
  double quality = 0;
  int best = 0;
  while (!accept.empty()) {
    auto parameters = next_part(accept, ',');
    const auto range = next_part(parameters, ';');
    const int fit = range == type ? 3 : range == family ? 2 : range == "*/*" ? 1 : 0;
    if (fit <= best) continue;
    best = fit;
    quality = 1;
    while (!parameters.empty())
      if (const auto parameter = next_part(parameters, ';'); parameter.starts_with("q="))
        quality = std::strtod(std::string(parameter.substr(2)).c_str(), nullptr);
  }
  return quality;
}

/// "shop_web" of "/shop/web".
std::string flat_id(std::string_view id) {
  std::string flat(id.substr(1));
  std::ranges::replace(flat, '/', '_');
  return flat;
}

void add_line(std::string& text, const World& world, const std::vector<const TaskRecord*>& running,
              std::size_t port) {
  for (const auto* task : running)
    if (port < task->ports.size()) text += fmt::format("{}:{}\t", world.host(), task->ports[port]);
  text += '\n';
}

}  // namespace

bool prefers_text(std::string_view accept) {
  return quality_of(accept, "text/plain") > quality_of(accept, "application/json");
}

bool wants_text(const Request& request) {
  const auto found = request.headers.find("accept");
  return found != request.headers.end() && prefers_text(found->second);
}

std::string endpoints_text(const World& world, const std::vector<const control::ServiceRecord*>& apps) {
  std::string text;
  for (const auto* app : apps) {
    auto running = world.instances(app->target.id);
    std::erase_if(running, [](const auto* task) { return task->state != control::TaskState::kRunning; });
    const auto id = flat_id(app->target.id);
    const auto& ports = world.service_ports(app->target);
    for (std::size_t i = 0; i < ports.size(); ++i) {
      text += fmt::format("{}\t{}\t", id, ports[i]);
      add_line(text, world, running, i);
    }
    if (!ports.empty()) continue;
    text += id + "\t \t";
    for (std::size_t i = 0; i < running.size(); ++i) text += world.host() + "\t";
    text += '\n';
  }
  return text;
}

}  // namespace drover::api::marathon_v2
