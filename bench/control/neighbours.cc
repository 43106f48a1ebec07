#include "neighbours.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

namespace drover::bench {
namespace {

using nlohmann::json;

constexpr const char* kLists[] = {"", "/state", "/v1/tasks", "/v2/tasks", "/v2/apps?embed=apps.tasks"};
constexpr int kFewestLists = 20;
constexpr std::chrono::milliseconds kPause{1};  // somebody who asks now and then

/// Asks for a list again and again, on a connection of its own.
class Lister {
 public:
  Lister(std::uint16_t port, std::string list)
      : api_(port), list_(std::move(list)), thread_([this] {
          while (!stop_ && !list_.empty()) {
            expect_success(api_.ask("GET", list_), list_);
            ++lists_;
          }
        }) {}
  ~Lister() {
    stop_ = true;
    thread_.join();
  }
  Lister(const Lister&) = delete;
  Lister& operator=(const Lister&) = delete;
  int lists() const { return lists_; }

 private:
  Connection api_;
  std::string list_;
  std::atomic<bool> stop_ = false;
  std::atomic<int> lists_ = 0;
  std::thread thread_;
};

}  // namespace

json time_neighbours(Subject& subject, Connection& api, int rounds) {
  const auto target = "/v1/tasks/" + running_tasks(subject).front();
  auto measured = json::array();
  for (const std::string list : kLists) {
    const Lister lister(subject.port(), list);
    Row row;
    while (static_cast<int>(row.wall.size()) < rounds || (!list.empty() && lister.lists() < kFewestLists)) {
      time(subject, row, 1, [&](int) { expect_success(api.ask("GET", target), target); });
      std::this_thread::sleep_for(kPause);
    }
    measured.push_back({{"list", list},
                        {"lists", lister.lists()},
                        {"rounds", row.wall.size()},
                        {"median_ms", percentile(row.wall, 0.5)},
                        {"longest_ms", *std::ranges::max_element(row.wall)}});
  }
  return measured;
}

void print_neighbours(const json& neighbours) {
  fmt::print("| while somebody asks for | lists | `GET /v1/tasks/ID` | ms: median | longest |\n");
  fmt::print("| --- | --- | --- | --- | --- |\n");
  for (const auto& row : neighbours) {
    const auto list = row["list"].get<std::string>();
    fmt::print("| {} | {} | {} | {:.2f} | {:.2f} |\n", list.empty() ? "nothing" : "`GET " + list + "`",
               row["lists"].get<int>(), row["rounds"].get<int>(), row["median_ms"].get<double>(),
               row["longest_ms"].get<double>());
  }
}

}  // namespace drover::bench
