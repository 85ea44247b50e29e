// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/device/cuda/handle.h"

#include <algorithm>
#include <charconv>

namespace klineage::gate::cuda {

namespace {

/// make(object) fills the object in. Nothing is owned when it fails.
template <typename Owner, typename Object, typename Make>
Result<Owner> owned(const Driver &driver, const std::string &what, const Make &make)
{
    Object object{};
    if (auto made = driver.check(make(&object), what); !made)
        return tl::unexpected(made.error());
    return Owner(driver, object);
}

} // namespace

Result<Stream> makeStream(const Driver &driver)
{
    return owned<Stream, CUstream>(driver, "create a CUDA stream", [&](CUstream *stream) {
        return driver.streamCreate(stream, CU_STREAM_NON_BLOCKING);
    });
}

Result<Event> makeEvent(const Driver &driver)
{
    return owned<Event, CUevent>(driver, "create a CUDA event",
                                 [&](CUevent *event) { return driver.eventCreate(event, CU_EVENT_DEFAULT); });
}

Result<Module> loadModule(const Driver &driver, const void *image, const std::string &what)
{
    return owned<Module, CUmodule>(driver, what,
                                   [&](CUmodule *module) { return driver.moduleLoadData(module, image); });
}

Result<DeviceMemory> allocateMemory(const Driver &driver, std::size_t bytes, const std::string &what)
{
    return owned<DeviceMemory, CUdeviceptr>(driver, what, [&](CUdeviceptr *address) {
        return driver.memAlloc(address, std::max<std::size_t>(bytes, 1));
    });
}

Result<std::string> shareMemory(const Driver &driver, CUdeviceptr address)
{
    CUipcMemHandle handle{};
    if (const CUresult result = driver.ipcGetMemHandle(&handle, address); result != CUDA_SUCCESS)
        return fail(ErrorCode::Unavailable,
                    "Cannot share memory of the device: " + driver.describe(result) + ".");
    constexpr const char *digits = "0123456789abcdef";
    std::string text;
    for (const char c : handle.reserved) {
        const auto byte = static_cast<unsigned char>(c);
        text += digits[byte >> 4];
        text += digits[byte & 15];
    }
    return text;
}

Result<OpenedMemory> openMemory(const Driver &driver, const std::string &text)
{
    CUipcMemHandle handle{};
    if (text.size() != 2 * sizeof handle.reserved)
        return fail(ErrorCode::Unavailable, "Cannot open memory of another process: this is no handle.");
    for (std::size_t i = 0; i < sizeof handle.reserved; ++i) {
        unsigned byte = 0;
        const char *const begin = text.data() + 2 * i;
        if (std::from_chars(begin, begin + 2, byte, 16).ptr != begin + 2)
            return fail(ErrorCode::Unavailable, "Cannot open memory of another process: this is no handle.");
        handle.reserved[i] = static_cast<char>(byte);
    }
    CUdeviceptr address = 0;
    if (const CUresult result = driver.ipcOpenMemHandle(&address, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
        result != CUDA_SUCCESS)
        return fail(ErrorCode::Unavailable,
                    "Cannot open memory of another process: " + driver.describe(result) + ".");
    return OpenedMemory(driver, address);
}

Result<Graph> captureGraph(const Driver &driver, CUstream stream, const std::function<Status()> &enqueue)
{
    if (auto begun = driver.check(driver.streamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
                                  "capture a graph");
        !begun)
        return tl::unexpected(begun.error());
    const Status enqueued = enqueue();
    // A capture is ended whatever was enqueued: the stream could do nothing else meanwhile.
    CUgraph captured = nullptr;
    const CUresult ended = driver.streamEndCapture(stream, &captured);
    Graph graph(driver, captured);
    if (!enqueued)
        return tl::unexpected(enqueued.error());
    if (auto done = driver.check(ended, "capture a graph"); !done)
        return tl::unexpected(done.error());
    return graph;
}

Result<ExecutableGraph> instantiateGraph(const Driver &driver, const Graph &graph)
{
    return owned<ExecutableGraph, CUgraphExec>(driver, "instantiate a graph", [&](CUgraphExec *made) {
        return driver.graphInstantiate(made, graph.get(), 0);
    });
}

} // namespace klineage::gate::cuda
