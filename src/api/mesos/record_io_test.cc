#include "api/mesos/record_io.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace drover::api::mesos {
namespace {

using ::testing::ElementsAre;

TEST(RecordIo, CountsBytes) {
  EXPECT_EQ(encode_record(R"({"type":"HEARTBEAT"})"), "20\n{\"type\":\"HEARTBEAT\"}");
  EXPECT_EQ(encode_record(std::string("\x08\x08", 2)), std::string("2\n\x08\x08", 4));
  EXPECT_EQ(encode_record(""), "0\n");
  EXPECT_EQ(encode_record("ä"), "2\nä");
}

TEST(RecordIo, SurvivesAnyCuts) {
  EXPECT_TRUE(rc::check([](const std::vector<std::string>& records, const std::vector<std::uint8_t>& cuts) {
    std::string stream;
    for (const auto& record : records) stream += encode_record(record);
    RecordDecoder decoder(1000);
    std::vector<std::string> read;
    std::string_view rest = stream;
    for (std::size_t i = 0; !rest.empty(); ++i) {
      const std::size_t length = i < cuts.size() ? cuts[i] % 8 : rest.size();
      const auto piece = rest.substr(0, length);
      const auto records_of_piece = decoder.feed(piece).value();
      read.insert(read.end(), records_of_piece.begin(), records_of_piece.end());
      rest.remove_prefix(piece.size());
    }
    RC_ASSERT(read == records);
    RC_ASSERT(decoder.between_records());
  }));
}

TEST(RecordIo, EmptyRecordsCount) {
  RecordDecoder decoder(10);
  EXPECT_THAT(decoder.feed("0\n0\n1\nx").value(), ElementsAre("", "", "x"));
}

TEST(RecordIo, RefusesWhatIsNoLengthAndWhatIsTooLong) {
  for (const auto* stream : {"x", "-1\n", "\n", "1 \nx", "0x1\n", "11\n", "99999999999999999999", "+1\nx"}) {
    RecordDecoder decoder(10);
    EXPECT_FALSE(decoder.feed(stream)) << stream;
    EXPECT_FALSE(decoder.feed("1\nx")) << "the stream is lost";
    EXPECT_FALSE(decoder.between_records());
  }
  RecordDecoder endless(10);
  for (int i = 0; i < 19; ++i) EXPECT_TRUE(endless.feed("0"));
  EXPECT_FALSE(endless.feed("0"));
}

}  // namespace
}  // namespace drover::api::mesos
