#include "driver/hook/hook.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "base/files.h"
#include "driver/elf.h"
#include "driver/ld_cache.h"
#include "driver/ld_cache_edit.h"

namespace drover::driver {
namespace {

constexpr const char* kLdCache = "/etc/ld.so.cache";
constexpr std::size_t kMaxState = 1 << 20;
constexpr std::string_view kLinkMark = "::";

struct HookKind {
  std::string_view name;
  std::string_view option;
  Status (*run)(const ContainerRoot&, const std::vector<std::string>&);
};
constexpr std::array kHooks = {HookKind{"create-symlinks", "--link", create_symlinks},
                               HookKind{"update-ldcache", "--library", update_ld_cache},
                               HookKind{"check-guard", "--mount", check_guard}};

Result<std::string> read_state() {
  std::string state(kMaxState + 1, '\0');
  std::size_t size = 0;
  while (size < state.size()) {
    const auto count = ::read(STDIN_FILENO, state.data() + size, state.size() - size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail_errno("Failed to read the container's state", errno);
    if (count == 0) break;
    size += static_cast<std::size_t>(count);
  }
  if (size > kMaxState) return fail(ErrorKind::kInvalid, "The container's state is too large");
  state.resize(size);
  return state;
}

/// "--link A --link B" and "--link=A".
Result<std::vector<std::string>> values_of(std::span<char* const> arguments, std::string_view option) {
  std::vector<std::string> values;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view word(arguments[i]);
    if (word == option && i + 1 < arguments.size())
      values.emplace_back(arguments[++i]);
    else if (word.starts_with(option) && word.substr(option.size()).starts_with('='))
      values.emplace_back(word.substr(option.size() + 1));
    else
      return fail(ErrorKind::kInvalid, fmt::format("'{}' is not understood", word),
                  fmt::format("this hook takes {} VALUE, which may be repeated", option));
  }
  return values;
}

Status run_hook(std::span<char* const> arguments) {
  const std::string_view name = arguments.empty() ? "" : arguments[0];
  const auto hook = std::ranges::find(kHooks, name, &HookKind::name);
  if (hook == kHooks.end())
    return fail(ErrorKind::kInvalid, fmt::format("there is no hook '{}'", name),
                "the hooks are create-symlinks, update-ldcache and check-guard; OCI runtimes call them");
  DROVER_TRY(const auto values, values_of(arguments.subspan(1), hook->option));
  DROVER_TRY(const auto state, read_state());
  DROVER_TRY(const auto root, ContainerRoot::of_state(state));
  return hook->run(root, values);
}

/// Where something is mounted, it stays as it is, and the container goes on.
Status unless_mounted(const Status& done) {
  if (done || done.error().kind != ErrorKind::kUnsupported) return done;
  std::fprintf(stderr, "drover cdi-hook: %s\n", done.error().message.c_str());
  return {};
}

/// "A::B".
Result<std::pair<std::string, std::string>> halves_of(const std::string& text, const char* form) {
  const auto mark = text.find(kLinkMark);
  if (mark == std::string::npos || mark == 0)
    return fail(ErrorKind::kInvalid, fmt::format("'{}' is not of the form {}", text, form));
  return std::pair(text.substr(0, mark), text.substr(mark + kLinkMark.size()));
}

std::string cache_in(const ContainerRoot& root) {
  const auto file = root.open_file(kLdCache);
  const auto cache = file ? read_all(file->get(), kLdCache, kMaxLdCache) : Result<std::string>("");
  return cache.value_or("");
}

}  // namespace

Status create_symlinks(const ContainerRoot& root, const std::vector<std::string>& links) {
  for (const auto& link : links) {
    DROVER_TRY(const auto halves, halves_of(link, "TARGET::PATH"));
    DROVER_CHECK_OK(unless_mounted(root.put_link(halves.second, halves.first)));
  }
  return {};
}

Status update_ld_cache(const ContainerRoot& root, const std::vector<std::string>& libraries) {
  std::vector<LdCacheLibrary> added;
  for (const auto& path : libraries) {
    const auto file = root.open_file(path);
    const auto elf = file ? read_elf(file->get(), path) : Result<ElfFile>(fail(ErrorKind::kNotFound, path));
    const auto flags = elf ? ld_cache_flags(*elf) : std::nullopt;
    if (flags) added.push_back({path.substr(path.rfind('/') + 1), path, *flags});
  }
  if (added.empty()) return {};
  auto cache = add_to_ld_cache(cache_in(root), added);
  if (!cache) cache = add_to_ld_cache("", added);
  if (!cache) return Failure(cache.error());
  return unless_mounted(root.put_file(kLdCache, *cache));
}

Status check_guard(const ContainerRoot& root, const std::vector<std::string>& mounts) {
  for (const auto& mount : mounts) {
    DROVER_TRY(const auto halves, halves_of(mount, "SOURCE::PATH"));
    const auto& [source, path] = halves;
    struct stat file{};
    if (::stat(source.c_str(), &file) != 0)
      return fail_errno(fmt::format("Failed to look at '{}', which guards a share of a GPU", source), errno);
    if (!root.has(file, path))
      return fail(
          ErrorKind::kConflict,
          fmt::format("the container is not started: it has a share of a GPU, and something else is at "
                      "'{}', where what keeps it to that share must be",
                      path),
          "let a container with a share have all its GPUs by one claim, which may have several requests, or "
          "by a limit of one name, and mount nothing over the driver");
  }
  return {};
}

int run_cdi_hook(std::span<char* const> arguments) {
  const auto done = run_hook(arguments);
  if (done) return EXIT_SUCCESS;
  std::fprintf(stderr, "drover cdi-hook: %s\n", to_string(done.error()).c_str());
  return EXIT_FAILURE;
}

}  // namespace drover::driver
