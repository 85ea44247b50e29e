// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/triton/launches.h"

#include "core/kernel/tensormaps.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstring>

namespace klineage::gate {

namespace {

using nlohmann::json;

constexpr std::int64_t mostScratchBytes = std::int64_t{1} << 30;
constexpr int deepestFile = 4; ///< workload/lineages/lineage/branches

const char *tritonType(kernel::DType dtype)
{
    using kernel::DType;
    switch (dtype) {
    case DType::F64:
        return "fp64";
    case DType::F32:
    case DType::TF32:
        return "fp32";
    case DType::F16:
        return "fp16";
    case DType::BF16:
        return "bf16";
    case DType::F8E4M3:
        return "fp8e4nv";
    case DType::F8E5M2:
        return "fp8e5";
    case DType::U8:
        return "u8";
    case DType::I8:
        return "i8";
    case DType::I16:
        return "i16";
    case DType::I32:
        return "i32";
    case DType::U32:
        return "u32";
    case DType::I64:
        return "i64";
    }
    return "fp32";
}

const char *tritonType(kernel::ScalarType type)
{
    using kernel::ScalarType;
    switch (type) {
    case ScalarType::Int32:
        return "i32";
    case ScalarType::UInt32:
        return "u32";
    case ScalarType::Int64:
        return "i64";
    case ScalarType::UInt64:
        return "u64";
    case ScalarType::Float32:
        return "fp32";
    case ScalarType::Float64:
        return "fp64";
    }
    return "i32";
}

/// Says the launches of one candidate.
class Description
{
public:
    Description(const kernel::Candidate &candidate, const workload::Workload &workload,
                const std::map<std::string, std::int64_t> &tunables)
        : m_candidate(candidate)
        , m_constants(tunables)
    {
        for (const auto &[name, value] : tunables)
            m_bindings[name] = value;
        for (const workload::Tensor &tensor : workload.tensors)
            m_types[tensor.name] = tensor.dtype;
        for (const kernel::Workspace &workspace : candidate.workspaces)
            m_types[workspace.name] = workspace.dtype;
    }

    Result<json> launches()
    {
        json all = json::array();
        for (const kernel::Launch &launch : m_candidate.launches) {
            auto said = describe(launch);
            if (!said)
                return fail(said.error().code, "launch '" + launch.kernel + "', line "
                                                   + std::to_string(launch.line) + ": "
                                                   + said.error().message);
            (*said)["entry"] = entryOf(launch.kernel, *said);
            all.push_back(std::move(*said));
        }
        return all;
    }

private:
    Result<json> describe(const kernel::Launch &launch) const
    {
        const auto warps = kernel::warpsOf(launch, m_bindings);
        if (!warps)
            return tl::unexpected(warps.error());
        const auto stages = launch.stages ? launch.stages->evaluateInteger(m_bindings) : kernel::usualStages;
        if (!stages || *stages < 1 || *stages > 16)
            return fail(ErrorCode::InvalidInput,
                        "num_stages: "
                            + (stages ? std::string("expected 1 to 16.") : stages.error().message));
        json arguments = json::array();
        for (const kernel::LaunchArg &arg : launch.args) {
            auto argument = std::visit([&](const auto &one) { return describe(one, launch); }, arg);
            if (!argument)
                return argument;
            arguments.push_back(std::move(*argument));
        }
        json said = {
            {"kernel", launch.kernel}, {"arguments", std::move(arguments)}, {"constants", m_constants}};
        if (m_candidate.surface->takesHints)
            said.update({{"num_warps", *warps}, {"num_stages", *stages}});
        return said;
    }

    Result<json> describe(const kernel::TensorArg &arg, const kernel::Launch &) const
    {
        const auto type = m_types.find(arg.name);
        if (type == m_types.end())
            return fail(ErrorCode::InvalidInput, "'" + arg.name + "' is neither a tensor nor a workspace.");
        return json{{"type", std::string("*") + tritonType(type->second)}, {"multiple_of_16", true}};
    }

    Result<json> describe(const kernel::TensorMapArg &arg, const kernel::Launch &) const
    {
        const auto map = std::find_if(m_candidate.tensorMaps.begin(), m_candidate.tensorMaps.end(),
                                      [&](const kernel::TensorMap &one) { return one.name == arg.name; });
        const auto type = map == m_candidate.tensorMaps.end() ? m_types.end() : m_types.find(map->tensor);
        if (type == m_types.end())
            return fail(ErrorCode::InvalidInput, "the tensor map '" + arg.name + "' is of nothing.");
        std::string box;
        for (const kernel::Expression &extent : map->box) {
            const auto value = extent.evaluateInteger(m_bindings);
            if (!value)
                return fail(ErrorCode::InvalidInput,
                            "the box of the tensor map '" + arg.name
                                + "' is known to the compiler, so it is of tunables alone: "
                                + value.error().message);
            box += (box.empty() ? "" : ",") + std::to_string(*value);
        }
        return json{{"type", std::string("tensordesc<") + tritonType(type->second) + "[" + box + "]>"},
                    {"multiple_of_16", false}};
    }

    Result<json> describe(const kernel::ScalarArg &arg, const kernel::Launch &launch) const
    {
        const auto &multiples = launch.multiplesOf16;
        const bool multiple = std::find(multiples.begin(), multiples.end(), arg.value) != multiples.end();
        const bool whole = arg.type != kernel::ScalarType::Float32 && arg.type != kernel::ScalarType::Float64;
        json said = {{"type", tritonType(arg.type)}, {"multiple_of_16", multiple && whole}};
        if (!m_candidate.surface->takesHints)
            said["value"] = arg.value.text();
        return said;
    }

    Result<json> describe(const kernel::LocalArg &, const kernel::Launch &) const
    {
        return fail(ErrorCode::InvalidInput, "'local' is for OpenCL.");
    }

    /// A kernel that is launched with other types or hints is another one, and needs another name, where it has no types of its own.
    std::string entryOf(const std::string &kernel, const json &said)
    {
        if (!m_candidate.surface->takesHints)
            return kernel;
        auto &variants = m_variants[kernel];
        const std::string text = said.dump();
        const auto found = std::find(variants.begin(), variants.end(), text);
        const auto index = static_cast<std::size_t>(found - variants.begin());
        if (found == variants.end())
            variants.push_back(text);
        return index == 0 ? kernel : kernel + "__" + std::to_string(index + 1);
    }

    const kernel::Candidate &m_candidate;
    std::map<std::string, std::int64_t> m_constants;
    kernel::Bindings m_bindings;
    std::map<std::string, kernel::DType> m_types;
    std::map<std::string, std::vector<std::string>> m_variants;
};

template <typename T>
kernel::ScalarValue scalarOf(T value)
{
    kernel::ScalarValue scalar;
    scalar.size = sizeof(T);
    std::memcpy(scalar.bytes.data(), &value, sizeof(T));
    return scalar;
}

/// The map as the compiler cut it, and behind it the tensor's extents and its strides in elements.
void addMap(const kernel::ResolvedTensorMap &map, const CompiledLaunch::Map &cut, kernel::ResolvedPlan &plan,
            std::vector<kernel::ResolvedArg> &args)
{
    kernel::ResolvedTensorMap mine = map;
    mine.box = cut.box;
    mine.swizzle = cut.swizzle;
    args.emplace_back(kernel::TensorMapValue{plan.tensorMaps.size()});
    for (const std::int64_t extent : mine.dims)
        args.emplace_back(scalarOf(static_cast<std::int32_t>(extent)));
    const auto element = static_cast<std::int64_t>(kernel::sizeOf(mine.dtype));
    for (const std::int64_t stride : mine.strideBytes)
        args.emplace_back(scalarOf(stride / element));
    args.emplace_back(scalarOf(std::int64_t{1}));
    plan.tensorMaps.push_back(std::move(mine));
}

/// The pointers behind the arguments; the first is to a workspace where the kernel's blocks need some.
Status addScratch(const kernel::ResolvedLaunch &launch, const CompiledLaunch &decided,
                  kernel::ResolvedPlan &plan, std::vector<kernel::ResolvedArg> &args)
{
    std::int64_t bytes = decided.scratchBytes;
    for (const std::int64_t extent : launch.grid) {
        if (__builtin_mul_overflow(bytes, extent, &bytes) || bytes > mostScratchBytes)
            return fail(ErrorCode::InvalidInput, "Cannot launch " + launch.kernel
                                                     + ": its blocks need more than 1 GiB for themselves.");
    }
    for (std::int64_t i = 0; i < decided.pointers; ++i) {
        if (i > 0 || bytes == 0) {
            args.emplace_back(scalarOf(std::uint64_t{0}));
            continue;
        }
        const std::string name =
            "scratch." + std::to_string(launch.index); // no identifier: no workspace of the plan's
        plan.workspaces.push_back({name, kernel::DType::U8, {bytes}, kernel::WorkspaceInit::Poison});
        args.emplace_back(kernel::PointerValue{name});
    }
    return {};
}

/// The map that a compiler made of the tensor that an argument of the plan's is.
Result<kernel::ResolvedTensorMap> resolveMade(const CompiledLaunch::Map &made,
                                              const kernel::ResolvedLaunch &launch,
                                              const std::vector<kernel::ResolvedBuffer> &tensors,
                                              const kernel::Bindings &bindings,
                                              const kernel::ResolvedPlan &plan)
{
    const auto *pointer = *made.argument < launch.args.size()
                              ? std::get_if<kernel::PointerValue>(&launch.args[*made.argument])
                              : nullptr;
    const kernel::ResolvedBuffer *buffer = nullptr;
    for (const auto *list : {&tensors, &plan.workspaces}) {
        for (const kernel::ResolvedBuffer &one : *list) {
            if (pointer && one.name == pointer->buffer)
                buffer = &one;
        }
    }
    if (!buffer || made.dims.empty() || made.strides.size() + 1 != made.dims.size())
        return fail(ErrorCode::InvalidInput, "its compiler makes a tensor map of nothing.");
    kernel::TensorMap map;
    map.name = buffer->name;
    map.tensor = buffer->name;
    map.swizzle = made.swizzle;
    map.l2Promotion = made.promotion;
    map.fill = made.fill;
    for (const auto &[from, to] :
         {std::pair{&made.dims, &map.dims}, std::pair{&made.strides, &map.strides}}) {
        for (const std::string &text : *from) {
            const auto expression = kernel::Expression::parse(text);
            if (!expression)
                return tl::unexpected(expression.error());
            to->push_back(*expression);
        }
    }
    for (const std::int64_t extent : made.box)
        map.box.emplace_back(extent);
    return kernel::resolveTensorMap(map, *buffer, bindings);
}

/// Those of a kernel that takes the plan's as its compiler says.
Result<std::vector<kernel::ResolvedArg>> takenArguments(const CompiledLaunch &decided,
                                                        const kernel::ResolvedLaunch &launch,
                                                        const std::vector<kernel::ResolvedBuffer> &tensors,
                                                        const kernel::Bindings &bindings,
                                                        kernel::ResolvedPlan &plan)
{
    std::vector<kernel::ResolvedArg> args;
    for (const std::int64_t place : *decided.takes) {
        const auto index = static_cast<std::size_t>(place < 0 ? -(place + 1) : place);
        if (place < 0 && index < decided.maps.size() && decided.maps[index].argument) {
            auto map = resolveMade(decided.maps[index], launch, tensors, bindings, plan);
            if (!map)
                return tl::unexpected(map.error());
            args.emplace_back(kernel::TensorMapValue{plan.tensorMaps.size()});
            plan.tensorMaps.push_back(std::move(*map));
        } else if (place >= 0 && index < launch.args.size()) {
            args.push_back(launch.args[index]);
        } else {
            return fail(ErrorCode::InvalidInput, "its compiler says of an argument that is not there.");
        }
    }
    return args;
}

Status applyTo(kernel::ResolvedLaunch &launch, const CompiledLaunch &decided,
               const std::vector<kernel::ResolvedBuffer> &tensors, const kernel::Bindings &bindings,
               kernel::ResolvedPlan &plan)
{
    const auto fact = bindings.find("max_shared");
    const auto *known = fact == bindings.end() ? nullptr : std::get_if<std::int64_t>(&fact->second);
    const std::int64_t mostShared = known ? *known : std::int64_t{1} << 30;
    const auto refuse = [&](const std::string &why) {
        return fail(ErrorCode::InvalidInput, "Cannot launch " + launch.kernel + ": " + why);
    };
    if (decided.sharedBytes > mostShared)
        return refuse("it needs " + std::to_string(decided.sharedBytes)
                      + " bytes of shared memory a block, and the device has " + std::to_string(mostShared)
                      + ". Use smaller tiles or fewer stages.");
    if (decided.threads < 1)
        return refuse("its compiler says of no threads.");
    std::vector<kernel::ResolvedArg> args;
    if (decided.takes) {
        auto taken = takenArguments(decided, launch, tensors, bindings, plan);
        if (!taken)
            return refuse(taken.error().message);
        args = std::move(*taken);
        launch.args.clear();
    }
    std::size_t maps = 0;
    for (const kernel::ResolvedArg &arg : launch.args) {
        const auto *value = std::get_if<kernel::TensorMapValue>(&arg);
        if (!value) {
            args.push_back(arg);
            continue;
        }
        const kernel::ResolvedTensorMap map = plan.tensorMaps.at(value->index);
        if (maps >= decided.maps.size() || decided.maps[maps].box.size() != map.dims.size())
            return refuse("its compiler does not say how the tensor map '" + map.name + "' is cut.");
        addMap(map, decided.maps[maps++], plan, args);
    }
    if (auto given = addScratch(launch, decided, plan, args); !given)
        return given;
    launch.args = std::move(args);
    launch.kernel = decided.kernel;
    launch.block = {decided.threads, 1, 1};
    launch.sharedBytes = decided.sharedBytes;
    return {};
}

} // namespace

Result<std::string> describeLaunches(const kernel::Candidate &candidate, const workload::Workload &workload,
                                     const std::map<std::string, std::int64_t> &tunables)
{
    const auto launches = Description(candidate, workload, tunables).launches();
    if (!launches)
        return tl::unexpected(launches.error());
    return launches->dump();
}

Result<std::string> describeLaunchesOf(const kernel::Candidate &candidate, const std::filesystem::path &file,
                                       const std::map<std::string, std::int64_t> &tunables)
{
    if (!candidate.surface->compilerDecides)
        return std::string();
    std::error_code ignored;
    std::filesystem::path folder = std::filesystem::absolute(file, ignored).parent_path();
    for (int level = 0; level < deepestFile; ++level, folder = folder.parent_path()) {
        if (!std::filesystem::is_regular_file(folder / "workload.toml", ignored))
            continue;
        const auto workload = workload::readWorkload(folder);
        if (!workload)
            return tl::unexpected(workload.error());
        return describeLaunches(candidate, *workload, tunables);
    }
    return fail(ErrorCode::NotFound,
                "Cannot compile " + file.filename().string()
                    + " by itself: the types of its arguments are those of a workload's tensors, and it "
                      "lies in no workload's folder.");
}

Status applyDecisions(const std::vector<CompiledLaunch> &decisions,
                      const std::vector<kernel::ResolvedBuffer> &tensors, const kernel::Bindings &bindings,
                      kernel::ResolvedPlan &plan)
{
    for (kernel::ResolvedLaunch &launch : plan.launches) {
        if (launch.index >= decisions.size())
            return fail(ErrorCode::InvalidInput,
                        "Cannot launch " + launch.kernel + ": its compiler says nothing about it.");
        if (auto applied = applyTo(launch, decisions[launch.index], tensors, bindings, plan); !applied)
            return applied;
    }
    return {};
}

} // namespace klineage::gate
