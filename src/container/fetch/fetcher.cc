#include "container/fetch/fetcher.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/decode.h"
#include "base/files.h"
#include "base/json_text.h"
#include "base/open_path.h"
#include "base/units.h"
#include "container/fetch/cache.h"
#include "container/fetch/source.h"
#include "container/launch_spec.h"

namespace drover::container {
namespace {

using nlohmann::json;

constexpr int kFetchSpecFormat = 1;
constexpr auto kReportAgain = std::chrono::milliseconds(700);

void say(const json& line) {
  (void)write_all(STDOUT_FILENO, to_text(line) + "\n", "standard output");
}

/// Nobody else's, whatever becomes of it.
void keep_private() {
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  ::umask(022);
}

/// For good: nothing of root is left in this process.
Status become(const User& user, pid_t parent) {
  if (::geteuid() == 0 && user.uid != 0) {
    if (::setgroups(user.groups.size(), user.groups.data()) != 0 ||
        ::setresgid(user.gid, user.gid, user.gid) != 0 || ::setresuid(user.uid, user.uid, user.uid) != 0)
      return fail_errno(fmt::format("Failed to become user '{}'", user.uid), errno);
  }
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // after the change of user, which takes it back
  if (::getppid() != parent) return fail(ErrorKind::kUnavailable, "The daemon has gone");
  keep_private();
  return {};
}

Result<UniqueFd> open_local(const std::string& path) {
  // O_NONBLOCK: a pipe must not hold us up.
  auto file = open_path(AT_FDCWD, path, O_RDONLY | O_NOCTTY | O_NONBLOCK, RESOLVE_NO_MAGICLINKS);
  if (!file.valid()) return fail_errno("it cannot be read", errno);
  struct stat info{};
  if (::fstat(file.get(), &info) != 0) return fail_errno("it cannot be read", errno);
  if (S_ISDIR(info.st_mode))
    return fail(ErrorKind::kInvalid, "it is a folder", "pack it into an archive, or mount it as a volume");
  if (!S_ISREG(info.st_mode)) return fail(ErrorKind::kInvalid, "it is not a regular file");
  return file;
}

using Report = void (*)(const std::string& step);

class Fetcher {
 public:
  Fetcher(Tree& tree, const FetchCache* cache, const FetchLimits& limits, Report report)
      : tree_(tree), cache_(cache), limits_(limits), report_(report) {}

  Status bring(const workload::Fetch& fetch) {
    DROVER_TRY(const auto source, source_of(fetch));
    report_("fetching " + source.target);
    auto brought = bring(fetch, source);
    if (brought) return {};
    auto error = brought.error();
    error.message = fmt::format("Failed to fetch '{}': {}", source.shown, error.message);
    return Failure(std::move(error));
  }

 private:
  Status bring(const workload::Fetch& fetch, const Source& source) {
    DROVER_TRY(auto file, tree_.make(source.target, fetch.executable ? 0755 : 0644));
    auto filled = source.local ? fill_from(source.place, file.fd.get()) : fill(fetch, source, file.fd.get());
    if (!filled) {
      Tree::drop(file);
      return filled;
    }
    DROVER_CHECK_OK(tree_.put(file));
    if (!fetch.extract || fetch.executable) return {};
    return unpack(source.target, file.fd.get());
  }

  static Status fill_from(const std::string& path, int file) {
    DROVER_TRY(const auto from, open_local(path));
    return copy_content(from.get(), file);
  }

  Status fill(const workload::Fetch& fetch, const Source& source, int file) {
    const auto* cache = fetch.cache ? cache_ : nullptr;
    auto entry = cache != nullptr ? cache->find(source.place) : std::nullopt;
    const auto known = entry ? std::optional(entry->validators) : std::nullopt;
    auto told = std::chrono::steady_clock::now();
    const auto progress = [&](std::uint64_t done, std::uint64_t total) {
      const auto now = std::chrono::steady_clock::now();
      if (now - told < kReportAgain) return;
      told = now;
      report_(fmt::format("fetching {}: {}", source.target, format_part(done, total)));
    };
    DROVER_TRY(const auto done, download(source.place, file, known, limits_.download, progress));
    if (done.unchanged) return copy_content(entry->file.get(), file);
    if (cache != nullptr) cache->add(source.place, file, done.validators);
    return {};
  }

  Status unpack(const std::string& target, int file) {
    const auto kind = archive_kind(target);
    if (kind == ArchiveKind::kNone) return {};
    report_("unpacking " + target);
    if (::lseek(file, 0, SEEK_SET) != 0) return fail_errno("it cannot be read again", errno);
    const auto done = kind == ArchiveKind::kGzip
                          ? extract_gzip(file, tree_, target.substr(0, target.size() - 3), limits_.extract)
                          : extract_archive(file, tree_, limits_.extract);
    if (done) return {};
    auto error = context(done.error(), "it cannot be unpacked");
    if (error.hint.empty() && error.kind == ErrorKind::kInvalid)
      error.hint = "set extract to false if it is to be brought as it is";
    return Failure(std::move(error));
  }

  Tree& tree_;
  const FetchCache* cache_;
  const FetchLimits& limits_;
  const Report report_;
};

/// `cache`: null where there is none.
Status bring_all(const FetchSpec& spec, int sandbox, const FetchCache* cache, Report report) {
  Tree tree(sandbox);
  Fetcher fetcher(tree, cache, spec.limits, report);
  for (const auto& file : spec.files) DROVER_CHECK_OK(fetcher.bring(file));
  return {};
}

Status work() {
  DROVER_TRY(const auto text, read_all(STDIN_FILENO, "the order"));
  DROVER_TRY(const auto spec, decode_fetch_spec(text));
  DROVER_CHECK_OK(become(spec.user, spec.parent));
  const FetchCache cache(kFetcherCache, spec.limits.cache_bytes);
  const bool cached = ::fcntl(kFetcherCache, F_GETFD) >= 0;
  return bring_all(spec, kFetcherSandbox, cached ? &cache : nullptr,
                   [](const auto& step) { say({{"progress", step}}); });
}

Status work_into(const char* folder) {
  const char* order = ::getenv(kFetchOrder);
  if (order == nullptr) return fail(ErrorKind::kInvalid, fmt::format("'{}' is not set", kFetchOrder));
  DROVER_TRY(const auto spec, decode_fetch_spec(order));
  keep_private();
  const UniqueFd sandbox(::open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!sandbox.valid()) return fail_errno(fmt::format("'{}' cannot be opened", folder), errno);
  return bring_all(spec, sandbox.get(), nullptr, [](const auto&) {});
}

json encode_file(const workload::Fetch& fetch) {
  return {{"uri", fetch.uri},
          {"extract", fetch.extract},
          {"executable", fetch.executable},
          {"cache", fetch.cache},
          {"output_file", fetch.output_file}};
}

workload::Fetch read_file_of(Decoder decoder) {
  workload::Fetch fetch;
  fetch.uri = decoder.string("uri").value_or("");
  fetch.extract = decoder.boolean("extract").value_or(true);
  fetch.executable = decoder.boolean("executable").value_or(false);
  fetch.cache = decoder.boolean("cache").value_or(false);
  fetch.output_file = decoder.string("output_file").value_or("");
  decoder.finish();
  return fetch;
}

}  // namespace

std::string encode(const FetchSpec& spec) {
  json files = json::array();
  for (const auto& file : spec.files) files.push_back(encode_file(file));
  const auto& limits = spec.limits;
  const json value = {{"format", kFetchSpecFormat},
                      {"files", files},
                      {"user", encode_user(spec.user)},
                      {"parent", spec.parent},
                      {"download_bytes", limits.download.bytes},
                      {"download_seconds", limits.download.duration.count()},
                      {"stall_seconds", limits.download.stall.count()},
                      {"window_seconds", limits.download.window.count()},
                      {"window_bytes", limits.download.least_in_window},
                      {"extract_bytes", limits.extract.bytes},
                      {"extract_entries", limits.extract.entries},
                      {"extract_expansion", limits.extract.expansion},
                      {"extract_free_bytes", limits.extract.free_bytes},
                      {"cache_bytes", limits.cache_bytes}};
  return to_text(value);
}

Result<FetchSpec> decode_fetch_spec(std::string_view text) {
  DROVER_TRY(const auto value, parse_json(text, "The fetcher's order"));
  std::vector<Error> mistakes;
  Decoder decoder(value, mistakes);
  decoder.format(kFetchSpecFormat);
  FetchSpec spec;
  const auto number = [&](const char* name) {
    return decoder.integer(name, 0, std::numeric_limits<std::int64_t>::max()).value_or(0);
  };
  const auto size = [&](const char* name) { return static_cast<std::uint64_t>(number(name)); };
  auto user = decoder.object("user");
  if (!user) return fail(ErrorKind::kInvalid, "The fetcher's order names no user");
  spec.user = read_user(std::move(*user));
  spec.parent = static_cast<pid_t>(number("parent"));
  spec.limits.download = {size("download_bytes"), std::chrono::seconds(number("download_seconds")),
                          std::chrono::seconds(number("stall_seconds"))};
  spec.limits.download.window = std::chrono::seconds(number("window_seconds"));
  spec.limits.download.least_in_window = size("window_bytes");
  spec.limits.extract = {size("extract_bytes"), size("extract_entries"), size("extract_expansion"),
                         size("extract_free_bytes")};
  spec.limits.cache_bytes = size("cache_bytes");
  for (auto& file : decoder.objects("files")) spec.files.push_back(read_file_of(std::move(file)));
  decoder.finish();
  if (!mistakes.empty()) return Failure(join_mistakes(mistakes, "The fetcher's order"));
  return spec;
}

int run_fetcher_into(const char* folder) {
  const auto done = work_into(folder);
  if (done) return EXIT_SUCCESS;
  (void)write_all(STDERR_FILENO, to_string(done.error()) + "\n", "standard error");
  return EXIT_FAILURE;
}

int run_fetcher() {
  ::signal(SIGPIPE, SIG_IGN);
  ::prctl(PR_SET_NAME, "drover-fetcher");
  const auto done = work();
  if (done) {
    say({{"done", true}});
    return EXIT_SUCCESS;
  }
  say({{"kind", error_kind_info(done.error().kind).name},
       {"message", done.error().message},
       {"hint", done.error().hint}});
  return EXIT_FAILURE;
}

}  // namespace drover::container
