#include "kube_node/lock.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/file.h>

#include <chrono>

namespace drover {

using namespace std::chrono_literals;

Result<std::optional<NodeLock>> lock_node(const Directory& state, const std::string& kubelet,
                                          const EndSignals& signals) {
  DROVER_TRY(auto file, state.open_file("lock", O_RDWR | O_CREAT, 0600));
  DROVER_TRY(auto folder, Directory::create(kubelet + "/pod-resources", 0750));
  bool told = false;
  for (const int descriptor : {file.get(), folder.fd()})
    for (; ::flock(descriptor, LOCK_EX | LOCK_NB) != 0; told = true) {
      if (!told) spdlog::info("Another 'drover kube node' serves this node: waiting for it to end");
      if (signals.came_within(20ms)) return std::nullopt;
    }
  return NodeLock{std::move(file), std::move(folder)};
}

}  // namespace drover
