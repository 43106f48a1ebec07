#pragma once

// A command that was not found, or cannot be executed, and lies where the caller stands: what to write
// instead.

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace drover::cli {

/// What the caller has by the name of the command, in the folder where he stands.
enum class Nearby { kNothing, kFile, kProgram };

/// Of a task that failed for want of its command; "" when there is nothing to say. `folder`: where the caller
/// stands. Pure.
std::string missing_command_hint(const nlohmann::json& record, const std::string& folder, Nearby nearby);

/// The same, of this process.
std::string missing_command_hint(const nlohmann::json& record);

}  // namespace drover::cli
