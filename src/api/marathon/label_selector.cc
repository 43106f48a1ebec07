#include "api/marathon/label_selector.h"

#include <fmt/format.h>

#include <algorithm>

namespace drover::api::marathon_v2 {
namespace {

using Kind = LabelRule::Kind;

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<std::vector<LabelRule>> rules() {
    std::vector<LabelRule> rules;
    skip();
    while (at_ < text_.size()) {
      DROVER_TRY(auto next, rule());
      rules.push_back(std::move(next));
      skip();
      if (at_ < text_.size() && !take(",")) return wrong("a comma");
    }
    return rules;
  }

 private:
  Result<LabelRule> rule() {
    LabelRule rule;
    rule.label = word();
    if (rule.label.empty()) return wrong("a label");
    skip();
    if (take("==") || take("=")) {
      rule.kind = Kind::kIn;
      rule.values = {word()};
    } else if (take("!=")) {
      rule.kind = Kind::kNotIn;
      rule.values = {word()};
    } else if (at_ < text_.size() && text_[at_] != ',') {
      const auto how = word();
      if (how != "in" && how != "notin") return wrong("'==', '!=', 'in' or 'notin'");
      rule.kind = how == "in" ? Kind::kIn : Kind::kNotIn;
      skip();
      if (!take("(")) return wrong("'('");
      do rule.values.push_back(word());
      while (take(","));
      if (!take(")")) return wrong("')'");
    }
    return rule;
  }

  std::string word() {
    skip();
    std::string word;
    while (at_ < text_.size() && std::string_view(" ,()=!").find(text_[at_]) == std::string_view::npos) {
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) ++at_;
      word += text_[at_++];
    }
    skip();
    return word;
  }

  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }

  bool take(std::string_view what) {
    if (text_.substr(at_, what.size()) != what) return false;
    at_ += what.size();
    return true;
  }

  Failure wrong(std::string_view expected) const {
    return fail(ErrorKind::kInvalid,
                fmt::format("The label selector '{}' is wrong at character {}: {} is expected", text_,
                            at_ + 1, expected));
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

Result<std::vector<LabelRule>> parse_label_selector(std::string_view text) {
  return Parser(text).rules();
}

bool matches(const std::vector<LabelRule>& rules, const std::map<std::string, std::string>& labels) {
  return std::all_of(rules.begin(), rules.end(), [&](const LabelRule& rule) {
    const auto label = labels.find(rule.label);
    if (label == labels.end()) return rule.kind == Kind::kNotIn;
    const bool listed = std::find(rule.values.begin(), rule.values.end(), label->second) != rule.values.end();
    return rule.kind == Kind::kExists || listed == (rule.kind == Kind::kIn);
  });
}

}  // namespace drover::api::marathon_v2
