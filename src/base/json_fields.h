#pragma once

// The fields of a JSON object without a look into their values: what is kept as text can be shown again in
// another order without being taken apart. Pure.

#include <string_view>
#include <utility>
#include <vector>

namespace drover {

/// Names and values as they stand in the text, which outlives them. Names are without their quotes, and
/// escapes in them are left as they are. The text is valid JSON without blanks, as dump() writes it; of
/// anything else there is as much as could be made out.
std::vector<std::pair<std::string_view, std::string_view>> json_fields(std::string_view object);

}  // namespace drover
