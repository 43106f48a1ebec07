#include "api/mesos/media_type.h"

#include <gtest/gtest.h>

namespace drover::api::mesos {
namespace {

TEST(MediaTypeTest, ContentTypesMayHaveParameters) {
  EXPECT_EQ(media_type("application/json"), MediaType::kJson);
  EXPECT_EQ(media_type("Application/JSON ; charset=utf-8"), MediaType::kJson);
  EXPECT_EQ(media_type("application/x-protobuf"), MediaType::kProtobuf);
  EXPECT_EQ(media_type("application/xml"), std::nullopt);
  EXPECT_EQ(media_type("application/json2"), std::nullopt);
  EXPECT_EQ(media_type(""), std::nullopt);
}

TEST(MediaTypeTest, JsonWinsWhereItIsAllowed) {
  EXPECT_EQ(accepted_type(""), MediaType::kJson);
  EXPECT_EQ(accepted_type("*/*"), MediaType::kJson);
  EXPECT_EQ(accepted_type("application/x-protobuf, application/json"), MediaType::kJson);
  EXPECT_EQ(accepted_type("text/html, application/*;q=0.1"), MediaType::kJson);
  EXPECT_EQ(accepted_type("application/x-protobuf"), MediaType::kProtobuf);
  EXPECT_EQ(accepted_type("application/json;q=0, application/x-protobuf"), MediaType::kProtobuf);
  EXPECT_EQ(accepted_type("text/html"), std::nullopt);
  EXPECT_EQ(accepted_type("application/json;v=1;q=0.000"), std::nullopt);
}

}  // namespace
}  // namespace drover::api::mesos
