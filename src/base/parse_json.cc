#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/decode.h"
#include "base/json_items.h"
#include "base/shorten.h"

namespace drover {
namespace {

using nlohmann::json;

/// Builds the document while it is read, and stops at the first thing that cannot be accepted.
class Builder final : public nlohmann::json_sax<json> {
 public:
  enum class Trouble { kNone, kSyntax, kEncoding, kTooLarge, kTooDeep, kDuplicate };

  bool null() override { return scalar(json()); }
  bool boolean(bool value) override { return scalar(json(value)); }
  bool number_integer(number_integer_t value) override { return scalar(json(value)); }
  bool number_unsigned(number_unsigned_t value) override { return scalar(json(value)); }
  bool number_float(number_float_t value, const string_t&) override { return scalar(json(value)); }
  bool string(string_t& value) override { return scalar(json(std::move(value))); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return enter(json::object()); }
  bool end_object() override { return leave(); }
  bool start_array(std::size_t) override { return enter(json::array()); }
  bool end_array() override { return leave(); }

  bool key(string_t& name) override {
    if (passing_over_ > 0) return true;
    auto& level = levels_.back();
    level.name = std::move(name);
    passes_over_next_ = !left_out_.member.empty() && level.name == left_out_.member && levels_.size() > 1 &&
                        levels_[levels_.size() - 2].name == left_out_.parent;
    if (passes_over_next_) return true;
    const auto [member, added] = level.value->emplace(level.name, nullptr);
    level.member = &*member;
    if (added) return true;
    trouble = Trouble::kDuplicate;
    return false;
  }

  bool parse_error(std::size_t at, const std::string& last,
                   const nlohmann::detail::exception& error) override {
    position = at;
    token = last;
    // The library tells the two apart by its words alone.
    const bool encoding = std::string_view(error.what()).find("ill-formed UTF-8") != std::string_view::npos;
    if (dynamic_cast<const json::out_of_range*>(&error) != nullptr)
      trouble = Trouble::kTooLarge;
    else
      trouble = encoding ? Trouble::kEncoding : Trouble::kSyntax;
    return false;
  }

  /// Of the value that is being read.
  std::string path() const {
    std::string path;
    for (const auto& level : levels_)
      path += "/" + (level.value->is_array() ? std::to_string(level.done) : pointer_token(level.name));
    return shortened(path);
  }

  const std::string& field() const { return levels_.back().name; }

  void leave_out(const LeftOut& left_out) { left_out_ = left_out; }

  /// Items of the list of that name in the document are handed out instead of kept.
  void hand_out(std::string_view list, const std::function<void(json&)>& visit) {
    list_ = list;
    visit_ = &visit;
  }

  json document;
  Trouble trouble = Trouble::kNone;
  std::size_t position = 0;  ///< bytes read when it stopped
  std::string token;

 private:
  struct Level {
    json* value = nullptr;
    std::string name;        ///< of the member that is being read
    json* member = nullptr;  ///< where it is to stand
    std::size_t done = 0;    ///< items that were read whole
  };

  json* add(json value) {
    if (levels_.empty()) {
      document = std::move(value);
      return &document;
    }
    auto& level = levels_.back();
    if (level.value->is_array()) return &level.value->emplace_back(std::move(value));
    return &(*level.member = std::move(value));
  }
  bool scalar(json value) {
    if (passing_over_ > 0 || std::exchange(passes_over_next_, false)) return true;
    add(std::move(value));
    return next();
  }
  bool enter(json value) {
    if (levels_.size() + passing_over_ >= kMostJsonLevels) {
      trouble = Trouble::kTooDeep;
      return false;
    }
    if (passing_over_ > 0 || std::exchange(passes_over_next_, false)) {
      ++passing_over_;
      return true;
    }
    auto* const added = add(std::move(value));
    levels_.push_back({added, "", nullptr, 0});
    return true;
  }
  bool leave() {
    if (passing_over_ > 0) {
      --passing_over_;
      return true;
    }
    levels_.pop_back();
    return next();
  }
  bool next() {
    if (levels_.empty()) return true;
    ++levels_.back().done;
    if (visit_ != nullptr && levels_.size() == 2 && levels_.front().name == list_) {
      auto& list = *levels_.back().value;
      if (list.is_array()) {
        (*visit_)(list.back());
        list.clear();
      }
    }
    return true;
  }

  std::vector<Level> levels_;
  LeftOut left_out_;
  bool passes_over_next_ = false;
  std::size_t passing_over_ = 0;  ///< levels within what is left out
  std::string_view list_;
  const std::function<void(json&)>* visit_ = nullptr;
};

std::string place(std::string_view text, std::size_t position) {
  const auto before = text.substr(0, std::min(position, text.size()));
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const auto line_start = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
  return fmt::format("line {}, column {}", line, before.size() - line_start);
}

Result<json> build(Builder& builder, std::string_view text, std::string_view what) {
  const auto refuse = [&](std::string message) {
    return fail(ErrorKind::kInvalid, shortened(std::move(message)), "", builder.path());
  };
  try {
    if (json::sax_parse(text, &builder)) return std::move(builder.document);
  } catch (const json::exception& error) {
    return refuse(fmt::format("{} is not JSON: {}", what, error.what()));
  }
  switch (builder.trouble) {
    case Builder::Trouble::kTooLarge:
      return refuse(fmt::format("{} holds a number that is too large: {}", what, builder.token));
    case Builder::Trouble::kTooDeep:
      return refuse(fmt::format("{} is nested deeper than {} levels", what, kMostJsonLevels));
    case Builder::Trouble::kDuplicate:
      return refuse(fmt::format("{} has the field '{}' twice", what, builder.field()));
    case Builder::Trouble::kEncoding:
      return refuse(fmt::format("{} is not UTF-8: {}", what, place(text, builder.position)));
    default:
      return refuse(fmt::format("{} is not JSON: {}", what, place(text, builder.position)));
  }
}

}  // namespace

Result<json> parse_json(std::string_view text, std::string_view what) {
  Builder builder;
  return build(builder, text, what);
}

Result<json> parse_json(std::string_view text, std::string_view what, const LeftOut& left_out) {
  Builder builder;
  builder.leave_out(left_out);
  return build(builder, text, what);
}

Result<json> parse_json_items(std::string_view text, std::string_view what, std::string_view name,
                              const std::function<void(json&)>& visit, const LeftOut& left_out) {
  Builder builder;
  builder.leave_out(left_out);
  builder.hand_out(name, visit);
  return build(builder, text, what);
}

}  // namespace drover
