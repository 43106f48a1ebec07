#include <nlohmann/json.hpp>

#include "base/decode.h"
#include "fuzz.h"
#include "marathon/group.h"
#include "marathon/path.h"

namespace {

drover::workload::Service service(const char* id) {
  auto app = drover::marathon::decode_app({{"id", id}, {"cmd", "sleep 1"}}, {});
  return std::move(app->service);
}

}  // namespace

/// A change of a group stays within it, and keeps only what was there.
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace drover;
  static const auto web = service("/shop/web"), main = service("/shop/db/main");
  const auto body = parse_json(fuzz::text_of(data, size), "It");
  if (!body) return 0;
  const marathon::GroupContents existing{.apps = {{web.id, &web}, {main.id, &main}},
                                         .groups = {{"/shop", {}}, {"/shop/db", {"/other"}}}};
  const auto change = marathon::decode_group("/shop", *body, existing, {});
  if (!change) {
    fuzz::require(!change.error().message.empty() && !marathon::to_json_text(change.error()).empty());
    return 0;
  }
  for (const auto& app : change->apps) {
    fuzz::require(marathon::is_within(app.service.id, change->id));
    fuzz::require(!change->kept.contains(app.service.id));
    fuzz::require(change->groups.contains(marathon::parent_path(app.service.id)));
  }
  for (const auto& id : change->kept) fuzz::require(existing.apps.contains(id));
  for (const auto& [id, dependencies] : change->groups) fuzz::require(marathon::is_within(id, change->id));
  return 0;
}
