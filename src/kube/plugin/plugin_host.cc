#include "kube/plugin/plugin_host.h"

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/pause.h"
#include "kube/plugin/service.h"
#include "kube/rpc/channel.h"
#include "kube/rpc/socket_server.h"
#include "protocol/device_plugin.grpc.pb.h"

namespace drover::kube {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kRegistrationPatience{5};
// A kubelet that took the registration watches the devices at once.
constexpr std::chrono::seconds kWatchPatience{10};
// A kubelet's socket stands there a moment before the kubelet listens.
constexpr std::chrono::milliseconds kFirstRetry{5};
constexpr std::size_t kShownOfName = 32;

/// FNV-1a.
std::uint32_t hash_of(std::string_view text) {
  std::uint32_t hash = 2166136261U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  return hash;
}

}  // namespace

std::string plugin_socket_name(const std::string& resource) {
  const auto name = resource.substr(resource.find('/') + 1).substr(0, kShownOfName);
  return fmt::format("drover-{}-{:08x}.sock", name, hash_of(resource));
}

struct PluginHost::Plugin {
  Plugin(Pool& pool, const std::string& resource, std::function<void()> unwatched,
         std::chrono::milliseconds longest_retry)
      : service(pool, resource, std::move(unwatched)), retries(kFirstRetry, longest_retry) {}

  PluginService service;
  std::optional<SocketServer> server;
  FileIdentity registered;            ///< at which socket of the kubelet's
  Clock::time_point registered_when;  ///< there
  int watches = 0;                    ///< until then
  std::string complaint;              ///< that was told last
  FileIdentity tried;                 ///< the kubelet's socket, at the last try
  Backoff retries;
};

PluginHost::PluginHost(Pool& pool, PluginHostOptions options)
    : pool_(pool),
      options_(std::move(options)),
      folder_(options_.folder),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

PluginHost::~PluginHost() {
  thread_.request_stop();
  folder_.wake();
  thread_.join();
}

void PluginHost::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    for (const auto& resource : pool_.offers()) {
      auto& plugin = plugins_[resource.name];
      if (!plugin)
        plugin = std::make_unique<Plugin>(
            pool_, resource.name, [this] { folder_.wake(); }, options_.poll_interval);
    }
    auto wait = options_.poll_interval;
    for (auto& [name, plugin] : plugins_)
      if (!stop.stop_requested()) wait = std::min(wait, maintain(*plugin));
    folder_.wait(wait);
  }
  plugins_.clear();
}

/// How long it may be left alone.
std::chrono::milliseconds PluginHost::maintain(Plugin& plugin) {
  const auto now = Clock::now();
  const auto kubelet = identity_of(options_.folder + "/kubelet.sock");
  const bool is_awaited =
      plugin.service.watches() == plugin.watches && now - plugin.registered_when < kWatchPatience;
  const bool is_served = plugin.server && plugin.server->is_there();
  const bool is_known = plugin.registered == kubelet && (plugin.service.is_watched() || is_awaited);
  if (kubelet == FileIdentity() || (is_served && is_known)) return options_.poll_interval;
  if (std::exchange(plugin.tried, kubelet) != kubelet) plugin.retries.reset();
  if (!is_served) {
    plugin.server.reset();
    auto made = SocketServer::listen(options_.folder + "/" + plugin_socket_name(plugin.service.resource()),
                                     {plugin.service.service()});
    if (made)
      plugin.server = std::move(*made);
    else if (plugin.complaint != made.error().message)
      options_.warn(plugin.complaint = made.error().message);
  }
  plugin.watches = plugin.service.watches();
  if (plugin.server && register_plugin(plugin)) {
    plugin.registered = kubelet;
    plugin.registered_when = now;
    plugin.complaint.clear();
    return options_.poll_interval;
  }
  plugin.registered = {};
  return plugin.retries.next();
}

bool PluginHost::register_plugin(Plugin& plugin) {
  v1beta1::RegisterRequest request;
  request.set_version("v1beta1");
  request.set_endpoint(plugin_socket_name(plugin.service.resource()));
  request.set_resource_name(plugin.service.resource());
  request.mutable_options()->set_get_preferred_allocation_available(true);
  request.mutable_options()->set_pre_start_required(pool_.is_asked_at_start());
  grpc::ClientContext context;
  give_up_after(context, kRegistrationPatience);
  v1beta1::Empty nothing;
  const auto status = v1beta1::Registration::NewStub(connect_to(options_.folder + "/kubelet.sock"))
                          ->Register(&context, request, &nothing);
  if (status.ok()) {
    options_.info(fmt::format("registered {} with the kubelet", plugin.service.resource()));
    return true;
  }
  const auto complaint = fmt::format("the kubelet did not take the registration of {}: {}",
                                     plugin.service.resource(), why_failed(status));
  if (plugin.complaint != complaint) options_.warn(plugin.complaint = complaint);
  return false;
}

}  // namespace drover::kube
