// SPDX-License-Identifier: GPL-3.0-or-later
//
// CUB's routines over rows, through libklineage-cub.so.
#include "core/device/cuda/cub/cublibrary.h"
#include "core/device/cuda/library.h"
#include "core/device/cuda/vendor.h"
#include "core/device/references/cublibrary.h"

#include <algorithm>

namespace klineage::gate::cuda {

namespace {

constexpr std::int64_t mostElements = 0x7fffffff;

struct Cub {
    KlineageCubInterface *interface = nullptr;
    KlineageCubVersion *version = nullptr;
    KlineageCubTargets *targets = nullptr;
    KlineageCubWay *way = nullptr;
    KlineageCubWorkspace *workspace = nullptr;
    KlineageCubPrepare *prepare = nullptr;
    KlineageCubRun *run = nullptr;
    KlineageCubError *error = nullptr;

    static Result<Cub> load();
};

Result<Cub> Cub::load()
{
    auto library = Library::open({cubLibraryPath().string()},
                                 "a build of KLineage that finds nvcc, and lies beside the program");
    if (!library)
        return tl::unexpected(library.error());
    Cub cub;
    if (!library->resolve(cub.interface, "klineage_cub_interface")
        || cub.interface() != KLINEAGE_CUB_INTERFACE || !library->resolve(cub.version, "klineage_cub_version")
        || !library->resolve(cub.targets, "klineage_cub_targets")
        || !library->resolve(cub.way, "klineage_cub_way")
        || !library->resolve(cub.workspace, "klineage_cub_workspace")
        || !library->resolve(cub.prepare, "klineage_cub_prepare")
        || !library->resolve(cub.run, "klineage_cub_run")
        || !library->resolve(cub.error, "klineage_cub_error"))
        return fail(ErrorCode::Unavailable, "Cannot use " + library->name()
                                                + ": it is of another build. Build the target klineage-cub.");
    return cub;
}

/// An operator in the way that was the fastest when it was set up.
class CubRows : public Subject
{
public:
    CubRows(const Cub &cub, const VendorContext &context, const ReferenceCall &call,
            std::vector<AddressSet> sets)
        : m_cub(cub)
        , m_context(context)
        , m_call(call)
        , m_sets(std::move(sets))
    {}

    Status prepare();
    Status enqueue(CUstream stream, std::size_t set) override { return enqueueWay(m_way, stream, set); }
    std::size_t setCount() const override { return m_sets.size(); }
    void rebind(std::vector<AddressSet> sets) override { m_sets = std::move(sets); }
    std::string version() const override
    {
        const int number = m_cub.version(); // 300001: 3.0.1
        return "cub " + std::to_string(number / 100000) + "." + std::to_string(number / 100 % 1000) + "."
               + std::to_string(number % 100) + " " + m_cub.way(m_call.op.c_str(), m_way) + " (compiled for "
               + m_cub.targets() + ")";
    }

private:
    [[nodiscard]] Status check(int error, const char *action) const
    {
        if (error == 0)
            return {};
        return fail(ErrorCode::Internal,
                    std::string("Cannot ") + action + " CUB " + m_call.op + ": " + m_cub.error(error) + ".");
    }
    [[nodiscard]] int size(const char *name) const
    {
        const auto found = m_call.sizes.find(name);
        return found == m_call.sizes.end() ? 0 : static_cast<int>(found->second);
    }
    [[nodiscard]] void *buffer(const char *role, std::size_t set) const
    {
        const auto found = m_call.buffers.find(role);
        return found == m_call.buffers.end() ? nullptr
                                             : reinterpret_cast<void *>(m_sets[set].at(found->second));
    }
    [[nodiscard]] KlineageCubCall callOf(CUstream stream, std::size_t set) const
    {
        return {buffer("in", set),      buffer("out", set), buffer("indices", set),
                pointerTo(m_workspace), m_workspaceBytes,   size("rows"),
                size("columns"),        size("k"),          stream};
    }
    Status enqueueWay(int way, CUstream stream, std::size_t set)
    {
        const KlineageCubCall call = callOf(stream, set);
        return check(m_cub.run(m_call.op.c_str(), way, &call), "run");
    }

    Cub m_cub;
    VendorContext m_context;
    ReferenceCall m_call;
    std::vector<AddressSet> m_sets;
    DeviceMemory m_workspace;
    std::size_t m_workspaceBytes = 0;
    int m_way = 0;
};

Status CubRows::prepare()
{
    const char *op = m_call.op.c_str();
    int ways = 0;
    for (; m_cub.way(op, ways); ++ways) {
        std::size_t bytes = 0;
        const KlineageCubCall call = callOf(m_context.stream, 0);
        if (auto asked = check(m_cub.workspace(op, ways, &call, &bytes), "size the workspace of"); !asked)
            return asked;
        m_workspaceBytes = std::max({m_workspaceBytes, bytes, std::size_t{1}});
    }
    auto workspace = vendorMemory(m_context.driver, m_workspaceBytes);
    if (!workspace)
        return tl::unexpected(workspace.error());
    m_workspace = std::move(*workspace);
    const KlineageCubCall call = callOf(m_context.stream, 0);
    for (int way = 0; way < ways; ++way) {
        if (auto prepared = check(m_cub.prepare(op, way, &call), "prepare"); !prepared)
            return prepared;
    }
    const auto best = fastest(m_context, static_cast<std::size_t>(ways), [&](std::size_t way) {
        return enqueueWay(static_cast<int>(way), m_context.stream, 0);
    });
    if (!best)
        return tl::unexpected(best.error());
    m_way = static_cast<int>(*best);
    return {};
}

Status checkCall(const Cub &cub, const ReferenceCall &call, const std::vector<AddressSet> &sets)
{
    if (!cub.way(call.op.c_str(), 0))
        return fail(ErrorCode::InvalidInput,
                    "Cannot use CUB for \"" + call.op
                        + "\": expected the operator \"sum_rows\", \"cumsum_rows\", \"sort_rows\" or "
                          "\"topk_rows\".");
    std::vector<std::string> sizes{"rows", "columns"};
    std::vector<std::string> roles{"in", "out"};
    if (call.op == "topk_rows") {
        sizes.emplace_back("k");
        roles.emplace_back("indices");
    }
    if (auto complete = requireRoles(call, sets, sizes, roles); !complete)
        return complete;
    if (call.sizes.at("rows") > mostElements / call.sizes.at("columns"))
        return fail(ErrorCode::InvalidInput,
                    "Cannot call cub " + call.op + ": it takes fewer than 2^31 elements.");
    if (call.op == "topk_rows" && call.sizes.at("k") > call.sizes.at("columns"))
        return fail(ErrorCode::InvalidInput, "Cannot call cub topk_rows: k is larger than a row.");
    return {};
}

} // namespace

Result<std::unique_ptr<Subject>> makeCubSubject(const VendorContext &context, const ReferenceCall &call,
                                                std::vector<AddressSet> sets)
{
    const auto cub = Cub::load();
    if (!cub)
        return tl::unexpected(cub.error());
    if (auto right = checkCall(*cub, call, sets); !right)
        return tl::unexpected(right.error());
    auto subject = std::make_unique<CubRows>(*cub, context, call, std::move(sets));
    if (auto prepared = subject->prepare(); !prepared)
        return tl::unexpected(prepared.error());
    return std::unique_ptr<Subject>(std::move(subject));
}

} // namespace klineage::gate::cuda
