#include "api/beside.h"

#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <memory>

#include "api/answer_shares.h"
#include "api/async.h"
#include "api/workers.h"

namespace drover::api {
namespace {

using Clock = AnswerShares::Clock;

struct Written {
  Response response;
  Clock::duration wait{};  ///< it is not the caller's turn: nothing was written
};

}  // namespace

asio::awaitable<Result<Response>> write_beside(const Services& services, const engine::Caller& caller,
                                               Write write) {
  const auto until = Clock::now() + AnswerShares::kPatience;
  // What it holds goes where it was used: that may be much.
  const auto once = std::make_shared<Write>(std::move(write));
  // Asked right before: until then other answers to the caller may have been written, and not read.
  const auto in_turn = [&answers = *services.answers, uid = caller.user.uid, once]() -> Result<Written> {
    if (const auto wait = answers.wait(uid, Clock::now()); wait > wait.zero()) return Written{{}, wait};
    auto response = std::exchange(*once, nullptr)();
    if (!response) return Failure(std::move(response).error());
    response->share = answers.begin(uid, response->body.size(), Clock::now());
    return Written{std::move(*response), {}};
  };
  asio::steady_timer pause(co_await asio::this_coro::executor);
  while (true) {
    DROVER_CO_TRY(auto written, co_await on_pool(services.workers->lists, caller.user.uid, in_turn));
    if (written.wait <= written.wait.zero()) co_return std::move(written.response);
    if (Clock::now() > until) co_return Failure(services.answers->refusal(caller.user));
    pause.expires_after(written.wait);
    co_await pause.async_wait(kAsTuple);
  }
}

}  // namespace drover::api
