#include "log_setup.h"

#include <spdlog/formatter.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <memory>
#include <string>

#include "base/json_writer.h"
#include "base/units.h"

namespace drover {
namespace {

/// {"time": "…", "level": "info", "message": "…"}
class JsonLines final : public spdlog::formatter {
 public:
  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& line) override {
    std::string text;
    JsonWriter object(text);
    object.begin_object();
    object.field("time", format_time(std::chrono::floor<std::chrono::milliseconds>(message.time)));
    const auto level = spdlog::level::to_string_view(message.level);
    object.field("level", std::string(level.data(), level.size()));
    object.field("message", std::string(message.payload.data(), message.payload.size()));
    object.end_object();
    text += '\n';
    line.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<spdlog::formatter> clone() const override { return std::make_unique<JsonLines>(); }
};

}  // namespace

void set_up_log(const cli::LogOptions& options) {
  spdlog::set_default_logger(spdlog::stderr_color_mt("drover"));
  spdlog::set_level(spdlog::level::from_str(options.level));
  if (options.format == "json")
    spdlog::set_formatter(std::make_unique<JsonLines>());
  else
    spdlog::set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %^%l%$ %v", spdlog::pattern_time_type::utc);
}

}  // namespace drover
