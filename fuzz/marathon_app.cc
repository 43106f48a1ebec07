#include <nlohmann/json.hpp>

#include "base/decode.h"
#include "fuzz.h"
#include "marathon/app.h"

/// What is shown of an app defines the same app again, and a change that says nothing changes nothing.
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace drover;
  const auto body = parse_json(fuzz::text_of(data, size), "It");
  if (!body) return 0;
  const marathon::Options options;
  const auto app = marathon::decode_app(*body, options);
  if (!app) {
    fuzz::require(!app.error().message.empty() && !marathon::to_json_text(app.error()).empty());
    return 0;
  }
  const auto& service = app->service;
  const auto stored = workload::decode_service(workload::encode(service));
  fuzz::require(stored && *stored == service);
  auto shown = nlohmann::json::parse(marathon::show(service));
  shown.erase("version");
  shown.erase("versionInfo");
  const auto again = marathon::decode_app(shown, options);
  fuzz::require(again && again->service == service && again->user == app->user);
  const auto same = marathon::update_app(service, nlohmann::json::object(), options);
  fuzz::require(same && workload::same_configuration(same->service, service));
  return 0;
}
