#include "kube/dra/publisher.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "kube/client/object.h"

namespace drover::kube::dra {
namespace {

using nlohmann::json;

/// Names of fields of devices that `kept` has not.
void find_dropped(const json& sent, const json& kept, std::set<std::string>& names) {
  if (sent.is_array() && kept.is_array()) {
    for (std::size_t i = 0; i < std::min(sent.size(), kept.size()); ++i)
      find_dropped(sent[i], kept[i], names);
    return;
  }
  if (!sent.is_object() || !kept.is_object()) return;
  for (const auto& [name, value] : sent.items())
    if (const auto found = kept.find(name); found != kept.end())
      find_dropped(value, *found, names);
    else
      names.insert(name);
}

/// Somebody has changed, made or removed a slice since we looked.
bool is_stale(const Error& error) {
  return error.kind == ErrorKind::kConflict || error.kind == ErrorKind::kNotFound;
}

}  // namespace

/// What an API server does not know it drops: a slice that nobody touched since says what was sent.
struct Publisher::Written {
  std::string resource_version;
  json sent;
};

struct Publisher::There {
  std::string node_uid;
  std::map<std::string, json> slices;  ///< by name
};

Publisher::Publisher(std::shared_ptr<SliceApi> api, std::string driver, std::string node)
    : api_(std::move(api)), driver_(std::move(driver)), node_(std::move(node)) {}

Publisher::~Publisher() = default;

void Publisher::invalidate() {
  there_.reset();
}

Result<bool> Publisher::publish(const PoolContent& content) {
  DROVER_CHECK_OK(check_names(driver_, node_));
  const bool by_memory = there_ != nullptr;
  auto published = publish_once(content);
  if (published) return published;
  there_.reset();
  if (!by_memory || !is_stale(published.error())) return published;
  published = publish_once(content);
  if (!published) there_.reset();
  return published;
}

Result<bool> Publisher::publish_once(const PoolContent& content) {
  if (!there_) DROVER_CHECK_OK(refresh());
  const auto wanted = slices_of({api_->version(), driver_, node_, there_->node_uid}, content);
  const auto changes = plan_slices(as_written(), wanted);
  if (changes.empty()) return false;
  DROVER_CHECK_OK(write(changes));
  return true;
}

Status Publisher::refresh() {
  There there;
  DROVER_TRY(there.node_uid, api_->node_uid());
  DROVER_TRY(const auto slices, api_->list());
  for (const auto& slice : slices) there.slices[text_at(slice, "/metadata/name")] = slice;
  there_ = std::make_unique<There>(std::move(there));
  return {};
}

Status Publisher::write(const SliceChanges& changes) {
  dropped_.clear();
  for (const auto& slice : changes.update) {
    DROVER_TRY(const auto kept, api_->update(slice));
    remember(slice, kept);
  }
  for (const auto& slice : changes.create) {
    DROVER_TRY(const auto kept, api_->create(slice));
    remember(slice, kept);
  }
  for (const auto& name : changes.remove) {
    DROVER_CHECK_OK(api_->remove(name));
    written_.erase(name);
    there_->slices.erase(name);
  }
  return {};
}

void Publisher::remember(const json& sent, const json& kept) {
  const auto name = text_at(sent, "/metadata/name");
  written_[name] = {text_at(kept, "/metadata/resourceVersion"), sent};
  there_->slices[name] = kept;
  std::set<std::string> names(dropped_.begin(), dropped_.end());
  const auto kept_spec = kept.value("spec", json::object());
  const auto& sent_spec = sent.at("spec");
  if (sent_spec.contains("devices"))
    find_dropped(sent_spec.at("devices"), kept_spec.value("devices", json::array()), names);
  if (sent_spec.contains("sharedCounters") && !kept_spec.contains("sharedCounters"))
    names.insert("sharedCounters");
  dropped_.assign(names.begin(), names.end());
}

std::vector<json> Publisher::as_written() const {
  std::vector<json> slices;
  for (auto [name, slice] : there_->slices) {
    const auto found = written_.find(name);
    const auto version = text_at(slice, "/metadata/resourceVersion");
    if (found != written_.end() && !version.empty() && version == found->second.resource_version)
      slice["spec"] = found->second.sent.at("spec");
    slices.push_back(std::move(slice));
  }
  return slices;
}

}  // namespace drover::kube::dra
