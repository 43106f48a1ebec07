// Streams and events. Work of a context is done in one order, so streams of one context never wait for each
// other.

#include "sim/cuda/call.h"
#include "sim/cuda/event.h"
#include "sim/cuda/graph.h"
#include "sim/cuda/pool.h"

using namespace drover::sim::cuda;

namespace {

constexpr int kGreatestPriority = -5;

CUresult with_event(CUevent handle, auto body) {
  return with_driver([&](Driver& driver) {
    const auto event = driver.events.find(handle);
    return event ? body(event) : CUDA_ERROR_INVALID_HANDLE;
  });
}

/// Its stream records work into the graph of another stream from now on.
CUresult join_capture(Stream& stream, std::shared_ptr<Stream> owner,
                      const std::shared_ptr<Capture>& capture) {
  const std::scoped_lock lock(stream.mutex);
  if (stream.capture == capture) return CUDA_SUCCESS;
  if (stream.capture) return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  stream.capture = capture;
  stream.capturing = true;
  const std::scoped_lock capture_lock(capture->mutex);
  capture->joined.push_back(std::move(owner));
  return CUDA_SUCCESS;
}

CUresult record(CUevent handle, CUstream stream_handle) {
  return on_stream(stream_handle, [&](Context& context, Stream& stream) {
    const auto event = context.driver.events.find(handle);
    if (!event) return CUDA_ERROR_INVALID_HANDLE;
    if (stream.capturing) {
      const std::scoped_lock lock(stream.mutex, event->mutex);
      event->capture = stream.capture;
      return CUDA_SUCCESS;
    }
    stream.last = event->last = context.queue.run(
        [event, recording = event->begin()](std::uint64_t at) { event->reach(recording, at); });
    return CUDA_SUCCESS;
  });
}

}  // namespace

CUresult cuStreamCreateWithPriority(CUstream* out, unsigned int flags, int priority) {
  return in_context([&](Context& context) {
    if (out == nullptr || flags > 1) return CUDA_ERROR_INVALID_VALUE;
    const int within = std::clamp(priority, kGreatestPriority, 0);
    *out = context.driver.streams.add(
        std::make_shared<Stream>(context.shared_from_this(), flags, within, context.driver.next_id()));
    return CUDA_SUCCESS;
  });
}
CUresult cuStreamCreate(CUstream* out, unsigned int flags) {
  return cuStreamCreateWithPriority(out, flags, 0);
}
CUresult cuStreamDestroy_v2(CUstream handle) {
  return with_driver([&](Driver& driver) {
    return driver.streams.remove(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
  });
}
DROVER_SAME_AS(cuStreamDestroy_v2, cuStreamDestroy);

CUresult cuStreamQuery(CUstream handle) {
  return on_stream(handle, [](Context& context, Stream& stream) {
    return context.queue.done(stream.last) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
  });
}
CUresult cuStreamSynchronize(CUstream handle) {
  return on_stream(handle, [](Context& context, Stream& stream) {
    if (stream.capturing) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    context.queue.wait(stream.last);
    give_back_unused(context.driver, context.device);
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamWaitEvent(CUstream handle, CUevent event_handle, unsigned int) {
  return on_stream(handle, [&](Context& context, Stream& stream) {
    const auto event = context.driver.events.find(event_handle);
    if (!event) return CUDA_ERROR_INVALID_HANDLE;
    std::shared_ptr<Capture> capture;
    std::uint64_t recording = 0;
    {
      const std::scoped_lock lock(event->mutex);
      capture = event->capture;
      recording = event->recorded;
    }
    if (capture) return join_capture(stream, find_stream(context, handle), capture);
    if (event->context.lock().get() == &context || stream.capturing) return CUDA_SUCCESS;
    return submit(context, stream, CU_GRAPH_NODE_TYPE_WAIT_EVENT,
                  [event, recording](std::uint64_t) { event->wait(recording); });
  });
}

CUresult cuStreamAddCallback(CUstream handle, CUstreamCallback callback, void* data, unsigned int flags) {
  return on_stream(handle, [&](Context& context, Stream& stream) {
    if (callback == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (stream.capturing) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    return submit(context, stream, CU_GRAPH_NODE_TYPE_HOST,
                  [=](std::uint64_t) { callback(handle, CUDA_SUCCESS, data); });
  });
}

CUresult cuStreamGetFlags(CUstream handle, unsigned int* flags) {
  return on_stream(handle, [&](Context&, Stream& stream) { return answer(flags, stream.flags); });
}
CUresult cuStreamGetPriority(CUstream handle, int* priority) {
  return on_stream(handle, [&](Context&, Stream& stream) { return answer(priority, stream.priority); });
}
CUresult cuStreamGetId(CUstream handle, unsigned long long* id) {
  return on_stream(handle, [&](Context&, Stream& stream) { return answer(id, stream.id); });
}
CUresult cuStreamGetCtx(CUstream handle, CUcontext* out) {
  return on_stream(handle, [&](Context& context, Stream&) {
    return answer(out, Handles<Context, CUcontext>::to_handle(&context));
  });
}
CUresult cuStreamAttachMemAsync(CUstream handle, CUdeviceptr address, size_t, unsigned int) {
  return on_stream(handle, [&](Context& context, Stream&) {
    return context.driver.memory.find(address) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

DROVER_PER_THREAD(cuStreamQuery, (CUstream stream), per_thread(stream))
DROVER_PER_THREAD(cuStreamSynchronize, (CUstream stream), per_thread(stream))
DROVER_PER_THREAD(cuStreamWaitEvent, (CUstream stream, CUevent event, unsigned int flags), per_thread(stream),
                  event, flags)
DROVER_PER_THREAD(cuStreamAddCallback,
                  (CUstream stream, CUstreamCallback callback, void* data, unsigned int flags),
                  per_thread(stream), callback, data, flags)
DROVER_PER_THREAD(cuStreamGetFlags, (CUstream stream, unsigned int* flags), per_thread(stream), flags)
DROVER_PER_THREAD(cuStreamGetPriority, (CUstream stream, int* priority), per_thread(stream), priority)
DROVER_PER_THREAD(cuStreamGetId, (CUstream stream, unsigned long long* id), per_thread(stream), id)
DROVER_PER_THREAD(cuStreamGetCtx, (CUstream stream, CUcontext* out), per_thread(stream), out)
DROVER_PER_THREAD(cuStreamAttachMemAsync,
                  (CUstream stream, CUdeviceptr address, size_t size, unsigned int flags), per_thread(stream),
                  address, size, flags)

CUresult cuEventCreate(CUevent* out, unsigned int flags) {
  return in_context([&](Context& context) {
    if (out == nullptr || flags > 7) return CUDA_ERROR_INVALID_VALUE;
    *out = context.driver.events.add(std::make_shared<Event>(context.shared_from_this(), flags));
    return CUDA_SUCCESS;
  });
}
CUresult cuEventDestroy_v2(CUevent handle) {
  return with_driver([&](Driver& driver) {
    return driver.events.remove(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
  });
}
DROVER_SAME_AS(cuEventDestroy_v2, cuEventDestroy);

CUresult cuEventRecord(CUevent event, CUstream stream) {
  return record(event, stream);
}
CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned int flags) {
  return flags > 1 ? CUDA_ERROR_INVALID_VALUE : record(event, stream);
}
DROVER_PER_THREAD(cuEventRecord, (CUevent event, CUstream stream), event, per_thread(stream))
DROVER_PER_THREAD(cuEventRecordWithFlags, (CUevent event, CUstream stream, unsigned int flags), event,
                  per_thread(stream), flags)

CUresult cuEventQuery(CUevent handle) {
  return with_event(handle, [](const std::shared_ptr<Event>& event) {
    return event->done() ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
  });
}
CUresult cuEventSynchronize(CUevent handle) {
  return with_event(handle, [](const std::shared_ptr<Event>& event) {
    std::uint64_t recording = 0;
    {
      const std::scoped_lock lock(event->mutex);
      recording = event->recorded;
    }
    event->wait(recording);
    if (const auto context = event->context.lock()) give_back_unused(context->driver, context->device);
    return CUDA_SUCCESS;
  });
}

CUresult cuEventElapsedTime_v2(float* milliseconds, CUevent start_handle, CUevent end_handle) {
  return with_driver([&](Driver& driver) {
    const auto start = driver.events.find(start_handle);
    const auto end = driver.events.find(end_handle);
    if (!start || !end || milliseconds == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING) != 0) return CUDA_ERROR_INVALID_HANDLE;
    if (!start->done() || !end->done()) return CUDA_ERROR_NOT_READY;
    const auto at = [](Event& event) {
      const std::scoped_lock lock(event.mutex);
      return event.recorded == 0 ? 0.0 : static_cast<double>(event.at_ns);
    };
    const auto from = at(*start);
    const auto to = at(*end);
    if (from == 0 || to == 0) return CUDA_ERROR_INVALID_HANDLE;
    *milliseconds = static_cast<float>((to - from) / 1e6);
    return CUDA_SUCCESS;
  });
}
DROVER_SAME_AS(cuEventElapsedTime_v2, cuEventElapsedTime);
