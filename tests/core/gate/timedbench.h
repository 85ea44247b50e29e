// SPDX-License-Identifier: GPL-3.0-or-later
//
// Buffers of timed runs on a worker that has memory and nothing else, for tests.
#pragma once

#include "core/gate/timing/timedbuffers.h"

#include "gatefixture.h"
#include "tests/paths.h"

#include <QtGlobal>

#include <algorithm>
#include <set>

namespace klineage::test {

using namespace klineage::gate;
using kernel::DType;

using Bytes = std::vector<std::byte>;

inline std::unique_ptr<WorkerSession> startMemory(kernel::DeviceKind device)
{
    auto session = WorkerSession::start({programPath("/klineage-fakeworker"), "memory", "--backend", "any"},
                                        device, 30, {});
    if (!session)
        qFatal("%s", session.error().error.message.c_str());
    return std::move(*session);
}

/// x is 12 × 5 and y alike, or, `structured`, with offsets beside x.
inline workload::Workload rows(bool structured = false)
{
    const std::string offsets =
        structured ? "[[tensor]]\nname = \"o\"\nrole = \"input\"\ndtype = \"i32\"\nshape = [4]\n"
                     "distribution = { kind = \"offsets\", end = \"R\" }\n"
                   : "";
    return parsed(("name = \"rows\"\naxes = [\"R\"]\nflops = \"R\"\nbytes = \"R\"\n" + offsets
                   + "[[tensor]]\nname = \"x\"\nrole = \"input\"\ndtype = \"f32\"\nshape = [\"R\", 5]\n"
                     "[[tensor]]\nname = \"y\"\nrole = \"output\"\ndtype = \"f32\"\nshape = [\"R\", 5]\n"
                     "[[case]]\nname = \"timed\"\naxes = { R = 12 }\n"
                     "[oracle]\nname = \"silu\"\nargs = { in = \"x\", out = \"y\" }\n")
                      .c_str());
}

inline std::vector<CaseInstancePtr> instances(const workload::Workload &workload, int count)
{
    std::vector<CaseInstancePtr> made;
    for (int i = 0; i < count; ++i)
        made.push_back(
            makeInstance(workload, workload.cases.front(), 100 + static_cast<std::uint64_t>(i)).value());
    return made;
}

/// A device with the buffers of one workload on it.
struct Bench {
    explicit Bench(std::size_t sets, bool structured = false, int seeds = 3,
                   kernel::DeviceKind device = kernel::DeviceKind::OpenCl)
        : workload(rows(structured))
        , contents(instances(workload, seeds))
        , session(startMemory(device))
        , buffers(*session, workload, contents)
    {
        if (!buffers.allocate(sets))
            qFatal("cannot allocate");
    }
    /// With the contents made that the worker makes before samples.
    bool redraw(std::uint64_t key)
    {
        if (!buffers.redraw(key))
            return false;
        for (const std::vector<CopyRange> &ranges : buffers.contents()) {
            if (!ranges.empty() && !session->copy(ranges))
                return false;
        }
        return true;
    }
    Bytes content(const BufferSet &set, const std::string &tensor) const
    {
        const BufferBinding binding = set.at(tensor);
        const std::size_t bytes = 12 * 5 * sizeof(float);
        const auto image = session->download(binding.buffer, bytes, binding.offsetBytes);
        if (!image)
            qFatal("%s", image.error().error.message.c_str());
        return {image->begin(), image->end()};
    }
    Bytes input(std::size_t content) const
    {
        const auto &tensors = contents[content]->tensors;
        const auto x = std::find_if(tensors.begin(), tensors.end(),
                                    [](const HostTensor &tensor) { return tensor.name == "x"; });
        return {x->bytes.begin(), x->bytes.end()};
    }

    workload::Workload workload;
    std::vector<CaseInstancePtr> contents;
    std::unique_ptr<WorkerSession> session;
    TimedBuffers buffers;
};

inline std::multiset<Bytes> rowsOf(const Bytes &content)
{
    std::multiset<Bytes> rows;
    for (auto row = content.begin(); row != content.end(); row += 5 * sizeof(float))
        rows.insert(Bytes(row, row + 5 * sizeof(float)));
    return rows;
}

inline kernel::ResolvedPlan planWithWorkspaces()
{
    kernel::ResolvedPlan plan;
    plan.workspaces = {{"scratch", DType::F32, {3, 4}, kernel::WorkspaceInit::Poison},
                       {"sums", DType::F32, {8}, kernel::WorkspaceInit::Zero}};
    return plan;
}

} // namespace klineage::test
