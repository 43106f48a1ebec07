#include "container/oom_score.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <string_view>

#include "base/fd.h"
#include "base/files.h"

namespace drover::container {
namespace {

constexpr const char* kOwnOomScore = "/proc/self/oom_score_adj";
constexpr int kCannotRun = 126;

}  // namespace

int own_oom_score_adj() {
  int own = 0;
  if (const auto text = read_file(kOwnOomScore))
    std::from_chars(text->data(), text->data() + text->size(), own);
  return own;
}

int run_with_oom_score(char** arguments) {
  const std::string_view score = arguments[0];
  const UniqueFd file(::open(kOwnOomScore, O_WRONLY | O_CLOEXEC));
  if (file.valid() && ::write(file.get(), score.data(), score.size()) == static_cast<ssize_t>(score.size()))
    ::execv(arguments[1], arguments + 1);
  ::dprintf(STDERR_FILENO, "%s: %s\n", arguments[1], ::strerror(errno));
  return kCannotRun;
}

}  // namespace drover::container
