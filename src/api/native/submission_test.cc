// A gang may be large: nobody waits until it is read, or until its owner is told of it.

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <nlohmann/json.hpp>
#include <optional>

#include "api/native/handlers.h"
#include "api/testing/fake_daemon.h"
#include "api/testing/gate.h"
#include "api/workers.h"

namespace drover::api {
namespace {

using testing::Gate;

const engine::Caller kCarol{User{.uid = 1003, .name = "carol"}};

class SubmissionTest : public ::testing::Test {
 protected:
  SubmissionTest() {
    services_.decisions = &daemon_;
    services_.workers = &workers_;
  }

  void submit(std::string body) {
    request_.body = std::move(body);
    request_.caller = kCarol;
    boost::asio::co_spawn(context_, submit_task(services_, request_),
                          [this](std::exception_ptr failure, Result<Response> answer) {
                            ASSERT_FALSE(failure);
                            answer_ = std::move(answer);
                          });
  }
  /// What comes behind it waits until it is opened.
  void close(Gate& gate) {
    ASSERT_TRUE(workers_.submissions.post(kCarol.user.uid, [&] { gate.pass(); }));
  }
  std::size_t accepted() const { return daemon_.tasks(kCarol).records().size(); }

  boost::asio::io_context context_{1};
  testing::TemporaryFolder folder_;
  testing::FakeDaemon daemon_{folder_.path()};
  Services services_;
  Request request_;
  std::optional<Result<Response>> answer_;
  Workers workers_{context_};
};

TEST_F(SubmissionTest, OfAGangIsReadAndToldOfBesideTheStrand) {
  Gate reading;
  Gate writing;
  close(reading);
  submit(R"({"command":["a"],"gang":{"size":2}})");
  context_.poll();
  close(writing);
  EXPECT_EQ(accepted(), 0U);
  reading.open();
  while (accepted() == 0) context_.run_one();
  context_.poll();
  EXPECT_FALSE(answer_);
  writing.open();
  context_.run();
  ASSERT_TRUE(answer_ && *answer_);
  EXPECT_EQ((*answer_)->status, 201);
  const auto told = nlohmann::json::parse((*answer_)->body);
  EXPECT_EQ(told["gang"], "gang");
  EXPECT_EQ(told["tasks"][1]["task"]["gang"]["rank"], 1);
}

TEST_F(SubmissionTest, ThatIsWrongIsRefused) {
  submit(R"({"command":["a"],"gang":{"size":-2}})");
  context_.run();
  ASSERT_TRUE(answer_);
  ASSERT_FALSE(*answer_);
  EXPECT_EQ(answer_->error().path, "/gang/size");
  EXPECT_EQ(accepted(), 0U);
}

}  // namespace
}  // namespace drover::api
