#include "api/mesos/executor.h"

#include "api/mesos/executor_call.h"
#include "api/mesos/master.h"

namespace drover::api::mesos {

asio::awaitable<Result<Response>> call_executor(const Services& services, const Request& request) {
  // Whoever else asks, root too: nobody speaks for an executor but what runs in its container.
  if (request.executor.empty())
    co_return fail(ErrorKind::kUnauthenticated, "Only executors of frameworks may call this",
                   "an executor finds its token in MESOS_EXECUTOR_AUTHENTICATION_TOKEN, and sends it as "
                   "'Authorization: Bearer TOKEN' over TCP");
  const auto call = read_executor_call(request);
  if (!call) co_return call.error();
  auto type = MediaType::kJson;
  if (call->type() == v1::executor::Call::SUBSCRIBE) {
    const auto accepted = answer_type(request);
    if (!accepted) co_return accepted.error();
    type = *accepted;
  }
  co_return co_await services.mesos->executors().call(request.executor, *call, type);
}

}  // namespace drover::api::mesos
