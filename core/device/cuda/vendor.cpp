// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/device/cuda/vendor.h"

#include <algorithm>
#include <optional>

namespace klineage::gate::cuda {

namespace {

constexpr int runsAGraph = 10;
constexpr int replays = 4;

/// Two events around the replay of a graph.
class Stopwatch
{
public:
    explicit Stopwatch(const VendorContext &context)
        : m_driver(context.driver)
        , m_stream(context.stream)
    {}
    Stopwatch(const Stopwatch &) = delete;
    Stopwatch &operator=(const Stopwatch &) = delete;

    Status open()
    {
        for (Event *event : {&m_begin, &m_end}) {
            auto made = makeEvent(m_driver);
            if (!made)
                return tl::unexpected(made.error());
            *event = std::move(*made);
        }
        return {};
    }

    /// Milliseconds of the quickest replay.
    Result<float> measure(const std::function<Status()> &enqueue)
    {
        const auto captured = captureGraph(m_driver, m_stream, [&] {
            Status enqueued;
            for (int i = 0; i < runsAGraph && enqueued; ++i)
                enqueued = enqueue();
            return enqueued;
        });
        if (!captured)
            return tl::unexpected(captured.error());
        const auto graph = instantiateGraph(m_driver, *captured);
        if (!graph)
            return tl::unexpected(graph.error());
        float best = 0;
        for (int i = 0; i < replays; ++i) {
            m_driver.eventRecord(m_begin.get(), m_stream);
            m_driver.graphLaunch(graph->get(), m_stream);
            m_driver.eventRecord(m_end.get(), m_stream);
            if (auto done = m_driver.check(m_driver.streamSynchronize(m_stream), "time a vendor routine");
                !done)
                return tl::unexpected(done.error());
            float elapsed = 0;
            m_driver.eventElapsedTime(&elapsed, m_begin.get(), m_end.get());
            best = i < 2 ? elapsed : std::min(best, elapsed); // the first replay warms up
        }
        return best;
    }

private:
    const Driver &m_driver;
    CUstream m_stream;
    Event m_begin;
    Event m_end;
};

} // namespace

Result<DeviceMemory> vendorMemory(const Driver &driver, std::size_t bytes)
{
    return allocateMemory(driver, bytes, "allocate " + std::to_string(bytes) + " bytes for a vendor routine");
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
