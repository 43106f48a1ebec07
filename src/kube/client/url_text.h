#pragma once

#include <string>
#include <string_view>

namespace drover::kube {

/// As it stands in one segment of a URL's path, or in one value of its query.
std::string url_text(std::string_view text);

}  // namespace drover::kube
