#include "api/credentials.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "api/secret_file.h"
#include "base/files.h"

namespace drover::api {
namespace {

Result<std::vector<Credential>> create_credentials(const std::string& path) {
  DROVER_TRY(auto secret, random_secret());
  const std::string comment = "# Who may use Drover over TCP: one user:secret a line.\n";
  DROVER_CHECK_OK(write_file(path, comment + "root:" + secret + "\n", 0600));
  return std::vector<Credential>{{"root", std::move(secret)}};
}

/// None: there is no file.
Result<std::optional<std::vector<Credential>>> find_credentials(const std::string& path) {
  DROVER_TRY(const auto text, read_secret_file(path, "The credentials file"));
  if (!text) return std::nullopt;
  auto credentials = parse_credentials(*text);
  if (!credentials)
    return Failure(context(credentials.error(), fmt::format("Failed to read the credentials in '{}'", path)));
  if (credentials->empty())
    return fail(ErrorKind::kInvalid, fmt::format("The credentials file '{}' names nobody", path),
                "remove it to get a new random secret for root at the next start");
  return std::move(*credentials);
}

}  // namespace

Result<std::vector<Credential>> open_credentials(const std::string& path) {
  DROVER_TRY(auto credentials, find_credentials(path));
  if (!credentials) return create_credentials(path);
  return std::move(*credentials);
}

Result<std::vector<Credential>> read_credentials(const std::string& path) {
  DROVER_TRY(auto credentials, find_credentials(path));
  if (!credentials)
    return fail(ErrorKind::kNotFound, fmt::format("There is no credentials file '{}' any more", path),
                "a new one, with a new random secret for root, is made at the next start");
  return std::move(*credentials);
}

}  // namespace drover::api
