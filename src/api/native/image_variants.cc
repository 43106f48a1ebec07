// Which variant of an image this machine takes.

#include <nlohmann/json.hpp>

#include "api/async.h"
#include "api/native/handlers.h"
#include "engine/variants.h"

namespace drover::api {
namespace {

using nlohmann::json;

json text_or_null(const std::string& text) {
  return text.empty() ? json() : json(text);
}

json view_of_case(const engine::VariantsView& view, const engine::VariantsView::Case& one) {
  json shown = {
      {"gpu", nullptr}, {"compute_capability", nullptr}, {"chosen", nullptr}, {"verdicts", json::array()}};
  if (!one.devices.empty()) {
    shown["gpu"] = one.devices.front().model;
    if (const auto& capability = one.devices.front().compute_capability)
      shown["compute_capability"] =
          std::to_string(capability->major) + "." + std::to_string(capability->minor);
  }
  if (one.choice.chosen) shown["chosen"] = view.variants[*one.choice.chosen].needs.name;
  for (std::size_t i = 0; i < view.variants.size(); ++i)
    shown["verdicts"].push_back({{"name", view.variants[i].needs.name},
                                 {"fits", one.choice.misfits[i].empty()},
                                 {"chosen", one.choice.chosen == i},
                                 {"reason", one.choice.misfits[i]}});
  return shown;
}

json view_of_variants(const engine::VariantsView& view, const std::string& image) {
  json variants = json::array();
  for (const auto& variant : view.variants)
    variants.push_back({{"name", variant.needs.name},
                        {"image", variant.reference},
                        {"needs", gpu::describe(variant.needs)}});
  json cases = json::array();
  for (const auto& one : view.cases) cases.push_back(view_of_case(view, one));
  return {{"image", image},
          {"profile", text_or_null(view.profile)},
          {"cpu", text_or_null(gpu::describe_cpu(view.machine.cpu))},
          {"driver_version", text_or_null(view.machine.driver)},
          {"cuda_version", text_or_null(view.machine.cuda)},
          {"variants", std::move(variants)},
          {"cases", std::move(cases)}};
}

}  // namespace

asio::awaitable<Result<Response>> list_image_variants(const Services& services, const Request& request) {
  Query query(request);
  const auto profile = query.text("profile");
  DROVER_CO_CHECK_OK(query.finish());
  const auto image = request.parameters.at("name");
  auto& daemon = *services.daemon;
  const auto start = [&](auto done) {
    daemon.image_variants(*request.caller, image, profile, std::move(done));
  };
  DROVER_CO_TRY(const auto view, co_await callback_result<Result<engine::VariantsView>>(start));
  co_return json_response(view_of_variants(view, image));
}

}  // namespace drover::api
