// Processes that are killed, stopped, or pull away what is measured: in their turn, beside a neighbour who
// must have his share all the same.

#include "guard/testing/shared_gpu.h"

namespace drover::guard {
namespace {

class GuardTurnsAttackTest : public SharedGpu {
 protected:
  /// The neighbour gets at least so many of the GPU's hundredths in a second, if not in the first one: a busy
  /// machine may keep it from launching for a while.
  void expect_neighbour(double least) {
    double percents = 0;
    for (int tries = 0; tries < 8 && percents < least; ++tries)
      percents = measure(1000ms).at("neighbour") / 10'000;
    EXPECT_GE(percents, least);
  }
};

TEST_F(GuardTurnsAttackTest, KilledAndStoppedProcessesHoldUpNobody) {
  add("neighbour", 500);
  add("victim", 500);
  give_turns();
  start_spinning("neighbour", 500);
  for (const int signal : {SIGKILL, SIGSTOP}) {
    start_spinning("victim", 500);
    expect_neighbour(30);
    const auto victim = process_of("victim");
    ASSERT_EQ(::kill(victim, signal), 0);
    expect_neighbour(80);
    if (signal == SIGSTOP) {
      ASSERT_EQ(::kill(victim, SIGCONT), 0);
      expect_percent("victim", 50, 10);
      ::kill(victim, SIGKILL);
    }
    ASSERT_EQ(::waitpid(victim, nullptr, 0), victim);
    std::erase_if(processes_, [&](const auto& process) { return process.second == victim; });
    progress_of("victim").launches = 0;
  }
  stop_all();
}

TEST_F(GuardTurnsAttackTest, StreamsAndContextsEndInTheMiddle) {
  add("neighbour", 500);
  add("wild", 500);
  give_turns();
  start_spinning("neighbour", 500);
  start_in("wild", [](Client& client, Progress& progress) {
    while (!progress.stop) {
      CUcontext context = nullptr;
      CUstream stream = nullptr;
      ASSERT_EQ(CALL(client.cuda, cuCtxCreate_v2)(&context, 0, client.device), CUDA_SUCCESS);
      Spinner spinner(client);
      for (int i = 0; i < 20; ++i) {
        ASSERT_EQ(CALL(client.cuda, cuStreamCreate)(&stream, 0), CUDA_SUCCESS);
        ASSERT_EQ(spinner.launch(300, stream), CUDA_SUCCESS);
        ASSERT_EQ(CALL(client.cuda, cuStreamDestroy_v2)(stream), CUDA_SUCCESS);
        ++progress.launches;
        progress.launched_us += 300;
      }
      ASSERT_EQ(CALL(client.cuda, cuCtxDestroy_v2)(context), CUDA_SUCCESS);
      CUcontext primary = nullptr;
      ASSERT_EQ(CALL(client.cuda, cuDevicePrimaryCtxRetain)(&primary, client.device), CUDA_SUCCESS);
      ASSERT_EQ(CALL(client.cuda, cuCtxSetCurrent)(primary), CUDA_SUCCESS);
      Spinner second(client);
      ASSERT_EQ(second.launch(300), CUDA_SUCCESS);
      ASSERT_EQ(CALL(client.cuda, cuDevicePrimaryCtxRelease_v2)(client.device), CUDA_SUCCESS);
      ASSERT_EQ(CALL(client.cuda, cuCtxSetCurrent)(client.context), CUDA_SUCCESS);
    }
  });
  expect_neighbour(40);
  EXPECT_GT(progress_of("wild").launches, 100U);
  stop_all();
}

// The account says what its container likes, and is cut off at last.
TEST_F(GuardTurnsAttackTest, NonsenseInAnAccountFoolsNobodyElse) {
  add("neighbour", 500);
  add("liar", 500);
  give_turns();
  start_spinning("neighbour", 500);
  start_in("liar", [&](Client& client, Progress& progress) {
    const int file = ::open(::getenv("DROVER_GUARD_ACCOUNT"), O_RDWR | O_CLOEXEC);
    auto& account = *static_cast<guard_account*>(
        ::mmap(nullptr, sizeof(guard_account), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
    Spinner spinner(client);
    for (std::uint32_t i = 0; !progress.stop; ++i) {
      ASSERT_EQ(spinner.launch(500), CUDA_SUCCESS);
      ++progress.launches;
      progress.launched_us += 500;
      auto& use = account.slots[0].uses[0];
      use = {.busy_ns = i * 0x123456789ULL,
             .asked = use.asked + 7,
             .longest_ns = UINT64_MAX,
             .in_flight = i % 2,
             .unused = 0};
      account.slots_used = i % 3 == 0 ? UINT32_MAX : 1;
    }
  });
  expect_neighbour(35);
  ASSERT_EQ(::truncate((folder_ / "liar.account").c_str(), 100), 0);
  expect_neighbour(70);
  EXPECT_LE(figures_of("liar").longest, 60s);
  const auto liar = process_of("liar");  // of which nothing is asked: its own page is gone
  ::kill(liar, SIGKILL);
  ::waitpid(liar, nullptr, 0);
  std::erase_if(processes_, [&](const auto& process) { return process.second == liar; });
  stop_all();
}

// It may wait for what is launched after it, so nothing waits for it for ever.
TEST_F(GuardTurnsAttackTest, ALongKernelDoesNotHoldUpALaterLaunch) {
  add("neighbour", 500);
  add("long", 500);
  give_turns();
  start_spinning("neighbour", 500);
  start_in("long", [](Client& client, Progress& progress) {
    Spinner spinner(client);
    ASSERT_EQ(spinner.launch(3'000'000), CUDA_SUCCESS);
    ++progress.launches;
    const auto began = std::chrono::steady_clock::now();
    CUstream other = nullptr;
    ASSERT_EQ(CALL(client.cuda, cuStreamCreate)(&other, 0), CUDA_SUCCESS);
    ASSERT_EQ(spinner.launch(1, other), CUDA_SUCCESS);
    EXPECT_LT(std::chrono::steady_clock::now() - began, 2500ms);
  });
  expect_neighbour(40);
  stop_all();
}

// The child of fork() has no CUDA, and neither waits nor hangs; the parent goes on.
TEST_F(GuardTurnsAttackTest, AForkedChildIsNotHeldUp) {
  add("a", 250, true);
  give_turns();
  start_in("a", [](Client& client, Progress&) {
    Spinner spinner(client);
    for (int i = 0; i < 20; ++i) {
      ASSERT_EQ(spinner.launch(500), CUDA_SUCCESS);
      const auto child = ::fork();
      if (child == 0) ::_exit(spinner.launch(500) == CUDA_SUCCESS ? 1 : 0);
      int status = 0;
      ASSERT_EQ(::waitpid(child, &status, 0), child);
      ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
  });
  stop_all();
}

}  // namespace
}  // namespace drover::guard
