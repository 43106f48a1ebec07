#include "pods/overdue_pods.h"

#include <fmt/format.h>

#include <boost/asio/post.hpp>
#include <utility>

#include "kube/sandboxes/client.h"

namespace drover::pods {
namespace {

constexpr std::size_t kAskingThreads = 2;

}  // namespace

OverduePods::OverduePods(NodeAgents& agents, std::function<void(const std::string& sentence)> log)
    : agents_(agents), log_(std::move(log)), threads_(kAskingThreads) {}

OverduePods::~OverduePods() {
  threads_.stop();
  threads_.join();
}

void OverduePods::end(const PodView& pod) {
  {
    const std::lock_guard lock(mutex_);
    if (!asked_.insert(pod.uid).second) return;
  }
  boost::asio::post(threads_, [this, node = pod.node, uid = pod.uid] { ask(node, uid); });
}

void OverduePods::ask(const std::string& node, const std::string& uid) {
  const auto ended = kube::kill_pod(agents_.agent(node), uid);
  const std::lock_guard lock(mutex_);
  asked_.erase(uid);
  troubles_.try_emplace(node, log_)
      .first->second.report(
          ended
              ? Status()
              : Failure(context(ended.error(),
                                fmt::format("A task on node '{}' gets more time to end than it has", node))));
}

}  // namespace drover::pods
