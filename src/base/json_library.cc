#include "base/json_templates.h"

template class nlohmann::basic_json<>;
template class nlohmann::detail::serializer<nlohmann::json>;
template class nlohmann::detail::lexer<nlohmann::json, drover::JsonText>;
template class nlohmann::detail::parser<nlohmann::json, drover::JsonText>;
