// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernel/plan.h"

#include "core/base/suggest.h"
#include "core/kernel/candidatewords.h"
#include "core/kernel/tensormaps.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <tuple>
#include <utility>

namespace klineage::kernel {

namespace {

using std::int64_t;

constexpr int64_t extentLimit = int64_t{1} << 31;
constexpr int64_t maxThreads = 1024;
constexpr int64_t maxClusterBlocks = 16;
constexpr int64_t maxWorkspaceBytes = int64_t{16} << 30;

tl::unexpected<Error> refuse(const std::string &message)
{
    return fail(ErrorCode::InvalidInput, message);
}

template <typename T>
Result<ScalarValue> pack(T value)
{
    ScalarValue scalar;
    scalar.size = sizeof(T);
    std::memcpy(scalar.bytes.data(), &value, sizeof(T));
    return scalar;
}

template <typename T>
Result<ScalarValue> packInteger(const ScalarArg &arg, const Bindings &bindings)
{
    const Result<int64_t> value = arg.value.evaluateInteger(bindings);
    if (!value)
        return tl::unexpected(value.error());
    if (!std::in_range<T>(*value))
        return refuse(fmt::format("'{}' is {}, which does not fit in '{}'.", arg.value.text(), *value,
                                  wordOf(scalarWords, arg.type)));
    return pack(static_cast<T>(*value));
}

Result<ScalarValue> packScalar(const ScalarArg &arg, const Bindings &bindings)
{
    switch (arg.type) {
    case ScalarType::Int32:
        return packInteger<std::int32_t>(arg, bindings);
    case ScalarType::UInt32:
        return packInteger<std::uint32_t>(arg, bindings);
    case ScalarType::Int64:
        return packInteger<int64_t>(arg, bindings);
    case ScalarType::UInt64:
        return packInteger<std::uint64_t>(arg, bindings);
    case ScalarType::Float32:
    case ScalarType::Float64:
        break;
    }
    const Result<double> value = arg.value.evaluateReal(bindings);
    if (!value)
        return tl::unexpected(value.error());
    if (arg.type == ScalarType::Float64)
        return pack(*value);
    if (std::fabs(*value) > std::numeric_limits<float>::max())
        return refuse(fmt::format("'{}' is {}, which does not fit in 'float'.", arg.value.text(), *value));
    return pack(static_cast<float>(*value));
}

class PlanResolver
{
public:
    PlanResolver(const Candidate &candidate, const std::vector<ResolvedBuffer> &tensors,
                 const Bindings &bindings)
        : m_candidate(candidate)
        , m_tensors(tensors)
        , m_bindings(bindings)
    {}

    Result<ResolvedPlan> resolve()
    {
        for (std::size_t i = 0; i < m_candidate.launches.size(); ++i) {
            const Launch &launch = m_candidate.launches[i];
            const Result<bool> wanted = isWanted(launch);
            Status done = wanted ? Status() : tl::unexpected(wanted.error());
            if (wanted && *wanted)
                done = add(launch, i);
            if (!done)
                return fail(done.error().code,
                            fmt::format("Cannot resolve launch {} ('{}', line {}): {}", i + 1, launch.kernel,
                                        launch.line, done.error().message));
        }
        if (m_plan.launches.empty())
            return refuse(
                "Cannot resolve the plan: no launch is left, because every 'when' is false for this case. Add a launch"
                " that covers it.");
        return std::move(m_plan);
    }

private:
    Result<bool> isWanted(const Launch &launch) const
    {
        if (!launch.when)
            return true;
        const Result<Value> value = launch.when->evaluate(m_bindings);
        if (!value)
            return refuse("when, " + value.error().message);
        return std::visit([](auto v) { return v != 0; }, *value);
    }

    Status add(const Launch &launch, std::size_t index)
    {
        ResolvedLaunch resolved;
        resolved.kernel = launch.kernel;
        resolved.index = index;
        resolved.cooperative = launch.cooperative;
        resolved.programmaticDependent = launch.programmaticDependent;
        for (const auto &[key, from, to] : {std::tuple{"grid", &launch.grid, &resolved.grid},
                                            std::tuple{"block", &launch.block, &resolved.block},
                                            std::tuple{"cluster", &launch.cluster, &resolved.cluster}}) {
            if (Status sized = dimensions(key, *from, *to); !sized)
                return sized;
        }
        if (m_candidate.surface->compilerDecides) {
            const Result<int64_t> warps = warpsOf(launch, m_bindings);
            if (!warps)
                return tl::unexpected(warps.error());
            resolved.block[0] =
                *warps * m_candidate.surface.device().warpSize; // or what the compiler makes of them
        }
        if (Status sound = checkDimensions(resolved); !sound)
            return sound;
        if (Status multiples = checkMultiples(launch); !multiples)
            return multiples;
        const Result<int64_t> shared = memoryBytes("shared", launch.sharedBytes);
        if (!shared)
            return tl::unexpected(shared.error());
        resolved.sharedBytes = *shared;

        int64_t localBytes = 0;
        for (std::size_t i = 0; i < launch.args.size(); ++i) {
            Result<ResolvedArg> arg =
                std::visit([this](const auto &a) { return argument(a); }, launch.args[i]);
            if (!arg)
                return refuse(fmt::format("argument {}, {}", i + 1, arg.error().message));
            if (const auto *local = std::get_if<LocalValue>(&*arg))
                localBytes += local->bytes;
            resolved.args.push_back(std::move(*arg));
        }
        if (Status fits = checkFits("the local buffers together", localBytes); !fits)
            return fits;
        m_plan.launches.push_back(std::move(resolved));
        return {};
    }

    Status dimensions(const char *key, const std::vector<Expression> &expressions,
                      std::array<int64_t, 3> &out) const
    {
        for (std::size_t i = 0; i < expressions.size() && i < out.size(); ++i) {
            const Result<int64_t> value = expressions[i].evaluateInteger(m_bindings);
            const std::string where = fmt::format("{}[{}]", key, i);
            if (!value)
                return refuse(where + ", " + value.error().message);
            if (*value < 1 || *value >= extentLimit)
                return refuse(fmt::format("{} = '{}' is {}; expected 1 to 2^31 - 1.", where,
                                          expressions[i].text(), *value));
            out[i] = *value;
        }
        return {};
    }

    Status checkDimensions(const ResolvedLaunch &launch) const
    {
        const auto product = [](const std::array<int64_t, 3> &d, int64_t cap) {
            int64_t result = 1;
            for (const int64_t extent : d)
                result = std::min(result * std::min(extent, cap), cap);
            return result;
        };
        if (product(launch.block, maxThreads + 1) > maxThreads)
            return refuse(fmt::format("the block has more than 1024 threads ({} x {} x {}).", launch.block[0],
                                      launch.block[1], launch.block[2]));
        const DeviceTraits &device = m_candidate.surface.device();
        for (std::size_t i = 1; i < 3 && device.mostBlocks > 0; ++i) {
            if (launch.grid[i] > device.mostBlocks)
                return refuse(
                    fmt::format("grid[{}] is {}; {} allows at most {} there. Put the larger extent first.", i,
                                launch.grid[i], device.name, device.mostBlocks));
        }
        if (!device.launchAttributes)
            return {};
        if (product(launch.cluster, maxClusterBlocks + 1) > maxClusterBlocks)
            return refuse("the cluster has more than 16 blocks.");
        for (std::size_t i = 0; i < 3; ++i) {
            if (launch.grid[i] % launch.cluster[i] != 0)
                return refuse(
                    fmt::format("grid[{}] is {}, which is no multiple of the cluster's {}. Use round_up().",
                                i, launch.grid[i], launch.cluster[i]));
        }
        return {};
    }

    /// What the compiler was told to rely on.
    Status checkMultiples(const Launch &launch) const
    {
        for (const Expression &expression : launch.multiplesOf16) {
            const Result<int64_t> value = expression.evaluateInteger(m_bindings);
            if (!value)
                return refuse("multiples_of_16, " + value.error().message);
            if (*value % 16 != 0)
                return refuse("'" + expression.text() + "' is said to be a multiple of 16, and is "
                              + std::to_string(*value)
                              + ". Keep such cases from this launch with 'when', and add "
                                "another one for them.");
        }
        return {};
    }

    Result<int64_t> memoryBytes(const std::string &what, const Expression &expression) const
    {
        const Result<int64_t> bytes = expression.evaluateInteger(m_bindings);
        if (!bytes)
            return refuse(what + ", " + bytes.error().message);
        if (*bytes < 0 || *bytes >= extentLimit)
            return refuse(fmt::format("{} = '{}' is {} bytes; expected 0 to 2^31 - 1.", what,
                                      expression.text(), *bytes));
        if (Status fits = checkFits(what, *bytes); !fits)
            return tl::unexpected(fits.error());
        return *bytes;
    }

    Status checkFits(const std::string &what, int64_t bytes) const
    {
        const auto fact = m_bindings.find("max_shared");
        const auto *limit = fact == m_bindings.end() ? nullptr : std::get_if<int64_t>(&fact->second);
        if (limit && bytes > *limit)
            return refuse(fmt::format("{}: {} bytes, more than the {} that the device gives a block.", what,
                                      bytes, *limit));
        return {};
    }

    Result<ResolvedArg> argument(const TensorArg &arg)
    {
        const Result<const ResolvedBuffer *> found = buffer(arg.name);
        if (!found)
            return tl::unexpected(found.error());
        return ResolvedArg(PointerValue{arg.name});
    }

    /// Maps that only dropped launches use stay unresolved: shapes that a guard keeps away may have no valid
    /// map.
    Result<ResolvedArg> argument(const TensorMapArg &arg)
    {
        std::vector<ResolvedTensorMap> &maps = m_plan.tensorMaps;
        for (std::size_t i = 0; i < maps.size(); ++i) {
            if (maps[i].name == arg.name)
                return ResolvedArg(TensorMapValue{i});
        }
        for (const TensorMap &map : m_candidate.tensorMaps) {
            if (map.name != arg.name)
                continue;
            const Result<const ResolvedBuffer *> found = buffer(map.tensor);
            if (!found)
                return refuse("tensor map '" + map.name + "': " + found.error().message);
            Result<ResolvedTensorMap> resolved = resolveTensorMap(map, **found, m_bindings);
            if (!resolved)
                return tl::unexpected(resolved.error());
            maps.push_back(std::move(*resolved));
            return ResolvedArg(TensorMapValue{maps.size() - 1});
        }
        return refuse("there is no tensor map '" + arg.name + "'.");
    }

    Result<ResolvedArg> argument(const ScalarArg &arg) const
    {
        Result<ScalarValue> value = packScalar(arg, m_bindings);
        if (!value)
            return tl::unexpected(value.error());
        return ResolvedArg(*value);
    }

    Result<ResolvedArg> argument(const LocalArg &arg) const
    {
        const Result<int64_t> bytes = memoryBytes("local", arg.bytes);
        if (!bytes)
            return tl::unexpected(bytes.error());
        if (*bytes == 0)
            return refuse("local = '" + arg.bytes.text() + "' is 0 bytes; expected at least 1.");
        return ResolvedArg(LocalValue{*bytes});
    }

    /// A tensor of the workload, or a workspace, which is resolved on first use.
    Result<const ResolvedBuffer *> buffer(const std::string &name)
    {
        const auto named = [&name](const auto &thing) { return thing.name == name; };
        const auto tensor = std::find_if(m_tensors.begin(), m_tensors.end(), named);
        const auto workspace =
            std::find_if(m_candidate.workspaces.begin(), m_candidate.workspaces.end(), named);
        if (tensor != m_tensors.end() && workspace != m_candidate.workspaces.end())
            return refuse("the workspace '" + name
                          + "' has the name of a tensor of the workload; give it another one.");
        if (tensor != m_tensors.end())
            return &*tensor;
        const auto known = std::find_if(m_plan.workspaces.begin(), m_plan.workspaces.end(), named);
        if (known != m_plan.workspaces.end())
            return &*known;
        if (workspace != m_candidate.workspaces.end())
            return addWorkspace(*workspace);
        return refuse(unknownBuffer(name));
    }

    std::string unknownBuffer(const std::string &name) const
    {
        if (m_bindings.contains(name))
            return "'" + name + "' is a number, not a buffer; a scalar needs its type, as in \"int " + name
                   + "\".";
        std::vector<std::string> names;
        for (const ResolvedBuffer &tensor : m_tensors)
            names.push_back(tensor.name);
        for (const Workspace &workspace : m_candidate.workspaces)
            names.push_back(workspace.name);
        const std::string hint = didYouMean(name, names);
        return "'" + name + "' is neither a tensor nor a workspace"
               + (hint.empty() ? "; there are " + quotedList(names) + '.' : hint);
    }

    Result<const ResolvedBuffer *> addWorkspace(const Workspace &workspace)
    {
        ResolvedBuffer resolved{workspace.name, workspace.dtype, {}, workspace.init};
        int64_t bytes = static_cast<int64_t>(sizeOf(workspace.dtype));
        for (const Expression &expression : workspace.shape) {
            const Result<int64_t> extent = expression.evaluateInteger(m_bindings);
            if (!extent)
                return refuse("workspace '" + workspace.name + "', " + extent.error().message);
            if (*extent < 1 || *extent >= extentLimit)
                return refuse(fmt::format("workspace '{}': the extent '{}' is {}; expected 1 to 2^31 - 1.",
                                          workspace.name, expression.text(), *extent));
            if (__builtin_mul_overflow(bytes, *extent, &bytes))
                bytes = std::numeric_limits<int64_t>::max();
            resolved.shape.push_back(*extent);
        }
        if (bytes > maxWorkspaceBytes - m_workspaceBytes)
            return refuse("the workspaces need more than 16 GiB.");
        m_workspaceBytes += bytes;
        m_plan.workspaces.push_back(std::move(resolved));
        return &m_plan.workspaces.back();
    }

    const Candidate &m_candidate;
    const std::vector<ResolvedBuffer> &m_tensors;
    const Bindings &m_bindings;
    ResolvedPlan m_plan;
    int64_t m_workspaceBytes = 0;
};

} // namespace

std::int64_t ResolvedBuffer::elements() const
{
    std::int64_t count = 1;
    for (const std::int64_t extent : shape)
        count *= extent;
    return count;
}

std::int64_t ResolvedBuffer::bytes() const
{
    return elements() * static_cast<std::int64_t>(sizeOf(dtype));
}

Result<int64_t> warpsOf(const Launch &launch, const Bindings &bindings)
{
    if (!launch.warps)
        return usualWarps;
    const Result<int64_t> warps = launch.warps->evaluateInteger(bindings);
    if (!warps)
        return refuse("num_warps, " + warps.error().message);
    if (*warps < 1 || *warps > 32 || (*warps & (*warps - 1)) != 0)
        return refuse("num_warps = '" + launch.warps->text() + "' is " + std::to_string(*warps)
                      + "; expected 1, 2, 4, 8, 16 or 32.");
    return *warps;
}

Result<ResolvedPlan> resolvePlan(const Candidate &candidate, const std::vector<ResolvedBuffer> &tensors,
                                 const Bindings &bindings)
{
    return PlanResolver(candidate, tensors, bindings).resolve();
}

} // namespace klineage::kernel
