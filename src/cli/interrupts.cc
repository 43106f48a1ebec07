#include "cli/interrupts.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>

#include <array>
#include <cstdint>

namespace drover::cli {
namespace {

/// Under nohup nobody wants to hear of a terminal that is gone. A signal that is blocked would be heard all
/// the same.
bool is_ignored(int number) {
  struct sigaction now{};
  return ::sigaction(number, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

sigset_t watched_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGINT, SIGTERM, SIGHUP})
    if (number != SIGHUP || !is_ignored(number)) sigaddset(&set, number);
  return set;
}

}  // namespace

Interrupts::Interrupts(std::function<void(int)> handle) : handle_(std::move(handle)) {
  const auto set = watched_signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  // Of our thread too: else that may be the one which the kernel gives it to, and nobody hears of it.
  sigset_t resizes;
  sigemptyset(&resizes);
  sigaddset(&resizes, SIGWINCH);
  pthread_sigmask(SIG_BLOCK, &resizes, nullptr);
  signals_ = UniqueFd(::signalfd(-1, &set, SFD_CLOEXEC));
  quit_ = UniqueFd(::eventfd(0, EFD_CLOEXEC));
  thread_ = std::thread([this] { listen(); });
}

Interrupts::~Interrupts() {
  ::eventfd_write(quit_.get(), 1);
  thread_.join();
  const auto set = watched_signals();
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

void Interrupts::listen() {
  while (true) {
    std::array<pollfd, 2> waits = {pollfd{signals_.get(), POLLIN, 0}, pollfd{quit_.get(), POLLIN, 0}};
    if (::poll(waits.data(), waits.size(), -1) < 0) continue;
    if (waits[1].revents != 0) return;
    signalfd_siginfo info{};
    if (::read(signals_.get(), &info, sizeof info) == sizeof info) handle_(static_cast<int>(info.ssi_signo));
  }
}

}  // namespace drover::cli
