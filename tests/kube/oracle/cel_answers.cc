// Says what Drover answers to selectors of devices: the same questions and answers, a line each, as cel.go
// has.
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "cel/selector.h"

namespace {

using namespace drover;
using Json = nlohmann::json;

template <typename T>
std::vector<T> all_of(const Json& values) {
  std::vector<T> result;
  for (const auto& value : values) result.push_back(T{value});
  return result;
}

template <>
std::vector<cel::Version> all_of(const Json& values) {
  std::vector<cel::Version> result;
  for (const auto& value : values) result.push_back({value.get<std::string>()});
  return result;
}

cel::Attribute attribute_of(const Json& json) {
  const auto& value = json.begin().value();
  const auto& kind = json.begin().key();
  if (kind == "int") return value.get<std::int64_t>();
  if (kind == "bool") return value.get<bool>();
  if (kind == "string") return value.get<std::string>();
  if (kind == "version") return cel::Version{value.get<std::string>()};
  if (kind == "ints") return all_of<std::int64_t>(value);
  if (kind == "bools") return all_of<bool>(value);
  if (kind == "strings") return all_of<std::string>(value);
  return all_of<cel::Version>(value);
}

cel::Device device_of(const Json& json) {
  cel::Device device;
  device.driver = json.value("driver", "");
  device.allow_multiple_allocations = json.value("allowMultipleAllocations", false);
  const auto attributes = json.value("attributes", Json::object()),
             capacity = json.value("capacity", Json::object());
  for (const auto& [name, value] : attributes.items()) device.attributes[name] = attribute_of(value);
  for (const auto& [name, value] : capacity.items())
    device.capacity[name] = Quantity::parse(value["value"].get<std::string>()).value();
  return device;
}

std::string said(const Result<bool>& answer) {
  if (answer) return *answer ? "true" : "false";
  return (answer.error().kind == ErrorKind::kUnsupported ? "unsupported: " : "error: ") +
         to_string(answer.error());
}

}  // namespace

int main() {
  std::ios::sync_with_stdio(false);
  for (std::string line; std::getline(std::cin, line);) {
    const auto question = Json::parse(line);
    const auto selector = cel::Selector::compile(question["expression"].get<std::string>());
    Json answer;
    if (!selector) {
      answer[selector.error().kind == ErrorKind::kUnsupported ? "unsupported" : "refused"] =
          to_string(selector.error());
    } else {
      for (const auto& device : question["devices"])
        answer["answers"].push_back(said(selector->matches(device_of(device))));
    }
    std::cout << answer.dump() << std::endl;
  }
}
