#include "cel/lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/shorten.h"
#include "cel/text.h"

namespace drover::cel {
namespace {

bool is_digit(char c) {
  return '0' <= c && c <= '9';
}
bool is_letter(char c) {
  return ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || c == '_';
}
int hex_digit(char c) {
  return is_digit(c)            ? c - '0'
         : 'a' <= c && c <= 'f' ? c - 'a' + 10
         : 'A' <= c && c <= 'F' ? c - 'A' + 10
                                : -1;
}

std::size_t count_of(std::string_view text, auto matches) {
  return static_cast<std::size_t>(std::ranges::find_if_not(text, matches) - text.begin());
}

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  Result<std::vector<Token>> all() {
    std::vector<Token> tokens;
    for (skip_blanks(); at_ < text_.size(); skip_blanks()) {
      DROVER_TRY(auto token, next());
      at_ += token.text.size();
      tokens.push_back(std::move(token));
    }
    tokens.push_back({Token::Kind::kEnd, "", at_, {}});
    return tokens;
  }

 private:
  std::string_view rest() const { return text_.substr(at_); }

  void skip_blanks() {
    constexpr std::string_view kBlank = "\t \r\n\f";
    while (at_ < text_.size()) {
      if (rest().starts_with("//"))
        at_ = std::min(text_.find('\n', at_), text_.size());
      else if (kBlank.find(text_[at_]) != kBlank.npos)
        ++at_;
      else
        break;
    }
  }

  Token token(Token::Kind kind, std::size_t size) const { return {kind, rest().substr(0, size), at_, {}}; }

  Result<Token> next() {
    const char c = text_[at_];
    const char following = at_ + 1 < text_.size() ? text_[at_ + 1] : '\0';
    if (is_digit(c) || (c == '.' && is_digit(following))) return token(Token::Kind::kNumber, number_size());
    if (const auto prefix = count_of(rest().substr(0, 2), is_letter); prefix <= 2)
      if (const auto quote = rest().substr(prefix); quote.starts_with('"') || quote.starts_with('\''))
        if (const auto letters = lower(rest().substr(0, prefix));
            letters.empty() || letters == "r" || letters == "b" || letters == "br")
          return quoted(prefix);
    if (is_letter(c))
      return token(Token::Kind::kName,
                   count_of(rest(), [](char one) { return is_letter(one) || is_digit(one); }));
    constexpr std::array<std::string_view, 6> kPairs{"==", "!=", "<=", ">=", "&&", "||"};
    if (std::ranges::find(kPairs, rest().substr(0, 2)) != kPairs.end()) return token(Token::Kind::kSymbol, 2);
    if (std::string_view("<>[]{}().,-!?:+*/%").find(c) != std::string_view::npos)
      return token(Token::Kind::kSymbol, 1);
    return no_cel("it has a character that means nothing", at_);
  }

  std::size_t number_size() const {
    const auto text = rest();
    if (text.starts_with("0x") && text.size() > 2 && hex_digit(text[2]) >= 0) {
      const auto size = 2 + count_of(text.substr(2), [](char c) { return hex_digit(c) >= 0; });
      return size + (size < text.size() && lower(text[size]) == 'u' ? 1 : 0);
    }
    auto size = count_of(text, is_digit);
    if (size < text.size() && lower(text[size]) == 'u') return size + 1;
    if (const auto fraction = count_of(text.substr(std::min(size + 1, text.size())), is_digit);
        size < text.size() && text[size] == '.' && fraction > 0)
      size += 1 + fraction;
    if (size < text.size() && lower(text[size]) == 'e') {
      const bool sign = size + 1 < text.size() && (text[size + 1] == '+' || text[size + 1] == '-');
      const auto digits = count_of(text.substr(std::min(size + (sign ? 2 : 1), text.size())), is_digit);
      if (digits > 0) size += (sign ? 2 : 1) + digits;
    }
    return size;
  }

  Result<Token> quoted(std::size_t prefix) const {
    const auto letters = lower(rest().substr(0, prefix));
    const bool raw = letters.ends_with('r'), bytes = letters.starts_with('b');
    const auto text = rest().substr(prefix);
    const auto mark = text.substr(0, text.starts_with("\"\"\"") || text.starts_with("'''") ? 3 : 1);
    std::string value;
    for (std::size_t i = mark.size(); i < text.size();) {
      if (text.substr(i).starts_with(mark)) {
        auto result = token(Token::Kind::kLiteral, prefix + i + mark.size());
        result.value = bytes ? Value(Bytes{std::move(value)}) : Value(std::move(value));
        return result;
      }
      const char c = text[i];
      if ((c == '\n' || c == '\r') && mark.size() == 1) break;
      if (c == '\\' && !raw) {
        const auto size = escape(text.substr(i), bytes, value);
        if (size == 0) return no_cel("a text has an escape sequence that means nothing", at_ + prefix + i);
        i += size;
      } else if (c == '\r') {  // line ends are all the same
        value += '\n';
        i += text.substr(i).starts_with("\r\n") ? 2 : 1;
      } else {
        value += c;
        ++i;
      }
    }
    return no_cel("a text does not end", at_);
  }

  /// How many characters it has; 0 when it is none.
  static std::size_t escape(std::string_view text, bool bytes, std::string& value) {
    constexpr std::string_view kLetters = "abfnrtv\\'\"`?", kMeanings = "\a\b\f\n\r\t\v\\'\"`?";
    const char c = text.size() > 1 ? text[1] : '\0';
    if (const auto at = kLetters.find(c); at != kLetters.npos && text.size() > 1) {
      value += kMeanings[at];
      return 2;
    }
    const bool octal = '0' <= c && c <= '3';
    const std::size_t begin = octal ? 1 : 2;
    const std::size_t digits = octal                ? 3
                               : lower(c) == 'x'    ? 2
                               : c == 'u' && !bytes ? 4
                               : c == 'U' && !bytes ? 8
                                                    : 0;
    if (digits == 0 || text.size() < begin + digits) return 0;
    std::uint32_t number = 0;
    for (const char one : text.substr(begin, digits)) {
      const int digit = hex_digit(one);
      if (digit < 0 || (octal && digit > 7)) return 0;
      number = number * (octal ? 8 : 16) + static_cast<std::uint32_t>(digit);
    }
    if (bytes)
      value += static_cast<char>(number);
    else if (!append_utf8(value, number))
      return 0;
    return begin + digits;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

Failure no_cel(std::string_view what, std::size_t place) {
  return fail(
      ErrorKind::kInvalid, fmt::format("the selector is no CEL: {}, in character {}", what, place + 1),
      "Kubernetes' documentation has the language: https://kubernetes.io/docs/reference/using-api/cel/");
}

Result<std::vector<Token>> tokens_of(std::string_view text) {
  return Lexer(text).all();
}

Result<Value> number_of(std::string_view text, bool negative, std::size_t place) {
  const auto wrong = [&] {
    return no_cel(fmt::format("the number '{}' is too large", shortened(std::string(text))), place);
  };
  const bool hexadecimal = text.starts_with("0x");
  if (!hexadecimal && text.find_first_of(".eE") != text.npos) {
    const auto number = parse_double((negative ? "-" : "") + std::string(text));
    if (!number) return wrong();
    return Value(*number);
  }
  const bool is_unsigned = lower(text.back()) == 'u';
  if (is_unsigned) text.remove_suffix(1);
  if (hexadecimal) text.remove_prefix(2);
  const auto sign = negative ? "-" : "";
  if (is_unsigned) {
    const auto number = parse_whole<std::uint64_t>(sign + std::string(text), hexadecimal ? 16 : 10);
    if (!number) return wrong();
    return Value(*number);
  }
  const auto number = parse_whole<std::int64_t>(sign + std::string(text), hexadecimal ? 16 : 10);
  if (!number) return wrong();
  return Value(*number);
}

}  // namespace drover::cel
