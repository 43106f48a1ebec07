#pragma once

// What every user of nlohmann/json makes of its templates, made once: in json_library.cc. It is among the
// headers that are compiled beforehand (cmake/DroverRoom.cmake), and there is no need to include it.

#include <nlohmann/json.hpp>
#include <string>

namespace drover {
using JsonText = nlohmann::detail::iterator_input_adapter<std::string::const_iterator>;
}  // namespace drover

extern template class nlohmann::basic_json<>;
extern template class nlohmann::detail::serializer<nlohmann::json>;
extern template class nlohmann::detail::lexer<nlohmann::json, drover::JsonText>;
extern template class nlohmann::detail::parser<nlohmann::json, drover::JsonText>;
