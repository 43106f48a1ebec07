#include "image/registry/login.h"

#include <fcntl.h>
#include <fmt/format.h>

#include "base/files.h"
#include "image/reader.h"
#include "image/text.h"

namespace drover::image {

Result<RegistryLogin> read_login(const User& user, const std::string& host) {
  constexpr std::uint64_t kMaxLoginFile = 1 << 20;
  const auto path = user.home + "/.docker/config.json";
  auto file = Reader(user).open_file(AT_FDCWD, path);
  if (!file) return RegistryLogin{};  // not there, or not his: he has no credentials
  const auto about = [&](const Error& error) {
    return Failure(context(error, fmt::format("'{}'", printable(path))));
  };
  const auto text = read_all(file->fd.get(), printable(path), kMaxLoginFile);
  if (!text) return about(text.error());
  auto login = find_login(*text, host);
  if (!login) return about(login.error());
  return login;
}

}  // namespace drover::image
