#include <re2/re2.h>

#include <algorithm>

#include "cel/functions.h"
#include "cel/text.h"

// Texts and patterns: the strings extension of CEL, and what Kubernetes adds to it.
namespace drover::cel {
namespace {

const std::string& text_at(const Call& call, std::size_t i) {
  return *call.arguments[i].text();
}
std::int64_t number_at(const Call& call, std::size_t i, std::int64_t otherwise) {
  return i < call.arguments.size() ? *call.arguments[i].as<std::int64_t>() : otherwise;
}

Value out_of_range() {
  return problem("an index is outside of a text");
}

/// A text as its code points.
class Runes {
 public:
  Runes(const Call& call, const std::string& text) : text_(text), begins_(code_points(text)) {
    call.work.spend_text(text.size());
  }
  std::int64_t size() const { return static_cast<std::int64_t>(begins_.size()) - 1; }
  std::size_t byte(std::int64_t rune) const { return begins_[static_cast<std::size_t>(rune)]; }
  std::int64_t rune(std::size_t byte) const {
    return std::ranges::lower_bound(begins_, byte) - begins_.begin();
  }
  Value part(std::int64_t begin, std::int64_t end) const {
    return text_.substr(byte(begin), byte(end) - byte(begin));
  }

 private:
  const std::string& text_;
  std::vector<std::size_t> begins_;
};

Value char_at(const Call& call) {
  const Runes runes(call, text_at(call, 0));
  const auto index = number_at(call, 1, 0);
  if (index < 0 || index > runes.size()) return out_of_range();
  return runes.part(index, std::min(index + 1, runes.size()));
}

Value index_in_text(const Call& call) {
  const auto offset = number_at(call, 2, 0);
  if (text_at(call, 1).empty()) return offset;
  const Runes runes(call, text_at(call, 0));
  if (offset < 0) return out_of_range();
  if (offset >= runes.size()) return std::int64_t{-1};
  const auto found = text_at(call, 0).find(text_at(call, 1), runes.byte(offset));
  return found == std::string::npos ? std::int64_t{-1} : runes.rune(found);
}

Value last_index_in_text(const Call& call) {
  const Runes runes(call, text_at(call, 0)), wanted(call, text_at(call, 1));
  const auto offset = number_at(call, 2, wanted.size() == 0 ? runes.size() : runes.size() - 1);
  if (wanted.size() == 0) return offset;
  if (call.arguments.size() == 2 && text_at(call, 0).size() < text_at(call, 1).size())
    return std::int64_t{-1};
  if (offset < 0) return out_of_range();
  const auto last = std::min(offset, runes.size() - wanted.size());
  if (offset >= runes.size() || last < 0) return std::int64_t{-1};
  const auto found = text_at(call, 0).rfind(text_at(call, 1), runes.byte(last));
  return found == std::string::npos ? std::int64_t{-1} : runes.rune(found);
}

template <char kFirst, char kLast, int kShift>
Value shifted(const Call& call) {
  auto text = text_at(call, 0);
  call.work.spend_text(text.size());
  for (auto& c : text)
    if (kFirst <= c && c <= kLast) c = static_cast<char>(c + kShift);
  return text;
}

Value replace(const Call& call) {
  const auto &text = text_at(call, 0), &old = text_at(call, 1), &replacement = text_at(call, 2);
  auto left = number_at(call, 3, -1);
  std::string result;
  std::size_t at = 0;
  while (left != 0 && at <= text.size()) {
    const auto found = text.find(old, at);
    if (found == std::string::npos || !call.work.spend_text(found - at + replacement.size())) break;
    result.append(text, at, found - at).append(replacement);
    at = found + old.size();
    if (left > 0) --left;
    if (!old.empty()) continue;
    if (at == text.size()) return result;
    const auto next = code_points(std::string_view(text).substr(at, 4))[1];  // between all code points
    result.append(text, at, next);
    at += next;
  }
  call.work.spend_text(text.size() - at);
  return result.append(text, at, std::string::npos);
}

Value split(const Call& call) {
  const auto &text = text_at(call, 0), &separator = text_at(call, 1);
  const auto most = number_at(call, 2, -1);
  const Runes runes(call, text);
  List parts;
  const auto full = [&] { return most >= 0 && static_cast<std::int64_t>(parts.size()) + 1 >= most; };
  if (most == 0 || (separator.empty() && text.empty())) return parts;
  std::size_t at = 0;
  while (!full() && call.work.spend(1)) {
    const auto found = separator.empty() ? runes.byte(runes.rune(at) + 1) : text.find(separator, at);
    if (found == std::string::npos || (separator.empty() && found == text.size())) break;
    parts.emplace_back(text.substr(at, found - at));
    at = found + separator.size();
  }
  parts.emplace_back(text.substr(at));
  return parts;
}

Value substring(const Call& call) {
  const Runes runes(call, text_at(call, 0));
  const auto begin = number_at(call, 1, 0), end = number_at(call, 2, runes.size());
  if (begin < 0 || begin > end || end > runes.size()) return out_of_range();
  return runes.part(begin, end);
}

Value trim(const Call& call) {
  constexpr std::string_view kBlanks[]{"\t",     "\n",     "\v",     "\f",     "\r",     " ",      "\u0085",
                                       "\u00A0", "\u1680", "\u2000", "\u2001", "\u2002", "\u2003", "\u2004",
                                       "\u2005", "\u2006", "\u2007", "\u2008", "\u2009", "\u200A", "\u2028",
                                       "\u2029", "\u202F", "\u205F", "\u3000"};
  std::string_view text = text_at(call, 0);
  call.work.spend_text(text.size());
  const auto blank_begin = [&](auto blank) { return text.starts_with(blank); };
  const auto blank_end = [&](auto blank) { return text.ends_with(blank); };
  for (auto found = std::ranges::find_if(kBlanks, blank_begin); found != std::end(kBlanks);
       found = std::ranges::find_if(kBlanks, blank_begin))
    text.remove_prefix(found->size());
  for (auto found = std::ranges::find_if(kBlanks, blank_end); found != std::end(kBlanks);
       found = std::ranges::find_if(kBlanks, blank_end))
    text.remove_suffix(found->size());
  return std::string(text);
}

Value join(const Call& call) {
  std::string result;
  const std::string separator = call.arguments.size() > 1 ? text_at(call, 1) : "";
  const auto& list = *call.arguments[0].list();
  for (std::size_t i = 0; i < list.size(); ++i) {
    const auto* text = list[i].text();
    if (text == nullptr) return problem("only texts can be joined");
    if (!call.work.spend_text(text->size() + separator.size())) return problem("");
    result += (i == 0 ? "" : separator) + *text;
  }
  return result;
}

Value starts_with(const Call& call) {
  return text_at(call, 0).starts_with(text_at(call, 1));
}
Value ends_with(const Call& call) {
  return text_at(call, 0).ends_with(text_at(call, 1));
}
Value contains_text(const Call& call) {
  call.work.spend_text(text_at(call, 0).size());
  return text_at(call, 0).find(text_at(call, 1)) != std::string::npos;
}

/// The pattern of a call, which costs what it takes to make and to use it.
Result<std::shared_ptr<const re2::RE2>> pattern_of(const Call& call) {
  const auto &text = text_at(call, 0), &pattern = text_at(call, 1);
  const Failure exhausted = fail(ErrorKind::kExhausted, "a pattern takes too much work");
  if (!call.work.spend((1 + text.size() / 10) * (1 + pattern.size() / 4))) return exhausted;
  if (call.pattern != nullptr) return std::shared_ptr<const re2::RE2>(call.pattern, [](const re2::RE2*) {});
  if (!call.work.spend(100 + pattern.size())) return exhausted;
  auto compiled = compiled_pattern(pattern);
  if (!compiled || !call.work.spend(static_cast<std::size_t>((*compiled)->ProgramSize())))
    call.work.spend(compiled ? 0 : 10'000);
  return compiled;
}

Value matches(const Call& call) {
  const auto pattern = pattern_of(call);
  if (!pattern) return pattern.error();
  return re2::RE2::PartialMatch(text_at(call, 0), **pattern);
}

Value find_all(const Call& call) {
  const auto pattern = pattern_of(call);
  if (!pattern) return pattern.error();
  const auto& text = text_at(call, 0);
  const auto most = number_at(call, 2, -1);
  List found;
  std::size_t at = 0, last_end = std::string::npos;
  while (at <= text.size() && (most < 0 || static_cast<std::int64_t>(found.size()) < most)) {
    re2::StringPiece match;
    if (!call.work.spend_text(text.size() - at)) break;
    if (!(*pattern)->Match(text, at, text.size(), re2::RE2::UNANCHORED, &match, 1)) break;
    const auto begin = static_cast<std::size_t>(match.data() - text.data()), end = begin + match.size();
    const bool again = end == at && begin == last_end;  // nothing, directly behind a match
    at = end > at           ? end
         : at < text.size() ? at + code_points(std::string_view(text).substr(at, 4))[1]
                            : at + 1;
    last_end = end;
    if (!again) found.emplace_back(std::string(match));
  }
  return found;
}

Value find_first(const Call& call) {
  const auto pattern = pattern_of(call);
  if (!pattern) return pattern.error();
  re2::StringPiece match;
  const auto& text = text_at(call, 0);
  if (!(*pattern)->Match(text, 0, text.size(), re2::RE2::UNANCHORED, &match, 1)) return std::string();
  return std::string(match);
}

constexpr Declaration kStrings[]{
    {"string:charAt(int)->string", char_at},
    {"string:indexOf(string)->int;string:indexOf(string,int)->int", index_in_text},
    {"string:lastIndexOf(string)->int;string:lastIndexOf(string,int)->int", last_index_in_text},
    {"string:lowerAscii()->string", shifted<'A', 'Z', 'a' - 'A'>},
    {"string:upperAscii()->string", shifted<'a', 'z', 'A' - 'a'>},
    {"string:replace(string,string)->string;string:replace(string,string,int)->string", replace},
    {"string:split(string)->list<string>;string:split(string,int)->list<string>", split},
    {"string:substring(int)->string;string:substring(int,int)->string", substring},
    {"string:trim()->string", trim},
    {"list<string>:join()->string;list<string>:join(string)->string", join},
    {"string:startsWith(string)->bool", starts_with},
    {"string:endsWith(string)->bool", ends_with},
    {"string:contains(string)->bool", contains_text},
    {"matches(string,string)->bool;string:matches(string)->bool", matches},
    {"string:find(string)->string", find_first},
    {"string:findAll(string)->list<string>;string:findAll(string,int)->list<string>", find_all},
};

}  // namespace

std::span<const Declaration> string_functions() {
  return kStrings;
}

Result<std::shared_ptr<const re2::RE2>> compiled_pattern(const std::string& pattern) {
  constexpr std::int64_t kMostMemory = 2 << 20;
  re2::RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(kMostMemory);
  auto compiled = std::make_shared<const re2::RE2>(pattern, options);
  if (compiled->ok()) return compiled;
  const bool unknown =
      compiled->error_code() == re2::RE2::ErrorPatternTooLarge || pattern.find("(?<") != pattern.npos;
  return fail(unknown ? ErrorKind::kUnsupported : ErrorKind::kInvalid,
              "a pattern of the selector is wrong: " + compiled->error());
}

}  // namespace drover::cel
