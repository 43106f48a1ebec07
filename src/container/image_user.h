#pragma once

// Whom a task runs as inside an image. The image's own user database counts there, read from its layers with
// every link kept inside (openat2 RESOLVE_IN_ROOT): an image cannot show us the host's files. Thread safe.

#include <string>
#include <string_view>

#include "base/result.h"
#include "base/users.h"
#include "image/image.h"
#include "workload/task.h"

namespace drover::container {

/// A file of the image by its path without leading '/', from the topmost layer that has it; "" when none has.
/// kInvalid when it is there and no regular file.
Result<std::string> read_image_file(const image::Image& image, const std::string& path);

/// "app", "1000", "app:staff", "1000:100" (the image's USER) by the texts of its /etc/passwd and /etc/group.
/// A number needs no entry. Pure.
Result<User> parse_image_user(std::string_view text, std::string_view passwd, std::string_view group);

/// The task's user with the name and home that the image knows for its uid (none: the sandbox is home), and
/// without groups, which are the host's. The image's own USER is followed only where root asked for the task
/// and named nobody else: everyone else's task runs as the caller.
Result<User> user_in_image(const workload::Task& task, const image::Image& image);
/// The same by the image's USER and the texts of its databases. Pure.
Result<User> user_in_image(const workload::Task& task, const std::string& image_user, std::string_view passwd,
                           std::string_view group);

}  // namespace drover::container
