// Streams that record a graph instead of working.

#include "sim/cuda/call.h"
#include "sim/cuda/graph.h"

using namespace drover::sim::cuda;

namespace {

void leave_capture(Stream& stream) {
  const std::scoped_lock lock(stream.mutex);
  stream.capture.reset();
  stream.capturing = false;
}

std::shared_ptr<Capture> capture_of(Stream& stream) {
  const std::scoped_lock lock(stream.mutex);
  return stream.capture;
}

CUresult capture_info(CUstream handle, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph,
                      const CUgraphNode** dependencies, size_t* count) {
  return on_stream(handle, [&](Context&, Stream& stream) {
    if (status == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto capture = capture_of(stream);
    *status = capture ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
    if (!capture) return CUDA_SUCCESS;
    const std::scoped_lock lock(capture->mutex);
    capture->shown.clear();
    for (auto* tip : capture->tips) capture->shown.push_back(Handles<Node, CUgraphNode>::to_handle(tip));
    if (id != nullptr) *id = capture->id;
    if (graph != nullptr) *graph = Handles<Graph, CUgraph>::to_handle(capture->graph.get());
    if (dependencies != nullptr) *dependencies = capture->shown.data();
    if (count != nullptr) *count = capture->shown.size();
    return CUDA_SUCCESS;
  });
}

}  // namespace

CUresult cuStreamBeginCapture_v2(CUstream handle, CUstreamCaptureMode mode) {
  return on_stream(handle, [&](Context& context, Stream& stream) {
    if (mode < 0 || mode > 2) return CUDA_ERROR_INVALID_VALUE;
    if (&stream == context.default_stream.get()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    const std::scoped_lock lock(stream.mutex);
    if (stream.capture) return CUDA_ERROR_INVALID_VALUE;
    auto capture = std::make_shared<Capture>();
    capture->graph = std::make_shared<Graph>();
    capture->id = context.driver.next_id();
    capture->origin = &stream;
    stream.capture = std::move(capture);
    stream.capturing = true;
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamEndCapture(CUstream handle, CUgraph* out) {
  return on_stream(handle, [&](Context& context, Stream& stream) {
    const auto capture = capture_of(stream);
    if (!capture || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (capture->origin != &stream) return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    leave_capture(stream);
    for (const auto& joined : capture->joined) leave_capture(*joined);
    *out = context.driver.graphs.add(capture->graph);
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus* status) {
  return on_stream(handle, [&](Context&, Stream& stream) {
    return answer(status, stream.capturing ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE);
  });
}
CUresult cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                                   CUgraph* graph, const CUgraphNode** dependencies, size_t* count) {
  return capture_info(stream, status, id, graph, dependencies, count);
}
CUresult cuStreamGetCaptureInfo_v3(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                                   CUgraph* graph, const CUgraphNode** dependencies,
                                   const CUgraphEdgeData** data, size_t* count) {
  if (data != nullptr) *data = nullptr;
  return capture_info(stream, status, id, graph, dependencies, count);
}
CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  static thread_local CUstreamCaptureMode current = 0;
  if (mode == nullptr || *mode < 0 || *mode > 2) return CUDA_ERROR_INVALID_VALUE;
  std::swap(current, *mode);
  return CUDA_SUCCESS;
}

DROVER_PER_THREAD(cuStreamBeginCapture_v2, (CUstream stream, CUstreamCaptureMode mode), per_thread(stream),
                  mode)
DROVER_PER_THREAD(cuStreamEndCapture, (CUstream stream, CUgraph* out), per_thread(stream), out)
DROVER_PER_THREAD(cuStreamIsCapturing, (CUstream stream, CUstreamCaptureStatus* status), per_thread(stream),
                  status)
DROVER_PER_THREAD(cuStreamGetCaptureInfo_v2,
                  (CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph,
                   const CUgraphNode** dependencies, size_t* count),
                  per_thread(stream), status, id, graph, dependencies, count)
DROVER_PER_THREAD(cuStreamGetCaptureInfo_v3,
                  (CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph,
                   const CUgraphNode** dependencies, const CUgraphEdgeData** data, size_t* count),
                  per_thread(stream), status, id, graph, dependencies, data, count)
