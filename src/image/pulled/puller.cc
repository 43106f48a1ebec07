#include "image/pulled/puller.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/statvfs.h>

#include <atomic>
#include <thread>

#include "base/units.h"
#include "image/digest.h"
#include "image/layout.h"
#include "image/platform.h"
#include "image/pulled/download.h"
#include "image/registry/login.h"
#include "image/stream.h"
#include "image/text.h"
#include "image/variants.h"

namespace drover::image {
namespace {

constexpr int kMaxIndexLevels = 4;
constexpr auto kReportEvery = std::chrono::milliseconds(200);

/// Tells the listener, not too often.
class ProgressReporter {
 public:
  ProgressReporter(const RegistryName& name, const PullListener& listener) : listener_(listener) {
    progress_.name = name.familiar();
  }

  void begin(const std::vector<Descriptor>& layers) {
    const std::lock_guard lock(mutex_);
    progress_.layers.clear();
    for (const auto& layer : layers) progress_.layers.push_back({layer.digest, layer.size});
    report();
  }
  void set(std::size_t index, LayerProgress::State state, bool was_here = false) {
    const std::lock_guard lock(mutex_);
    auto& layer = progress_.layers[index];
    layer.state = state;
    layer.was_here = layer.was_here || was_here;
    if (state == LayerProgress::State::kDone) layer.done = layer.bytes;
    report();
  }
  void received(std::size_t index, std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    progress_.layers[index].done = bytes;
    if (std::chrono::steady_clock::now() - reported_at_ >= kReportEvery) report();
  }

 private:
  void report() {
    reported_at_ = std::chrono::steady_clock::now();
    if (listener_) listener_(progress_);
  }

  const PullListener& listener_;
  std::mutex mutex_;
  PullProgress progress_;
  std::chrono::steady_clock::time_point reported_at_{};
};

std::uint64_t sum_of_sizes(const Manifest& manifest, const Descriptor& own) {
  auto sum = own.size + manifest.config.size;
  for (const auto& layer : manifest.layers) sum += layer.size;
  return sum;
}

/// Whether what has come so far is worth keeping.
bool may_go_on_later(ErrorKind kind) {
  return kind != ErrorKind::kInvalid && kind != ErrorKind::kCorrupt && kind != ErrorKind::kExhausted;
}

/// A thread that ends before its surroundings do.
class Follower {
 public:
  template <typename Function>
  explicit Follower(Function function) : thread_(std::move(function)) {}
  ~Follower() { thread_.join(); }
  Follower(const Follower&) = delete;
  Follower& operator=(const Follower&) = delete;

 private:
  std::thread thread_;
};

}  // namespace

/// One pull under way.
struct Puller::Job {
  RegistrySession& session;
  uid_t uid;
  std::string scope;
  std::stop_token stop;
  ProgressReporter& reporter;
  Manifest manifest;
  std::vector<std::string> diff_ids;
  Allowance allowance;
};

Result<NamedImage> Puller::pull(const RegistryName& name, const User& user, const PullListener& listener,
                                const std::stop_token& stop) {
  ProgressReporter reporter(name, listener);
  reporter.begin({});
  DROVER_TRY(auto login, read_login(user, name.host));
  DROVER_TRY(auto client, HttpClient::create());
  RegistrySession session(name, std::move(login), plain_, certificates_, limits_.registry, stop);
  DROVER_TRY(const auto document, find_document(session, client));
  const auto& descriptor = document.descriptor;
  const auto lease = leases_.take({descriptor.digest});
  DROVER_TRY(const auto turn, locks_.lock(descriptor.digest, stop));
  // A name without a proof of who answers is worth no more than the word of whoever pulls it.
  const bool everybody = !session.used_login() && session.origin().secure;
  if (auto known = known_image(session, descriptor, user.uid); known && !is_index(descriptor.media_type)) {
    known->name = name;
    known->everybody = everybody;
    known->users = {user.uid};
    known->pulled_at = wall_clock();
    known->from_registry = true;
    DROVER_CHECK_OK(catalog_.put(*known));
    return *known;
  }
  NamedImage image;
  image.manifest = descriptor;
  if (is_index(descriptor.media_type)) {
    DROVER_CHECK_OK(blobs_.add(descriptor.digest, document.text));
    image.bytes = descriptor.size;
  } else {
    Job job{session, user.uid, scope_of(everybody, user.uid),     stop, reporter,
            {},      {},       Allowance(limits_.unpacking, stop)};
    DROVER_TRY(image.bytes, bring(job, client, document));
  }
  image.name = name;
  image.everybody = everybody;
  image.users = {user.uid};
  image.pulled_at = wall_clock();
  image.from_registry = true;
  DROVER_CHECK_OK(catalog_.put(image));
  return image;
}

Result<RegistryDocument> Puller::fetch_document(const RegistryName& name, const User& user,
                                                const std::stop_token& stop) const {
  DROVER_TRY(auto login, read_login(user, name.host));
  DROVER_TRY(auto client, HttpClient::create());
  RegistrySession session(name, std::move(login), plain_, certificates_, limits_.registry, stop);
  return find_document(session, client);
}

Result<RegistryDocument> Puller::find_document(RegistrySession& session, HttpClient& client) const {
  DROVER_TRY(auto document, session.manifest(client, session.name().version()));
  for (int level = 0; is_index(document.descriptor.media_type); ++level) {
    if (level == kMaxIndexLevels)
      return fail(ErrorKind::kInvalid,
                  fmt::format("its indexes nest more than {} levels deep", kMaxIndexLevels));
    DROVER_TRY(const auto index, parse_index(document.text, "its index"));
    if (index.manifests.empty()) return fail(ErrorKind::kInvalid, "its index lists no image");
    DROVER_TRY(const auto variants, variants_of(index.manifests, "", architecture_of_machine()));
    if (!variants.empty()) return document;
    DROVER_TRY(const auto found, for_machine(index.manifests, architecture_of_machine()));
    DROVER_TRY(document, session.manifest(client, found.front().digest));
  }
  if (is_manifest(document.descriptor.media_type)) return document;
  return fail(ErrorKind::kUnsupported, fmt::format("it is of type '{}', not a container image",
                                                   printable(document.descriptor.media_type)));
}

/// The same image, whole, that this user may have: his own, everybody's, or somebody else's of this very
/// repository, when it is sure that the registry itself hands him the manifest.
std::optional<NamedImage> Puller::known_image(const RegistrySession& session, const Descriptor& manifest,
                                              uid_t uid) const {
  return catalog_.find_manifest(session.name(), manifest.digest, [&](const NamedImage& image) {
    return image.is_for(uid) || session.origin().secure;
  });
}

Result<std::uint64_t> Puller::bring(Job& job, HttpClient& client, const RegistryDocument& document) {
  DROVER_TRY(job.manifest, parse_manifest(document.text, "its manifest"));
  DROVER_TRY(const auto config_text, job.session.small_blob(client, job.manifest.config));
  DROVER_TRY(auto config, parse_config(config_text, "its configuration"));
  DROVER_CHECK_OK(check_config(config, job.manifest.layers.size(), architecture_of_machine()));
  job.diff_ids = std::move(config.diff_ids);
  std::vector<std::string> used = job.diff_ids;
  used.push_back(job.manifest.config.digest);
  for (const auto& layer : job.manifest.layers) used.push_back(layer.digest);
  const auto lease = leases_.take(std::move(used));
  job.reporter.begin(job.manifest.layers);
  DROVER_CHECK_OK(bring_layers(job));
  DROVER_CHECK_OK(blobs_.add(job.manifest.config.digest, config_text));
  DROVER_CHECK_OK(blobs_.add(document.descriptor.digest, document.text));
  return sum_of_sizes(job.manifest, document.descriptor);
}

Status Puller::bring_layers(Job& job) {
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  std::optional<Error> failure;
  const auto work = [&] {
    auto client = HttpClient::create();
    while (client) {
      const auto index = next++;
      if (index >= job.manifest.layers.size()) return;
      auto brought = bring_layer(job, *client, index);
      if (brought) continue;
      next = job.manifest.layers.size();  // the others end what they have begun
      const std::lock_guard lock(mutex);
      if (!failure)
        failure =
            context(brought.error(), fmt::format("layer {} of {}", index + 1, job.manifest.layers.size()));
    }
  };
  {
    const auto count = std::min(limits_.layers_at_once, job.manifest.layers.size());
    std::vector<std::jthread> workers;
    for (std::size_t i = 1; i < count; ++i) workers.emplace_back(work);
    work();
  }
  return failure ? Status(Failure(*failure)) : Status();
}

Status Puller::bring_layer(Job& job, HttpClient& client, std::size_t index) {
  const auto& blob = job.manifest.layers[index];
  const auto& diff_id = job.diff_ids[index];
  if (blob.size > limits_.unpacking.bytes)
    return fail(ErrorKind::kExhausted,
                fmt::format("it has {}, more than the {} that a layer may have", format_bytes(blob.size),
                            format_bytes(limits_.unpacking.bytes)));
  // One at a time: of those who need the same blob, the next may find it here.
  DROVER_TRY(const auto turn, locks_.lock(blob.digest + "." + job.scope, job.stop));
  if (blobs_.contains(blob.digest) && blobs_.may_use(blob.digest, job.uid)) {
    DROVER_TRY(const auto size, blobs_.size(blob.digest));
    if (size != blob.size) {
      DROVER_TRY(const bool sound, blobs_.is_sound(blob.digest));
      if (sound)
        return fail(ErrorKind::kInvalid,
                    fmt::format("it has {} bytes, not the {} that the manifest says", size, blob.size));
      DROVER_CHECK_OK(blobs_.remove(blob.digest));  // cut short when the machine went down
      return download(job, client, index);
    }
    if (blobs_.is_known_as(blob.digest, diff_id) && layers_.find(diff_id)) {
      job.reporter.set(index, LayerProgress::State::kDone, true);
      return {};
    }
    job.reporter.set(index, LayerProgress::State::kUnpacking, true);
    DROVER_TRY(const auto files, blobs_.files());
    DROVER_TRY(const auto file, files->open(blob_name(blob.digest)));
    auto unpacked = layers_.acquire({blob_name(blob.digest), diff_id, blob.digest}, file, job.allowance);
    if (unpacked) {
      blobs_.note_known_as(blob.digest, diff_id);
      job.reporter.set(index, LayerProgress::State::kDone, true);
      return {};
    }
    if (unpacked.error().kind != ErrorKind::kInvalid) return Failure(unpacked.error());
    DROVER_CHECK_OK(blobs_.remove(blob.digest));  // damaged, or never right: the registry has the last word
  }
  return download(job, client, index);
}

Status Puller::download(Job& job, HttpClient& client, std::size_t index) {
  auto done = download_once(job, client, index);
  // What was begun before and turned out wrong is gone by now.
  if (!done && done.error().kind == ErrorKind::kCorrupt) done = download_once(job, client, index);
  return done;
}

Status Puller::download_once(Job& job, HttpClient& client, std::size_t index) {
  const auto& blob = job.manifest.layers[index];
  DROVER_TRY(auto partial, blobs_.open_partial(blob.digest, job.scope));
  if (partial.size > blob.size) {
    if (::ftruncate(partial.file.get(), 0) != 0) return fail_errno("Failed to begin a layer anew", errno);
    partial.size = 0;
  }
  DROVER_CHECK_OK(check_space(blob.size - partial.size));
  job.reporter.set(index, LayerProgress::State::kDownloading);

  Download download(blob, partial.file.get());
  Result<std::string> unpacked = fail(ErrorKind::kInternal, "it was not unpacked");
  std::atomic<bool> gave_up = false;
  Status received;
  bool aborted = false;
  {
    const Follower unpacking([&] {
      const ImageFile file{std::make_unique<FollowStream>(download), blob.size, ""};
      unpacked = layers_.acquire({"", job.diff_ids[index], ""}, file, job.allowance);
      gave_up = !unpacked;
    });
    received = download.run(job.session, client, partial.size, [&](std::uint64_t bytes) -> Status {
      aborted = gave_up;
      if (aborted) return fail(ErrorKind::kInternal, "it cannot be unpacked");
      job.reporter.received(index, bytes);
      return {};
    });
    if (received) received = blobs_.finish(partial, blob.digest, job.scope);
    if (received) job.reporter.set(index, LayerProgress::State::kUnpacking);
  }
  if (aborted || (!received && !may_go_on_later(received.error().kind))) blobs_.drop(partial);
  if (aborted) return Failure(unpacked.error());
  if (!received) return received;
  if (!unpacked) return Failure(unpacked.error());
  blobs_.note_known_as(blob.digest, job.diff_ids[index]);
  job.reporter.set(index, LayerProgress::State::kDone);
  return {};
}

Status Puller::check_space(std::uint64_t wanted) const {
  struct statvfs info{};
  if (::fstatvfs(blobs_.folder(), &info) != 0)
    return fail_errno("Failed to look at the file system of the images", errno);
  const auto free = static_cast<std::uint64_t>(info.f_bavail) * info.f_frsize;
  const auto reserved = limits_.unpacking.reserved_space;
  if (free >= reserved && free - reserved >= wanted) return {};
  return fail(
      ErrorKind::kExhausted,
      fmt::format("it needs {}, and {} are free where images are kept", format_bytes(wanted),
                  format_bytes(free)),
      "free some space, for example with 'drover image prune', or give 'drover serve' another --state "
      "folder");
}

}  // namespace drover::image
