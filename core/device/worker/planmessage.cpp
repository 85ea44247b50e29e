// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/device/worker/codec.h"

#include <stdexcept>

namespace klineage::gate::protocol {

using nlohmann::json;

namespace {

json writeArgument(const kernel::ResolvedArg &argument)
{
    if (const auto *pointer = std::get_if<kernel::PointerValue>(&argument))
        return {{"buffer", pointer->buffer}};
    if (const auto *map = std::get_if<kernel::TensorMapValue>(&argument))
        return {{"tensormap", map->index}};
    if (const auto *local = std::get_if<kernel::LocalValue>(&argument))
        return {{"local", local->bytes}};
    const auto &scalar = std::get<kernel::ScalarValue>(argument);
    json bytes = json::array();
    for (std::size_t i = 0; i < scalar.size; ++i)
        bytes.push_back(std::to_integer<int>(scalar.bytes[i]));
    return {{"scalar", std::move(bytes)}};
}

kernel::ResolvedArg readArgument(const json &in)
{
    if (in.contains("buffer"))
        return kernel::PointerValue{in.at("buffer").get<std::string>()};
    if (in.contains("tensormap"))
        return kernel::TensorMapValue{decode<std::size_t>(in.at("tensormap"))};
    if (in.contains("local"))
        return kernel::LocalValue{decode<std::int64_t>(in.at("local"))};
    const json &bytes = in.at("scalar");
    kernel::ScalarValue scalar;
    if (bytes.size() > scalar.bytes.size())
        throw std::invalid_argument("scalar");
    scalar.size = bytes.size();
    for (std::size_t i = 0; i < scalar.size; ++i)
        scalar.bytes[i] = static_cast<std::byte>(decode<int>(bytes[i]));
    return scalar;
}

json writeLaunch(const kernel::ResolvedLaunch &launch)
{
    json arguments = json::array();
    for (const auto &argument : launch.args)
        arguments.push_back(writeArgument(argument));
    return {{"kernel", launch.kernel},
            {"grid", launch.grid},
            {"block", launch.block},
            {"cluster", launch.cluster},
            {"shared_bytes", launch.sharedBytes},
            {"cooperative", launch.cooperative},
            {"programmatic_dependent", launch.programmaticDependent},
            {"args", std::move(arguments)}};
}

kernel::ResolvedLaunch readLaunch(const json &in)
{
    kernel::ResolvedLaunch launch;
    launch.kernel = in.at("kernel").get<std::string>();
    launch.grid = decode<std::array<std::int64_t, 3>>(in.at("grid"));
    launch.block = decode<std::array<std::int64_t, 3>>(in.at("block"));
    launch.cluster = decode<std::array<std::int64_t, 3>>(in.at("cluster"));
    launch.sharedBytes = decode<std::int64_t>(in.at("shared_bytes"));
    launch.cooperative = in.at("cooperative").get<bool>();
    launch.programmaticDependent = in.at("programmatic_dependent").get<bool>();
    for (const json &argument : in.at("args"))
        launch.args.push_back(readArgument(argument));
    return launch;
}

kernel::DType readDType(const json &in)
{
    const auto dtype = kernel::dtypeFromString(in.get<std::string>());
    if (!dtype)
        throw std::invalid_argument("dtype");
    return *dtype;
}

kernel::ResolvedTensorMap readTensorMap(const json &in)
{
    kernel::ResolvedTensorMap map;
    map.name = in.at("name").get<std::string>();
    map.buffer = in.at("buffer").get<std::string>();
    map.dtype = readDType(in.at("dtype"));
    map.dims = decode<std::vector<std::int64_t>>(in.at("dims"));
    map.strideBytes = decode<std::vector<std::int64_t>>(in.at("stride_bytes"));
    map.box = decode<std::vector<std::int64_t>>(in.at("box"));
    map.swizzle = static_cast<kernel::Swizzle>(decode<int>(in.at("swizzle")));
    map.l2Promotion = static_cast<kernel::L2Promotion>(decode<int>(in.at("l2_promotion")));
    map.fill = static_cast<kernel::TensorMapFill>(decode<int>(in.at("fill")));
    return map;
}

} // namespace

json write(const kernel::ResolvedPlan &plan)
{
    json workspaces = json::array();
    for (const auto &workspace : plan.workspaces)
        workspaces.push_back({{"name", workspace.name},
                              {"dtype", kernel::toString(workspace.dtype)},
                              {"shape", workspace.shape},
                              {"zero", workspace.init == kernel::WorkspaceInit::Zero}});
    json maps = json::array();
    for (const auto &map : plan.tensorMaps)
        maps.push_back({{"name", map.name},
                        {"buffer", map.buffer},
                        {"dtype", kernel::toString(map.dtype)},
                        {"dims", map.dims},
                        {"stride_bytes", map.strideBytes},
                        {"box", map.box},
                        {"swizzle", static_cast<int>(map.swizzle)},
                        {"l2_promotion", static_cast<int>(map.l2Promotion)},
                        {"fill", static_cast<int>(map.fill)}});
    json launches = json::array();
    for (const auto &launch : plan.launches)
        launches.push_back(writeLaunch(launch));
    return {{"workspaces", std::move(workspaces)},
            {"tensormaps", std::move(maps)},
            {"launches", std::move(launches)},
            {"uses_local", plan.usesLocal}};
}

template <>
kernel::ResolvedPlan decode(const json &in)
{
    kernel::ResolvedPlan plan;
    for (const json &entry : in.at("workspaces")) {
        kernel::ResolvedBuffer workspace;
        workspace.name = entry.at("name").get<std::string>();
        workspace.dtype = readDType(entry.at("dtype"));
        workspace.shape = decode<std::vector<std::int64_t>>(entry.at("shape"));
        workspace.init =
            entry.at("zero").get<bool>() ? kernel::WorkspaceInit::Zero : kernel::WorkspaceInit::Poison;
        plan.workspaces.push_back(std::move(workspace));
    }
    for (const json &entry : in.at("tensormaps"))
        plan.tensorMaps.push_back(readTensorMap(entry));
    for (const json &entry : in.at("launches"))
        plan.launches.push_back(readLaunch(entry));
    plan.usesLocal = in.at("uses_local").get<bool>();
    return plan;
}

} // namespace klineage::gate::protocol
