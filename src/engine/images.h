#pragma once

// The images of this machine as the APIs see them: the store, and the pulls and loads that somebody asked
// for, each on a thread of its own that ends with this object. Thread safe. What the store does blocks.

#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "base/user_limits.h"
#include "base/users.h"
#include "engine/variants.h"
#include "image/store.h"

namespace drover::engine {

using image::ImageDetails;
using image::LayerProgress;
using image::NamedImage;
using image::Pruned;
using image::PullProgress;
using image::state_name;

class Images {
 public:
  static constexpr std::size_t kMostAtOnce = 64;

  /// A pull or a load under way. Whoever lets go of it ends it.
  class Work {
   public:
    ~Work() { stop_.request_stop(); }
    Work() = default;
    Work(const Work&) = delete;
    Work& operator=(const Work&) = delete;

    struct Report {
      std::optional<PullProgress> progress;       ///< none when it is as it was
      std::optional<Result<NamedImage>> outcome;  ///< once it has ended
    };
    /// What is new since the last call.
    Report report();

   private:
    friend class Images;
    struct News {
      std::mutex mutex;
      Report report;
      bool ended = false;
    };
    std::shared_ptr<News> news_ = std::make_shared<News>();
    std::stop_source stop_;
  };

  /// Of one user but root, so many may be under way.
  explicit Images(image::Store& store, std::size_t most_of_user = UserLimits{}.pulls)
      : store_(store), most_of_user_(most_of_user) {}
  ~Images();
  Images(const Images&) = delete;
  Images& operator=(const Images&) = delete;

  /// kExhausted when too many are under way, of this user or in all.
  /// Of a name that stands for several images, also those that tasks on this machine take (variants.h).
  Result<std::shared_ptr<Work>> pull(const std::string& name, const User& user,
                                     const gpu::MachineFacts& machine);
  /// How many are under way.
  std::size_t running();
  Result<std::shared_ptr<Work>> load(const std::string& reference, const std::string& name, const User& user);

  // See image::Store.
  std::vector<NamedImage> list(uid_t uid) const { return store_.list(uid); }
  Result<ImageDetails> inspect(const std::string& name, uid_t uid) const { return store_.inspect(name, uid); }
  Result<NamedImage> remove(const std::string& name, uid_t uid) { return store_.remove(name, uid); }
  Result<Pruned> prune(uid_t uid, bool names) { return store_.prune(uid, names); }

 private:
  struct Running {
    uid_t user = 0;
    std::shared_ptr<Work::News> news;
    std::stop_source stop;
    std::jthread thread;
  };
  using Doing = std::function<Result<NamedImage>(const image::PullListener&, const std::stop_token&)>;
  Result<std::shared_ptr<Work>> start(const User& user, Doing doing);
  /// Under the lock.
  void drop_ended();
  Result<NamedImage> pull_whole(const std::string& name, const User& user, const gpu::MachineFacts& machine,
                                const image::PullListener& listener, const std::stop_token& stop);

  image::Store& store_;
  const std::size_t most_of_user_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Running>> running_;
};

}  // namespace drover::engine
