#include "kube/dra/driver.h"

#include <fmt/format.h>

#include <condition_variable>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <utility>

#include "kube/dra/attributes.h"
#include "kube/dra/health_board.h"
#include "kube/dra/services.h"
#include "kube/dra/status_writer.h"
#include "kube/rpc/kubelet_plugin.h"

namespace drover::kube::dra {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::seconds kRetry{5};
constexpr std::chrono::seconds kRecheck{60};
/// A kubelet that just started may still delete what an older registration left: its own patience is 30 s.
constexpr std::chrono::seconds kUneasy{60};
/// API servers before refuse a slice with one: "Valid effects are NoSchedule and NoExecute".
constexpr ServerVersion kInformationalTaints{1, 35};

std::map<std::string, NodeGpu> gpus_of(const View& view, Sharing sharing) {
  std::map<std::string, NodeGpu> gpus;
  for (const auto& device : view.inventory.devices) {
    for (const auto& mig : mig_devices_of(view, device))
      gpus.emplace(mig.name,
                   NodeGpu{mig.fixed ? mig.uuid : device.uuid, std::nullopt, mig.part, mig.fixed, ""});
    const auto name = device_name(device);
    if (!name || device.mig == gpu::MigMode::kEnabled) continue;
    NodeGpu gpu{.uuid = device.uuid, .unhealthy = device.unhealthy};
    if (device.memory_bytes)
      gpu.memory_bytes = static_cast<std::int64_t>(memory_offered(*device.memory_bytes, sharing));
    gpus.emplace(*name, std::move(gpu));
  }
  return gpus;
}

std::vector<DeviceReport> reports_of(const View& view) {
  std::vector<DeviceReport> reports;
  for (const auto& device : view.inventory.devices) {
    for (const auto& mig : mig_devices_of(view, device))
      reports.push_back({mig.name, ailment_of(view, device, mig)});
    if (const auto name = device_name(device); name && device.mig != gpu::MigMode::kEnabled)
      reports.push_back({*name, ailment_of(view, device)});
  }
  return reports;
}

std::set<gpu::MigPart> instances_of(const View& view) {
  std::set<gpu::MigPart> parts;
  for (const auto& [gpu, mig] : view.mig)
    for (const auto& instance : mig.instances) parts.insert({gpu, instance.profile_id, instance.placement});
  return parts;
}

/// Whether it has a device of this name, or one that begins so and goes on with a share's.
bool names_device(std::string_view specification, const std::string& name) {
  for (auto at = specification.find(name); at != std::string_view::npos;
       at = specification.find(name, at + 1)) {
    const auto next = specification.substr(at + name.size(), 1);
    if (next.find_first_of("0123456789") == std::string_view::npos) return true;
  }
  return false;
}

std::string plugin_folder_of(const DriverOptions& options) {
  return options.kubelet_folder + "/plugins/" + options.driver;
}

ClaimFolders files_of(const DriverOptions& options) {
  return {plugin_folder_of(options), options.cdi_folder, cdi_vendor(options.driver),
          shares_folder(options.kubelet_folder, options.driver)};
}

}  // namespace

struct Driver::Impl {
  Impl(DriverOptions given, std::shared_ptr<ClaimSource> claims, std::shared_ptr<SliceApi> slices,
       FindEdits edits, std::shared_ptr<MigInstances> mig, std::shared_ptr<ClaimSharing> sharing)
      : options(std::move(given)),
        source(std::move(claims)),
        preparer({.driver = options.driver,
                  .pool = options.node,
                  .source = source,
                  .files = std::make_shared<ClaimFolders>(files_of(options)),
                  .edits = std::move(edits),
                  .mig = std::move(mig),
                  .sharing = std::move(sharing),
                  .share_by = options.share_by,
                  .take = options.take,
                  .warn = options.warn}),
        statuses({.owner = {options.driver, options.node},
                  .source = source,
                  .entries = [this](const std::string& uid) { return preparer.statuses(uid); },
                  .warn = options.warn}),
        publisher(std::move(slices), options.driver, options.node),
        services({.driver = options.driver,
                  .pool = options.node,
                  .prepare = [this](const ClaimReference& claim) { return prepare(claim); },
                  .unprepare = [this](const std::string& uid) { return unprepare(uid); }},
                 board),
        plugin({.kubelet_folder = options.kubelet_folder,
                .type = "DRAPlugin",
                .name = options.driver,
                .socket = "dra.sock",
                .versions = Services::names(),
                .registered = [this](const std::string& error) { registered(error); }},
               services.all()),
        server_thread([this](const std::stop_token& stop) { serve(stop); }),
        api_thread([this](const std::stop_token& stop) { talk_to_api(stop); }) {}

  ~Impl() {
    server_thread.request_stop();
    api_thread.request_stop();
    server_thread.join();
    api_thread.join();
  }

  void notify(const std::function<void(const std::string&)>& whom, const std::string& text) const {
    if (whom) whom(text);
  }

  /// Notes what is wrong, and tells it once.
  void note(std::string DriverState::* field, const Status& status) {
    const auto text = status ? "" : to_string(status.error());
    {
      const std::scoped_lock lock(mutex);
      if (std::exchange(state.*field, text) == text) return;
    }
    if (!text.empty()) notify(options.warn, text);
  }

  Result<PreparedClaim> prepare(const ClaimReference& claim) {
    const auto start = std::chrono::steady_clock::now();
    auto prepared = preparer.prepare(claim);
    if (options.prepared) options.prepared(std::chrono::steady_clock::now() - start);
    if (prepared)
      statuses.prepared(claim);
    else
      notify(options.warn,
             fmt::format("the claim {} was not prepared: {}", to_string(claim), to_string(prepared.error())));
    return prepared;
  }

  Status unprepare(const std::string& uid) {
    auto done = preparer.unprepare(uid);
    if (done)
      statuses.unprepared(uid);
    else
      notify(options.warn,
             fmt::format("the claim '{}' was not taken back: {}", uid, to_string(done.error())));
    return done;
  }

  void registered(const std::string& error) {
    note(&DriverState::registration,
         error.empty() ? Status()
                       : fail(ErrorKind::kConflict, "the kubelet does not take the driver: " + error));
    const std::scoped_lock lock(mutex);
    state.registered = error.empty();
    uneasy_until = steady_clock::now() + kUneasy;
    next_check = steady_clock::now();
    wake.notify_all();
  }

  void serve(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      note(&DriverState::sockets, plugin.keep());
      std::unique_lock lock(mutex);
      wake_server.wait_for(lock, stop, options.poll_interval, [] { return false; });
    }
  }

  void talk_to_api(const std::stop_token& stop) {
    bool recovered = false;
    while (!stop.stop_requested()) {
      std::optional<View> now;
      {
        std::unique_lock lock(mutex);
        wake.wait_until(lock, stop, next_check,
                        [&] { return view && (changed || steady_clock::now() >= next_check); });
        if (stop.stop_requested()) return;
        if (!view) {
          next_check = steady_clock::now() + kRecheck;
          continue;
        }
        if (!changed || steady_clock::now() >= next_check) publisher.invalidate();
        changed = false;
        now = view;
      }
      if (!recovered) {
        const auto status = recover();
        note(&DriverState::recovery, status);
        recovered = status.has_value();
      }
      const auto published = publish(*now);
      preparer.destroy_left();  // may wait for a claim that is being prepared
      const std::scoped_lock lock(mutex);
      const auto pause = published && recovered && steady_clock::now() > uneasy_until ? kRecheck : kRetry;
      next_check = steady_clock::now() + pause;
    }
  }

  Status recover() {
    DROVER_CHECK_OK(preparer.recover());
    DROVER_CHECK_OK(preparer.restore());
    for (const auto& [uid, claim] : preparer.book()) statuses.prepared(claim.reference);
    return {};
  }

  bool publish(View now) {
    if (!now.mig.empty()) {
      auto made = preparer.made();
      if (!made) return false;
      now.made = std::move(*made);
    }
    if (!server_asked) ask_server();
    const auto content =
        fitted({devices_of(now, options.sharing, options.driver), counter_sets_of(now)}, server);
    const auto published = publisher.publish(content);
    note(&DriverState::slices, published.map([](bool) {}));
    if (!published) server_asked = false;  // it may be another one when it answers again
    if (!published || !*published) return published.has_value();
    notify(options.info,
           fmt::format("{} devices are in the ResourceSlices of this node", content.devices.size()));
    const auto& dropped = publisher.dropped();
    if (!dropped.empty())
      notify(options.warn,
             fmt::format("the API server does not keep what it is told of devices in {}: its version or its "
                         "feature gates do not know it",
                         fmt::join(dropped, ", ")));
    const auto drops = [&](std::string_view field) {
      return std::ranges::find(dropped, field) != dropped.end();
    };
    const bool less = (server.counters && drops("consumesCounters")) || (server.taints && drops("taints"));
    server.counters = server.counters && !drops("consumesCounters");
    server.taints = server.taints && !drops("taints");
    return !less || publish(std::move(now));
  }

  /// One that does not say its version is taken for an old one.
  void ask_server() {
    const auto version = publisher.server_version();
    server_asked = version.has_value();
    server.informational_taints = version && *version >= kInformationalTaints;
  }

  DriverOptions options;
  HealthBoard board;
  std::shared_ptr<ClaimSource> source;
  Preparer preparer;
  StatusWriter statuses;      ///< asks the preparer
  Publisher publisher;        ///< this and the next two: the API thread's
  ServerKnows server;         ///< as far as it has shown
  bool server_asked = false;  ///< for its version, since it failed last
  Services services;

  mutable std::mutex mutex;  ///< of what follows
  std::condition_variable_any wake, wake_server;
  DriverState state;
  std::optional<View> view;
  bool changed = false;
  steady_clock::time_point next_check = steady_clock::now();
  steady_clock::time_point uneasy_until;

  KubeletPlugin plugin;  ///< the serving thread's; goes before what its calls use
  std::jthread server_thread, api_thread;
};

Driver::Driver(DriverOptions options, std::shared_ptr<ClaimSource> claims, std::shared_ptr<SliceApi> slices,
               FindEdits edits, std::shared_ptr<MigInstances> mig, std::shared_ptr<ClaimSharing> sharing)
    : impl_(std::make_unique<Impl>(std::move(options), std::move(claims), std::move(slices), std::move(edits),
                                   std::move(mig), std::move(sharing))) {}

Driver::~Driver() = default;

void Driver::update(View view) {
  impl_->preparer.saw_instances(instances_of(view));
  auto known = view;
  known.made = impl_->preparer.made().value_or(std::set<gpu::MigPart>());
  impl_->preparer.set_gpus(gpus_of(known, impl_->options.sharing));
  impl_->board.post(reports_of(known));
  const std::scoped_lock lock(impl_->mutex);
  if (impl_->view == view) return;
  impl_->view = std::move(view);
  impl_->changed = true;
  impl_->wake.notify_all();
}

DriverState Driver::state() const {
  const std::scoped_lock lock(impl_->mutex);
  return impl_->state;
}

std::string shares_folder(const std::string& kubelet_folder, const std::string& driver) {
  return kubelet_folder + "/plugins/" + driver + "/shares";
}

std::vector<ClaimShare> Driver::shares() const {
  return impl_->preparer.shares();
}

Result<std::set<std::string>> gpus_left_in_use(const DriverOptions& options,
                                               const gpu::Inventory& inventory) {
  auto files = files_of(options);
  const auto text = files.read_checkpoint();
  if (text && *text)
    if (const auto book = read_book(**text)) return gpus_in_use(*book);
  DROVER_TRY(const auto specifications, files.read_specifications());
  std::set<std::string> uuids;
  for (const auto& device : inventory.devices)
    if (const auto name = device_name(device))
      for (const auto& [uid, specification] : specifications)
        if (names_device(specification, uid + "-" + *name)) uuids.insert(device.uuid);
  return uuids;
}

Result<std::set<gpu::MigPart>> Driver::mig_instances() const {
  return impl_->preparer.made();
}

}  // namespace drover::kube::dra
