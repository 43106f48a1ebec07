#include "gpu/xid_policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/shorten.h"

namespace drover::gpu {
namespace {

constexpr auto make_xid_table() {
  using enum XidSubject;
  using enum XidVerdict;
  return std::array{
      XidFact{8, 8, kEngine, kRest, "it stopped working for one program"},
      XidFact{11, 11, kApplication, kIgnore, "a program sent broken commands"},
      XidFact{13, 13, kApplication, kIgnore, "a program made the graphics engine fail"},
      XidFact{31, 31, kApplication, kIgnore, "a program used memory that is not its own"},
      XidFact{32, 32, kApplication, kIgnore, "a program sent broken commands"},
      XidFact{37, 38, kDriver, kIgnore, "driver and firmware misunderstood each other"},
      XidFact{39, 41, kEngine, kRest, "a copy engine failed"},
      XidFact{43, 43, kApplication, kIgnore, "it stopped working for one program"},
      XidFact{44, 44, kEngine, kIgnore, "a fault while changing between programs"},
      XidFact{45, 45, kApplication, kIgnore, "programs were ended because of another error"},
      XidFact{46, 46, kEngine, kReset, "it stopped working"},
      XidFact{48, 48, kMemory, kReset, "a memory error that could not be corrected"},
      XidFact{54, 54, kPower, kReset, "its power cable is not connected"},
      XidFact{60, 60, kEngine, kRest, "a video engine failed"},
      XidFact{61, 62, kFirmware, kReset, "its own micro-controller halted"},
      XidFact{63, 63, kMemory, kIgnore, "bad memory was noted for replacement"},
      XidFact{64, 64, kMemory, kReset, "bad memory could not be noted for replacement"},
      XidFact{65, 65, kEngine, kRest, "a video engine failed"},
      XidFact{66, 67, kDriver, kIgnore, "the driver used a register that it may not use"},
      XidFact{68, 68, kEngine, kIgnore, "a video decoder failed"},
      XidFact{69, 69, kApplication, kIgnore, "a program gave the graphics engine wrong work"},
      XidFact{70, 72, kEngine, kRest, "a copy engine failed"},
      XidFact{73, 73, kEngine, kRest, "a video encoder failed"},
      XidFact{74, 74, kNvlink, kReset, "an NVLink failed"},
      XidFact{75, 77, kEngine, kRest, "a copy engine failed"},
      XidFact{78, 78, kDriver, kRest, "a virtual GPU did not start"},
      XidFact{79, 79, kBus, kReset, "it has fallen off the bus"},
      XidFact{80, 80, kBus, kRest, "commands arrived broken"},
      XidFact{82, 82, kEngine, kRest, "a JPEG engine failed"},
      XidFact{83, 84, kEngine, kRest, "a video decoder failed"},
      XidFact{85, 85, kEngine, kRest, "a copy engine failed"},
      XidFact{86, 86, kEngine, kRest, "an optical flow engine failed"},
      XidFact{88, 89, kEngine, kRest, "a video decoder failed"},
      XidFact{92, 92, kMemory, kIgnore, "many memory errors were corrected"},
      XidFact{93, 93, kInformation, kIgnore, "its own storage is written too often"},
      XidFact{94, 94, kMemory, kRest, "a memory error that hit only one program"},
      XidFact{95, 95, kMemory, kReset, "a memory error that may have hit every program"},
      XidFact{96, 98, kEngine, kRest, "a video decoder failed"},
      XidFact{99, 105, kEngine, kRest, "a JPEG engine failed"},
      XidFact{106, 107, kInformation, kIgnore, "a test message"},
      XidFact{108, 108, kNvlink, kIgnore, "an address of another GPU was not known there"},
      XidFact{109, 109, kApplication, kIgnore, "changing between programs took too long"},
      XidFact{110, 110, kSecurity, kReset, "its security processor reported a fault"},
      XidFact{119, 119, kFirmware, kReset, "its system processor does not answer"},
      XidFact{120, 120, kFirmware, kReset, "its system processor failed"},
      XidFact{121, 121, kBus, kIgnore, "an error between the chips was corrected"},
      XidFact{126, 135, kEngine, kRest, "a copy engine failed"},
      XidFact{136, 136, kNvlink, kReset, "an NVLink could not be set up"},
      XidFact{137, 137, kNvlink, kIgnore, "memory of another GPU was used without permission"},
      XidFact{139, 139, kEngine, kRest, "an optical flow engine failed"},
      XidFact{140, 140, kMemory, kReset, "a memory error that could not be corrected"},
      XidFact{141, 141, kDriver, kIgnore, "a fast way into the driver failed"},
      XidFact{142, 142, kEngine, kRest, "a video encoder failed"},
      XidFact{143, 143, kFirmware, kReset, "it could not be initialised"},
      XidFact{144, 150, kNvlink, kReset, "an NVLink failed"},
      XidFact{151, 151, kSecurity, kReset, "its keys could not be changed"},
      XidFact{154, 154, kInformation, kIgnore, "what it needs to recover has changed"},
      XidFact{155, 155, kNvlink, kReset, "an NVLink failed"},
      XidFact{156, 156, kMemory, kReset, "a part of it is taken out of use at the next reset"},
      XidFact{157, 157, kMemory, kIgnore, "a part of it could not be taken out of use"},
      XidFact{158, 158, kFirmware, kReset, "it did not answer in time"},
      XidFact{160, 161, kMemory, kIgnore, "a memory channel is taken out of use at the next reset"},
      XidFact{162, 165, kPower, kIgnore, "a change of its power smoothing"},
      XidFact{167, 167, kBus, kReset, "the bus did not answer in time"},
      XidFact{168, 168, kMemory, kReset, "it has less memory than it should"},
      XidFact{171, 172, kMemory, kReset, "a memory error that could not be corrected"},
  };
}
constexpr auto kXidTable = make_xid_table();

/// The next of a list with commas between, without spaces and in small letters.
std::string next_xid_word(std::string_view& text) {
  const auto comma = std::min(text.find(','), text.size());
  std::string word;
  for (const char letter : text.substr(0, comma))
    if (letter != ' ' && letter != '\t' && letter != '\n')
      word += letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
  text.remove_prefix(std::min(comma + 1, text.size()));
  return word;
}

}  // namespace

std::string_view to_string(XidSubject subject) {
  constexpr std::array<std::string_view, 11> kNames{"application", "engine",      "memory", "NVLink",
                                                    "bus",         "firmware",    "driver", "power",
                                                    "security",    "information", "unknown"};
  return kNames.at(static_cast<std::size_t>(subject));
}

std::span<const XidFact> xid_table() {
  return kXidTable;
}

XidFact xid_fact(std::uint64_t xid) {
  for (const auto& fact : kXidTable)
    if (fact.first <= xid && xid <= fact.last) return fact;
  return {xid, xid, XidSubject::kUnknown, XidVerdict::kReset, "an error that is not known to Drover"};
}

Result<XidPolicy::Words> XidPolicy::parse_words(std::string_view text, std::string_view name) {
  Words words;
  while (!text.empty()) {
    const auto word = next_xid_word(text);
    if (word.empty()) continue;
    if (word == "all" || word == "xids") {
      words.every_xid = true;
      words.everything |= word == "all";
      continue;
    }
    std::uint64_t xid = 0;
    const auto* end = word.data() + word.size();
    const auto [stop, error] = std::from_chars(word.data(), end, xid);
    if (error != std::errc() || stop != end || xid == 0)
      return fail(ErrorKind::kInvalid, fmt::format("'{}' in {} is no XID", shortened(word), name),
                  "write 'all', 'xids', or numbers with commas between: 48,79");
    words.xids.insert(xid);
  }
  return words;
}

Result<XidPolicy> XidPolicy::parse(std::string_view disable, std::string_view enable) {
  XidPolicy policy;
  DROVER_TRY(policy.disable_, parse_words(disable, "the health checks to disable"));
  DROVER_TRY(policy.enable_, parse_words(enable, "the health checks to enable"));
  return policy;
}

XidVerdict XidPolicy::verdict(std::uint64_t xid) const {
  const auto told = xid_fact(xid).verdict;
  if (enable_.every_xid || enable_.xids.contains(xid))
    return told == XidVerdict::kIgnore ? XidVerdict::kRest : told;
  return disable_.every_xid || disable_.xids.contains(xid) ? XidVerdict::kIgnore : told;
}

}  // namespace drover::gpu
