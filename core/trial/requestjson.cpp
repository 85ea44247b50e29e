// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trial/requestjson.h"

#include "core/base/suggest.h"

#include <algorithm>

namespace klineage::gate::protocol {

using nlohmann::json;

namespace {

const std::vector<std::string> settingKeys = {"seeds",
                                              "min_rounds",
                                              "target_half_width",
                                              "profile_seconds",
                                              "deadline_seconds",
                                              "with_reference",
                                              "counters",
                                              "energy",
                                              "sanitize",
                                              "tunables",
                                              "quick"};

template <typename T>
void take(const json &in, const char *key, T &value)
{
    if (const auto found = in.find(key); found != in.end())
        value = found->get<T>();
}

} // namespace

json writeRequest(const GateRequest &request, const std::string &workloadText)
{
    json out = {{"workload", workloadText},
                {"candidate", request.candidateText},
                {"name", request.candidateName},
                {"parent", request.parentText},
                {"tunables", request.tunables},
                {"seeds", request.seeds},
                {"min_rounds", request.minRounds},
                {"target_half_width", request.targetHalfWidth},
                {"profile_seconds", request.profileSeconds},
                {"deadline_seconds", request.deadlineSeconds},
                {"counters", request.counters},
                {"with_reference", request.withReference},
                {"quick", request.quick},
                {"energy", request.energy},
                {"sanitize", request.sanitize}};
    if (!request.replayOf.empty()) {
        out["replay_of"] = request.replayOf;
        out["replay_seeds"] = request.replaySeeds;
    }
    return out;
}

Status readSettings(const json &in, const std::vector<std::string> &others, GateRequest &request)
{
    std::vector<std::string> known = settingKeys;
    known.insert(known.end(), others.begin(), others.end());
    for (const auto &item : in.items()) {
        if (std::find(known.begin(), known.end(), item.key()) == known.end())
            return fail(ErrorCode::InvalidInput,
                        "Cannot read the request: the key \"" + item.key() + "\" is not known"
                            + (didYouMean(item.key(), known).empty() ? std::string(".")
                                                                     : didYouMean(item.key(), known)));
    }
    try {
        take(in, "seeds", request.seeds);
        take(in, "min_rounds", request.minRounds);
        take(in, "target_half_width", request.targetHalfWidth);
        take(in, "profile_seconds", request.profileSeconds);
        take(in, "deadline_seconds", request.deadlineSeconds);
        take(in, "with_reference", request.withReference);
        take(in, "quick", request.quick);
        take(in, "counters", request.counters);
        take(in, "energy", request.energy);
        take(in, "sanitize", request.sanitize);
        take(in, "tunables", request.tunables);
    } catch (const json::exception &problem) {
        return fail(ErrorCode::InvalidInput,
                    std::string("Cannot read the request: a value has the wrong type: ") + problem.what()
                        + ".");
    }
    return {};
}

Result<RequestMessage> readRequest(const json &in)
{
    RequestMessage message;
    if (!in.is_object())
        return fail(ErrorCode::InvalidInput, "Cannot read the request: its parameters are no JSON object.");
    if (auto settings = readSettings(
            in, {"workload", "candidate", "name", "parent", "replay_of", "replay_seeds"}, message.request);
        !settings)
        return tl::unexpected(settings.error());
    try {
        message.workloadText = in.at("workload").get<std::string>();
        message.request.candidateText = in.at("candidate").get<std::string>();
        take(in, "name", message.request.candidateName);
        take(in, "parent", message.request.parentText);
        take(in, "replay_of", message.request.replayOf);
        take(in, "replay_seeds", message.request.replaySeeds);
    } catch (const json::exception &problem) {
        return fail(ErrorCode::InvalidInput, std::string("Cannot read the request: ") + problem.what() + ".");
    }
    return message;
}

json writeDevices(const std::vector<DeviceInfo> &devices)
{
    json out = json::array();
    for (const DeviceInfo &device : devices)
        out.push_back({{"surface", kernel::toString(device.kind)},
                       {"available", device.available},
                       {"name", device.name},
                       {"detail", device.detail},
                       {"platform", device.platform}});
    return out;
}

Result<std::vector<DeviceInfo>> readDevices(const json &in)
{
    std::vector<DeviceInfo> devices;
    try {
        for (const json &entry : in) {
            DeviceInfo device;
            const auto kind = kernel::deviceFromString(entry.at("surface").get<std::string>());
            if (!kind)
                return fail(ErrorCode::Protocol, "The gate named a device that is not known.");
            device.kind = *kind;
            device.available = entry.at("available").get<bool>();
            device.name = entry.at("name").get<std::string>();
            device.detail = entry.at("detail").get<std::string>();
            device.platform = entry.value("platform", "");
            devices.push_back(std::move(device));
        }
    } catch (const json::exception &) {
        return fail(ErrorCode::Protocol, "The gate's list of devices cannot be read.");
    }
    return devices;
}

} // namespace klineage::gate::protocol
