// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/device/cuda/vendor.h"

#include <algorithm>
#include <optional>

namespace klineage::gate::cuda {

namespace {

constexpr int runsAGraph = 10;
constexpr int replays = 4;

/// Two events, and a graph while it is there.
class Stopwatch
{
public:
    explicit Stopwatch(const VendorContext &context)
        : m_driver(context.driver)
        , m_stream(context.stream)
    {}
    ~Stopwatch()
    {
        dropGraph();
        for (CUevent event : {m_begin, m_end}) {
            if (event)
                m_driver.eventDestroy(event);
        }
    }
    Stopwatch(const Stopwatch &) = delete;
    Stopwatch &operator=(const Stopwatch &) = delete;

    Status open()
    {
        if (auto made = m_driver.check(m_driver.eventCreate(&m_begin, CU_EVENT_DEFAULT), "create an event");
            !made)
            return made;
        return m_driver.check(m_driver.eventCreate(&m_end, CU_EVENT_DEFAULT), "create an event");
    }

    /// Milliseconds of the quickest replay.
    Result<float> measure(const std::function<Status()> &enqueue)
    {
        if (auto captured = capture(enqueue); !captured)
            return tl::unexpected(captured.error());
        float best = 0;
        for (int i = 0; i < replays; ++i) {
            m_driver.eventRecord(m_begin, m_stream);
            m_driver.graphLaunch(m_graph, m_stream);
            m_driver.eventRecord(m_end, m_stream);
            if (auto done = m_driver.check(m_driver.streamSynchronize(m_stream), "time a vendor routine");
                !done)
                return tl::unexpected(done.error());
            float elapsed = 0;
            m_driver.eventElapsedTime(&elapsed, m_begin, m_end);
            best = i < 2 ? elapsed : std::min(best, elapsed); // the first replay warms up
        }
        return best;
    }

private:
    void dropGraph()
    {
        if (m_graph)
            m_driver.graphExecDestroy(m_graph);
        m_graph = nullptr;
    }
    Status capture(const std::function<Status()> &enqueue)
    {
        dropGraph();
        if (auto begun =
                m_driver.check(m_driver.streamBeginCapture(m_stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
                               "capture a graph");
            !begun)
            return begun;
        Status enqueued;
        for (int i = 0; i < runsAGraph && enqueued; ++i)
            enqueued = enqueue();
        CUgraph graph = nullptr;
        const CUresult ended = m_driver.streamEndCapture(m_stream, &graph);
        if (!enqueued)
            return enqueued;
        if (auto done = m_driver.check(ended, "capture a graph"); !done)
            return done;
        const CUresult made = m_driver.graphInstantiate(&m_graph, graph, 0);
        m_driver.graphDestroy(graph);
        return m_driver.check(made, "instantiate a graph");
    }

    const Driver &m_driver;
    CUstream m_stream;
    CUevent m_begin = nullptr;
    CUevent m_end = nullptr;
    CUgraphExec m_graph = nullptr;
};

} // namespace

Result<DeviceMemory> DeviceMemory::allocate(const Driver &driver, std::size_t bytes)
{
    DeviceMemory memory;
    if (auto allocated = driver.check(driver.memAlloc(&memory.m_address, std::max<std::size_t>(bytes, 1)),
                                      "allocate " + std::to_string(bytes) + " bytes for a vendor routine");
        !allocated)
        return tl::unexpected(allocated.error());
    memory.m_driver = &driver;
    return memory;
}

DeviceMemory::~DeviceMemory()
{
    if (m_driver)
        m_driver->memFree(m_address);
}

Result<std::size_t> fastest(const VendorContext &context, std::size_t count,
                            const std::function<Status(std::size_t)> &enqueue)
{
    Stopwatch watch(context);
    if (auto opened = watch.open(); !opened)
        return tl::unexpected(opened.error());
    std::optional<std::size_t> best;
    float bestMs = 0;
    Error problem{ErrorCode::Unavailable, "Cannot choose an algorithm: the library proposes none.", {}};
    for (std::size_t i = 0; i < count; ++i) {
        Status ran = enqueue(i);
        if (ran)
            ran = context.driver.check(context.driver.streamSynchronize(context.stream),
                                       "run a vendor routine");
        Result<float> elapsed =
            ran ? watch.measure([&] { return enqueue(i); }) : Result<float>(tl::unexpected(ran.error()));
        if (!elapsed) {
            if (i == 0)
                problem = elapsed.error();
            continue;
        }
        if (!best || *elapsed < bestMs) {
            best = i;
            bestMs = *elapsed;
        }
    }
    if (!best)
        return tl::unexpected(problem);
    return *best;
}

Status requireRoles(const ReferenceCall &call, const std::vector<AddressSet> &sets,
                    const std::vector<std::string> &sizes, const std::vector<std::string> &roles)
{
    const std::string what = "Cannot call " + call.provider + " " + call.op + ": ";
    for (const std::string &size : sizes) {
        const auto found = call.sizes.find(size);
        if (found == call.sizes.end())
            return fail(ErrorCode::InvalidInput, what + "\"" + size + "\" names no axis.");
        if (found->second < 1 || found->second > 0x7fffffff)
            return fail(ErrorCode::InvalidInput, what + "\"" + size + "\" is out of range.");
    }
    for (const std::string &role : roles) {
        const auto found = call.buffers.find(role);
        const bool everywhere =
            found != call.buffers.end() && std::all_of(sets.begin(), sets.end(), [&](const AddressSet &set) {
                return set.contains(found->second);
            });
        if (!everywhere)
            return fail(ErrorCode::InvalidInput, what + "\"" + role + "\" names no tensor.");
    }
    return {};
}

Result<std::unique_ptr<Subject>> makeVendorSubject(const VendorContext &context, const ReferenceCall &call,
                                                   std::vector<AddressSet> sets)
{
    if (call.provider == "cublas")
        return makeCublasSubject(call, std::move(sets));
    if (call.provider == "cublaslt")
        return makeCublasLtSubject(context, call, std::move(sets));
    if (call.provider == "cudnn")
        return makeCudnnSubject(context, call, std::move(sets));
    if (call.provider == "cub")
        return makeCubSubject(context, call, std::move(sets));
    return fail(ErrorCode::Unavailable,
                "Cannot use \"" + call.provider
                    + "\" on CUDA: expected \"cublas\", \"cublaslt\", \"cudnn\" or \"cub\".");
}

} // namespace klineage::gate::cuda
