#pragma once

// JSON of protobuf messages as Mesos reads and writes it, which is not the JSON mapping of protobuf itself:
// fields have their names in the .proto, 64-bit integers are numbers, and defaults of the .proto are written
// out. Bytes are base64, enums go by name, null is unset, and unknown fields and enum values are ignored.
// Pure.

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "base/result.h"

namespace google::protobuf {
class Message;
}

namespace drover::api::mesos {

/// Adds what `value` says to `message`. Errors are in the words of Mesos, which have no hint and no path.
Status from_json(const nlohmann::json& value, google::protobuf::Message& message);

/// Fields in the order of the .proto. Strings that are no UTF-8 are shown with U+FFFD.
std::string to_json(const google::protobuf::Message& message);

/// The path of a string field that holds no UTF-8, such as "subscribe.framework_info.user"; nullopt when all
/// do. Protobuf lets any bytes through, and what is kept must be text.
std::optional<std::string> find_no_utf8(const google::protobuf::Message& message);

}  // namespace drover::api::mesos
