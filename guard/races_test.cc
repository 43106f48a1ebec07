// Processes and threads that share a limit, and die at any instant.

#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <random>
#include <thread>

#include "guard/testing/container.h"

namespace drover::guard {
namespace {

using Clock = std::chrono::steady_clock;

/// What the children of a test have in common; all zero is a valid state.
struct Together {
  std::atomic<int> arrived;
  std::atomic<int> round;
  std::atomic<bool> stop;
  std::atomic<bool> first;  ///< the survivor has the processor whenever it wants it
  std::atomic<int> spurious;
  std::atomic<int> refused;
  std::atomic<std::uint64_t> most_given;
  std::atomic<std::uint64_t> longest_us;
  std::atomic<std::uint64_t> starved_us;  ///< as long as this machine kept one from running who wanted to
  std::atomic<std::uint64_t> done;

  /// Waits until `number` have come here.
  void meet(int number) {
    const auto now = round.load();
    if (arrived.fetch_add(1) + 1 == number) {
      arrived = 0;
      ++round;
      return;
    }
    while (round.load() == now && !stop) ::sched_yield();
  }
};

template <typename T>
void raise_to(std::atomic<T>& most, T value) {
  for (auto before = most.load(); before < value && !most.compare_exchange_weak(before, value);) continue;
}

class GuardRaceTest : public Container {
 protected:
  /// Watches what the card gives to all processes together, by the driver's own NVML.
  pid_t watch(Together& together) {
    return start([&](Client& client) {
      while (!together.stop) raise_to(together.most_given, client.given_to_all());
    });
  }
};

TEST_F(GuardRaceTest, ThreadsThatMixSizesNeverHoldMoreThanTheShare) {
  constexpr auto kShare = kGib;
  limit({{0, kShare}});
  std::uint64_t most = 0;
  for (int repetition = 0; repetition < (kSanitized ? 10 : 50); ++repetition) {
    auto& together = *shared<Together>();
    const auto watcher = watch(together);
    run_cuda([&](Client& client) {
      std::vector<std::thread> threads;
      for (unsigned int seed = 0; seed < 6; ++seed)
        threads.emplace_back([&, seed] {
          std::mt19937 random(seed + static_cast<unsigned int>(repetition) * 100);
          std::vector<CUdeviceptr> mine;
          ASSERT_EQ(CALL(client.cuda, cuCtxSetCurrent)(client.context), CUDA_SUCCESS);
          for (int step = 0; step < 300; ++step) {
            const auto size =
                random() % 3 == 0 ? (random() % 32 + 1) * kMib + random() % kMib : random() % (600 << 10) + 1;
            CUdeviceptr address = 0;
            const auto result = client.allocate(size, &address);
            if (result == CUDA_SUCCESS) {
              mine.push_back(address);
            } else {
              ASSERT_EQ(result, CUDA_ERROR_OUT_OF_MEMORY);
              ++together.refused;
            }
            while (!mine.empty() && (result != CUDA_SUCCESS || random() % 4 == 0)) {
              const auto place = random() % mine.size();
              ASSERT_EQ(client.free(mine[place]), CUDA_SUCCESS);
              mine.erase(mine.begin() + static_cast<std::ptrdiff_t>(place));
              if (random() % 4 == 0) break;
            }
          }
        });
      for (auto& thread : threads) thread.join();
      EXPECT_LE(client.given(), kShare);
    });
    together.stop = true;
    finish(watcher);
    EXPECT_LE(together.most_given, kShare);
    most = std::max(most, together.most_given.load());
    ::munmap(&together, sizeof together);
    if (HasFailure()) break;
  }
  EXPECT_GT(most, kShare - kShare / 8);
}

// Everybody gets what fits beside the others, although all ask at once and some ask for too much.
TEST_F(GuardRaceTest, ProcessesThatRaceNeverHoldMoreAndAreNeverRefusedWhatFits) {
  constexpr int kProcesses = 8;
  constexpr int kRounds = kSanitized ? 60 : 1000;
  constexpr std::uint64_t kChunk = 32 * kMib, kEach = 4;
  constexpr auto kShare = kProcesses * (kContext + kEach * kChunk) + 96 * kMib;
  limit({{0, kShare}});
  auto& together = *shared<Together>();
  const auto watcher = watch(together);
  std::vector<pid_t> children;
  for (int number = 0; number < kProcesses; ++number)
    children.push_back(start([&, number](Client& client) {
      client.start();
      for (int round = 0; round < kRounds && !HasFailure(); ++round) {
        std::vector<CUdeviceptr> mine(kEach);
        together.meet(kProcesses);
        for (auto& piece : mine) {
          if (client.allocate(kChunk, &piece) != CUDA_SUCCESS) ++together.spurious;
          if (number % 2 == 0) EXPECT_EQ(client.allocate(kShare / 2), CUDA_ERROR_OUT_OF_MEMORY);
        }
        together.meet(kProcesses);
        // 96 MiB are left: three of these pieces, and nobody knows whose.
        CUdeviceptr last = 0;
        if (client.allocate(kChunk, &last) == CUDA_SUCCESS)
          mine.push_back(last);
        else
          ++together.refused;
        together.meet(kProcesses);
        if (booked() > kShare) ADD_FAILURE() << "booked " << booked();
        for (const auto piece : mine)
          if (piece != 0) EXPECT_EQ(client.free(piece), CUDA_SUCCESS);
      }
      if (HasFailure()) together.stop = true;
    }));
  for (const auto child : children) finish(child);
  together.stop = true;
  finish(watcher);
  EXPECT_LE(together.most_given, kShare);
  EXPECT_EQ(together.spurious, 0);
  EXPECT_EQ(together.refused, kRounds * (kProcesses - 3));
  ::munmap(&together, sizeof together);
}

// Whoever asks, and dies: one for each, and what is counted stays.
TEST_F(GuardRaceTest, EachRefusalIsCountedOnce) {
  constexpr int kProcesses = 8, kThreads = 8, kRequests = kSanitized ? 20 : 200;
  limit({{0, kProcesses * kContext + kGib}});
  account_->refused[1] = 7;
  auto& together = *shared<Together>();
  const auto refuse = [&](Client& client) {
    ASSERT_EQ(CALL(client.cuda, cuCtxSetCurrent)(client.context), CUDA_SUCCESS);
    for (int i = 0; i < kRequests; ++i) EXPECT_EQ(client.allocate(20 * kGib), CUDA_ERROR_OUT_OF_MEMORY);
  };
  std::vector<pid_t> children;
  for (int number = 0; number < kProcesses; ++number)
    children.push_back(start([&, number](Client& client) {
      client.start();
      std::vector<std::thread> threads;
      for (int i = 0; i < kThreads; ++i) threads.emplace_back([&] { refuse(client); });
      for (auto& thread : threads) thread.join();
      ++together.arrived;
      while (number % 2 == 0) ::pause();  // until it is killed
    }));
  while (together.arrived < kProcesses) ::usleep(1000);
  for (int number = 0; number < kProcesses; ++number) {
    if (number % 2 == 1) {
      finish(children[number]);
      continue;
    }
    ::kill(children[number], SIGKILL);
    ::waitpid(children[number], nullptr, 0);
  }
  run_cuda(refuse);  // in a slot that somebody has had
  EXPECT_EQ(account_->refused[0], static_cast<std::uint64_t>((kProcesses * kThreads + 1) * kRequests));
  EXPECT_EQ(account_->refused[1], 7U) << "another GPU's";
  account_->refused[0] = UINT64_MAX;
  run_cuda([&](Client& client) {
    refuse(client);
    EXPECT_EQ(client.allocate(kGib), CUDA_SUCCESS) << "what it says decides nothing";
  });
  ::munmap(&together, sizeof together);
}

/// A process that has slot 0 or 1, and asks for all of the share, as another process does that has the other
/// slot.
class Rival {
 public:
  Rival(guard_account& account, const std::filesystem::path& file, std::uint64_t share, int slot)
      : mine_(&account.slots[slot].held[0]),
        theirs_(&account.slots[1 - slot].held[0]),
        units_(share / GUARD_UNIT) {
    const int descriptor = ::open(file.c_str(), O_RDWR | O_CLOEXEC);
    flock lock{};
    lock.l_type = F_WRLCK;
    lock.l_start = slot;
    lock.l_len = 1;
    EXPECT_EQ(::fcntl(descriptor, F_SETLK, &lock), 0);
    __atomic_store_n(&account.slots_used, 2, __ATOMIC_SEQ_CST);
  }
  void ask() { __atomic_store_n(mine_, units_ << 32 | units_, __ATOMIC_SEQ_CST); }
  void step_back() { __atomic_store_n(mine_, 0, __ATOMIC_SEQ_CST); }
  /// The other asks for nothing, and has not for a moment.
  bool is_alone() const {
    for (int i = 0; i < 2000; ++i)
      if ((__atomic_load_n(theirs_, __ATOMIC_SEQ_CST) & UINT32_MAX) != 0) return false;
    return true;
  }

 private:
  std::uint64_t *mine_, *theirs_;
  std::uint64_t units_;
};

class GuardRivalTest : public GuardRaceTest, public testing::WithParamInterface<int> {};

// The lower slot goes on asking until the higher one has stepped back, and the higher one steps back.
TEST_P(GuardRivalTest, WhoFitsIsNotRefusedBecauseOfWhoDoesNot) {
  limit({{0, kGib}});
  auto& together = *shared<Together>();
  const bool steps_back_first = GetParam() == 1;
  const auto rival = start([&](Client&) {
    Rival other(*account_, folder_ / "account", kGib, GetParam());
    together.round = 1;
    while (together.round == 1) ::sched_yield();
    while (!together.stop) {
      other.ask();
      while (other.is_alone() == steps_back_first && !together.stop) ::sched_yield();
      other.step_back();
      if (!steps_back_first) other.is_alone();  // for as long as that takes
      while (steps_back_first && !other.is_alone() && !together.stop) ::sched_yield();
    }
  });
  while (together.round == 0) ::sched_yield();
  run_cuda([&](Client& client) {
    int given = 0;
    together.round = 2;
    for (int i = 0; i < 100; ++i) {
      CUdeviceptr address = 0;
      if (client.allocate(512 * kMib, &address) != CUDA_SUCCESS) continue;
      ++given;
      EXPECT_EQ(client.free(address), CUDA_SUCCESS);
    }
    // On a busy machine the other may be away for longer than anybody waits.
    EXPECT_GT(given, 20);
  });
  together.stop = true;
  finish(rival);
  ::munmap(&together, sizeof together);
}
INSTANTIATE_TEST_SUITE_P(All, GuardRivalTest, testing::Values(0, 1));

TEST_F(GuardRaceTest, WhoAsksAndStopsIsWaitedForAMoment) {
  limit({{0, kGib}});
  auto& together = *shared<Together>();
  const auto rival = start([&](Client&) {
    Rival other(*account_, folder_ / "account", kGib, 1);
    together.round = 1;
    while (together.round == 1) ::sched_yield();
    other.ask();
    together.round = 3;
    ::raise(SIGSTOP);
  });
  while (together.round == 0) ::sched_yield();
  run_cuda([&](Client& client) {
    together.round = 2;
    while (together.round == 2) ::sched_yield();
    const auto began = Clock::now();
    EXPECT_EQ(client.allocate(512 * kMib), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_LT(Clock::now() - began, std::chrono::seconds(1));
  });
  ::kill(rival, SIGKILL);
  ASSERT_EQ(::waitpid(rival, nullptr, 0), rival);
  run_cuda([](Client& client) { EXPECT_EQ(client.allocate(512 * kMib), CUDA_SUCCESS); });
  ::munmap(&together, sizeof together);
}

TEST_F(GuardRaceTest, WhatIsKilledLeavesNothingAndHoldsNobodyUp) {
  constexpr int kKilled = 6;
  constexpr int kKills = kSanitized ? 40 : 1000;
  constexpr auto kShare = 4 * kGib;
  limit({{0, kShare}});
  auto& together = *shared<Together>();
  const auto watcher = watch(together);
  const auto worker = [&](Client& client) {
    EXPECT_EQ(CALL(client.cuda, cuInit)(0), CUDA_SUCCESS);
    while (CALL(client.cuda, cuCtxCreate_v2)(&client.context, 0, 0) == CUDA_ERROR_OUT_OF_MEMORY)
      ::sched_yield();
    std::mt19937 random(static_cast<unsigned int>(::getpid()));
    for (std::vector<CUdeviceptr> mine;;) {
      CUdeviceptr address = 0;
      if (client.allocate((random() % 64 + 1) * kMib, &address) == CUDA_SUCCESS) mine.push_back(address);
      if (!mine.empty() && random() % 2 == 0) {
        client.free(mine.back());
        mine.pop_back();
      }
      ++together.done;
    }
  };
  const auto survivor = start([&](Client& client) {
    client.start();
    const sched_param first{.sched_priority = 1};
    together.first = ::sched_setscheduler(0, SCHED_FIFO, &first) == 0;  // so its waits are the guard's alone
    ++together.done;
    while (!together.stop) {
      CUdeviceptr address = 0;
      const auto began = Clock::now();
      if (client.allocate(2 * kMib, &address) == CUDA_SUCCESS) client.free(address);
      const std::chrono::duration<double, std::micro> took = Clock::now() - began;
      raise_to(together.longest_us, static_cast<std::uint64_t>(took.count()));
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  });
  // Who is killed must run once more to be gone, and who asks to decide: a machine with more to do keeps
  // both.
  const auto busy = start([&](Client&) {
    for (auto before = Clock::now(); !together.stop;) {
      const auto now = Clock::now();
      const std::chrono::duration<double, std::micro> gap = now - before;
      raise_to(together.starved_us, static_cast<std::uint64_t>(gap.count()));
      before = now;
    }
  });
  std::mt19937 random(1);
  while (together.done == 0) ::sched_yield();
  std::vector<pid_t> workers;
  for (int i = 0; i < kKilled; ++i) workers.push_back(start(worker));
  for (int kill = 0; kill < kKills; ++kill) {
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 20'000));
    auto& victim = workers[random() % workers.size()];
    ::kill(victim, SIGKILL);
    ASSERT_EQ(::waitpid(victim, nullptr, 0), victim);
    victim = start(worker);
  }
  for (const auto child : workers) {
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }
  together.stop = true;
  finish(survivor);
  finish(watcher);
  finish(busy);
  EXPECT_GT(together.done, 1000U);
  EXPECT_LE(together.most_given, kShare);
  const auto most = std::max<std::uint64_t>(50'000, together.starved_us);
  EXPECT_LT(together.longest_us, together.first && !kSanitized ? most : 5'000'000U);
  std::printf(
      "the survivor waited for %.1f ms at most, beside %d processes; this machine kept one for %.1f ms\n",
      static_cast<double>(together.longest_us) / 1000, kKilled,
      static_cast<double>(together.starved_us) / 1000);
  run_cuda([&](Client& client) {
    EXPECT_EQ(client.given_to_all(), 300 * kMib);
    EXPECT_EQ(client.free_bytes(), kShare - 300 * kMib);
    EXPECT_EQ(client.allocate(kShare - 300 * kMib), CUDA_SUCCESS);
  });
  ::munmap(&together, sizeof together);
}

TEST_F(GuardRaceTest, AProcessThatIsStoppedHoldsNobodyUp) {
  limit({{0, 2 * kGib}});
  auto& together = *shared<Together>();
  const auto stopped = start([&](Client& client) {
    client.start();
    for (CUdeviceptr address = 0;;) {
      if (client.allocate(64 * kMib, &address) == CUDA_SUCCESS) client.free(address);
      ++together.done;
    }
  });
  while (together.done < 100) ::sched_yield();
  std::mt19937 random(1);
  for (int round = 0; round < 20; ++round) {
    ::kill(stopped, SIGSTOP);
    run_cuda([](Client& client) {
      EXPECT_EQ(client.allocate(512 * kMib), CUDA_SUCCESS);
      EXPECT_EQ(client.allocate(kGib), CUDA_ERROR_OUT_OF_MEMORY);
    });
    ::kill(stopped, SIGCONT);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 3000));
  }
  ::kill(stopped, SIGKILL);
  ::waitpid(stopped, nullptr, 0);
  ::munmap(&together, sizeof together);
}

/// Nanoseconds for an allocation and its end.
double cost(const Functions& cuda, int pairs) {
  CUdeviceptr address = 0;
  const auto began = Clock::now();
  for (int i = 0; i < pairs; ++i) {
    EXPECT_EQ(CALL(cuda, cuMemAlloc_v2)(&address, 2 * kMib), CUDA_SUCCESS);
    EXPECT_EQ(CALL(cuda, cuMemFree_v2)(address), CUDA_SUCCESS);
  }
  return std::chrono::duration<double, std::nano>(Clock::now() - began).count() / pairs;
}

// A list that is searched would make it a hundred times slower.
TEST_F(GuardRaceTest, WhatIsAliveDoesNotMakeAllocationsSlower) {
  limit({{0, 60 * kGib}});
  run_cuda([&](Client& client) {
    const Functions driver(folder_ / "libdrover-driver-cuda.so.1");
    constexpr int kPairs = 2000;
    const auto empty = cost(client.cuda, kPairs), native = cost(driver, kPairs);
    for (int i = 0; i < 10'000; ++i) ASSERT_EQ(client.allocate(2 * kMib), CUDA_SUCCESS);
    const auto full = cost(client.cuda, kPairs), native_full = cost(driver, kPairs);
    std::printf("allocation and end: %.0f ns guarded, %.0f ns not; with 10,000 alive %.0f and %.0f ns\n",
                empty, native, full, native_full);
    EXPECT_LT(full - native_full, 50 * std::max(empty - native, 0.0) + 100'000);
  });
}

}  // namespace
}  // namespace drover::guard
