#include "workload/webhook.h"

#include <gtest/gtest.h>

namespace drover::workload {
namespace {

TEST(Webhook, IsReadFromItsUrl) {
  EXPECT_EQ(*parse_webhook("http://example.org"), (Webhook{false, "example.org", 80, "/", ""}));
  EXPECT_EQ(*parse_webhook("https://me:a%20b@example.org:8443/runs?of=x%26y#here"),
            (Webhook{true, "example.org", 8443, "/runs?of=x%26y", "me:a b"}));
  EXPECT_EQ(*parse_webhook("HTTP://[::1]:9?a=b"), (Webhook{false, "::1", 9, "/?a=b", ""}));
}

TEST(Webhook, OtherTextsAreRefusedAndNoPasswordIsShown) {
  for (const std::string url :
       {"", "example.org", "ftp://example.org/", "file:///etc/passwd", "http://", "http:///x",
        "http://example.org:0/", "http://example.org:99999/", "http://a b/", "http://a%0ab/", "http://a%00b/",
        "http://example.org/\r\nX-Evil: 1"}) {
    const auto hook = parse_webhook(url);
    ASSERT_FALSE(hook) << url;
    EXPECT_EQ(hook.error().kind, ErrorKind::kInvalid);
  }
  EXPECT_FALSE(parse_webhook("http://example.org/" + std::string(2048, 'x')));
  const auto secret = parse_webhook("ftp://me:secret@example.org/");
  EXPECT_EQ(to_string(secret.error()).find("secret"), std::string::npos);
}

}  // namespace
}  // namespace drover::workload
