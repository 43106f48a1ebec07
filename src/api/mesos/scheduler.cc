#include "api/mesos/scheduler.h"

#include "api/async.h"
#include "api/mesos/call.h"
#include "api/mesos/master.h"
#include "api/workers.h"

namespace drover::api::mesos {

asio::awaitable<Result<Response>> call_scheduler(const Services& services, const Request& request) {
  const auto call = read_call(request);
  if (!call) co_return call.error();
  const auto header = request.headers.find("mesos-stream-id");
  auto& master = *services.mesos;
  if (call->type() == Call::SUBSCRIBE) {
    const auto type = answer_type(request);
    if (!type) co_return type.error();
    if (header != request.headers.end())
      co_return text_response(400, "Subscribe calls should not include the 'Mesos-Stream-Id' header");
    co_return co_await master.subscribe(*request.caller, *call, *type);
  }
  // Who the users of tasks are is asked of the system, which may take its time.
  Users users;
  for (const auto& name : master.users_of(*request.caller, *call)) {
    auto user = co_await services.workers->users.named(name, request.caller->user.uid);
    if (user) users.emplace(name, std::move(*user));
  }
  const auto stream_id = header == request.headers.end() ? "" : header->second;
  co_return co_await master.call(*request.caller, *call, stream_id, users);
}

}  // namespace drover::api::mesos
