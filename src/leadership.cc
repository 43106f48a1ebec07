#include "leadership.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <random>
#include <utility>

#include "node.h"

namespace drover {

kube::LeaseOptions lease_of(const std::string& name_space, const std::string& name) {
  kube::LeaseOptions lease;
  lease.name_space = name_space.empty() ? "default" : name_space;
  lease.name = name;
  lease.identity = fmt::format("{}_{:08x}", host_name(), std::random_device()());
  return lease;
}

Leadership::Leadership(kube::Api& api, kube::LeaseOptions lease)
    : lease_(lease.name_space + "/" + lease.name),
      election_(api, std::move(lease),
                {.on_started = [this] { started_ = true; },
                 .on_lost = [this] { lost(); },
                 .on_trouble = [](const Error& error) { spdlog::warn("{}", to_string(error)); }}) {}

bool Leadership::may_begin() const {
  return started_ && is_leader() && election_.candidate().safe_from() <= kube::LeaseClocks::since_boot();
}

void Leadership::lost() const {
  if (ending_) return;
  spdlog::error("Another has taken the lease '{}', or it could not be renewed: ending at once", lease_);
  std::_Exit(EXIT_FAILURE);
}

Result<nlohmann::json> FencedApi::send(const kube::ApiRequest& request, const std::stop_token& stop,
                                       const kube::TakeItem& take) {
  const bool reads = request.verb == "get" || request.verb == "list";
  if (reads || leadership_.is_leader()) return api_.send(request, stop, take);
  return fail(ErrorKind::kUnavailable, "Nothing is written: the lease may be another's by now");
}

}  // namespace drover
