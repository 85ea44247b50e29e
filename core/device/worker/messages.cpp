// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/device/worker/codec.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace klineage::gate::protocol {

using nlohmann::json;

json write(const kernel::Bindings &bindings)
{
    json out = json::object();
    for (const auto &[name, value] : bindings)
        std::visit([&, &key = name](auto number) { out[key] = number; }, value);
    return out;
}

json write(const Environment &environment)
{
    return {{"platform", environment.platform}, {"device", environment.device}, {"facts", environment.facts}};
}

json write(const std::vector<Metric> &metrics)
{
    json out = json::array();
    for (const Metric &metric : metrics)
        out.push_back({{"name", metric.name},
                       {"value", metric.value},
                       {"unit", metric.unit},
                       {"kernel", metric.kernel}});
    return out;
}

json write(const std::vector<ListedInstruction> &instructions)
{
    json out = json::array();
    for (const ListedInstruction &one : instructions)
        out.push_back({{"kernel", one.kernel},
                       {"offset", one.offset},
                       {"line", one.line},
                       {"samples", one.samples},
                       {"stalls", one.stalls}});
    return out;
}

json write(const CompileOutput &output)
{
    json out = {{"ok", output.ok},
                {"log", output.log},
                {"metrics", write(output.metrics)},
                {"compiler", output.compiler},
                {"uses_local", output.usesLocal}};
    for (const CompiledLaunch &launch : output.launches) {
        json maps = json::array();
        for (const CompiledLaunch::Map &map : launch.maps) {
            json &entry =
                maps.emplace_back(json{{"box", map.box}, {"swizzle", static_cast<int>(map.swizzle)}});
            if (map.argument)
                entry.update({{"argument", *map.argument},
                              {"dims", map.dims},
                              {"strides", map.strides},
                              {"promotion", static_cast<int>(map.promotion)},
                              {"fill", static_cast<int>(map.fill)}});
        }
        json &entry = out["launches"].emplace_back(json{{"kernel", launch.kernel},
                                                        {"threads", launch.threads},
                                                        {"shared", launch.sharedBytes},
                                                        {"scratch", launch.scratchBytes},
                                                        {"pointers", launch.pointers},
                                                        {"maps", std::move(maps)}});
        if (launch.takes)
            entry["takes"] = *launch.takes;
    }
    return out;
}

json write(const ReferenceCall &call)
{
    return {{"provider", call.provider}, {"op", call.op}, {"buffers", call.buffers}, {"sizes", call.sizes}};
}

json write(const Error &error)
{
    return {{"code", static_cast<int>(error.code)}, {"message", error.message}, {"detail", error.detail}};
}

json write(const std::vector<BufferSet> &sets)
{
    json out = json::array();
    for (const BufferSet &set : sets) {
        json entry = json::object();
        for (const auto &[name, binding] : set)
            entry[name] = {binding.buffer, binding.offsetBytes};
        out.push_back(std::move(entry));
    }
    return out;
}

namespace {

json regionsJson(const std::vector<FillRegion> &regions)
{
    json out = json::array();
    for (const FillRegion &region : regions)
        out.push_back({region.buffer, region.offsetBytes, region.bytes, region.written});
    return out;
}

std::vector<FillRegion> regionsFrom(const json &in)
{
    std::vector<FillRegion> regions;
    for (const json &entry : in)
        regions.push_back({decode<BufferId>(entry.at(0)), decode<std::size_t>(entry.at(1)),
                           decode<std::size_t>(entry.at(2)), entry.at(3).get<bool>()});
    return regions;
}

} // namespace

json write(const FillSets &fills)
{
    json out = json::array();
    for (const auto &regions : fills)
        out.push_back(regionsJson(regions));
    return out;
}

json write(const Guards &guards)
{
    json copies = json::array();
    for (const GuardedCopies &guarded : guards.copies)
        copies.push_back({guarded.buffer, guarded.places, guarded.placeBytes, guarded.offsetBytes,
                          guarded.bytes, guarded.zones});
    json variables = json::array();
    for (const ModuleVariable &variable : guards.variables)
        variables.push_back({variable.module, variable.name, variable.bytes});
    return {{"copies", std::move(copies)},
            {"slack", regionsJson(guards.slack)},
            {"variables", std::move(variables)}};
}

json write(const OutputSets &outputs)
{
    json layouts = json::array();
    for (const TileLayout &layout : outputs.layouts)
        layouts.push_back({kernel::toString(layout.dtype), layout.elements, layout.tileElements});
    json sets = json::array();
    for (const auto &set : outputs.sets) {
        json bindings = json::array();
        for (const BufferBinding &binding : set)
            bindings.push_back({binding.buffer, binding.offsetBytes});
        sets.push_back(std::move(bindings));
    }
    return {{"layouts", std::move(layouts)}, {"sets", std::move(sets)}, {"key", outputs.key}};
}

json write(const std::vector<std::vector<CopyRange>> &sets)
{
    json out = json::array();
    for (const auto &ranges : sets)
        out.push_back(write(ranges));
    return out;
}

json write(const std::vector<CopyRange> &ranges)
{
    json out = json::array();
    for (const CopyRange &range : ranges) {
        json &entry =
            out.emplace_back(json{range.to, range.toOffset, range.from, range.fromOffset, range.bytes});
        if (range.with == 0)
            continue;
        const Blend &blend = range.blend;
        for (json value :
             {json(range.with), json(static_cast<int>(blend.kind)), json(kernel::toString(blend.dtype)),
              json(blend.key), json(blend.mean), json(blend.piece), json(blend.unit)})
            entry.push_back(std::move(value));
    }
    return out;
}

json write(const TimedRun &run)
{
    return {run.subject, run.first,  run.repeats,      run.fillWord, run.replay,
            run.content, run.around, write(run.known), run.midway,   write(run.then)};
}

json write(const TimedSample &sample)
{
    json out = {sample.ns, sample.clockMhz};
    if (sample.touched)
        out.insert(out.end(), {sample.touched->buffer, sample.touched->offsetBytes});
    return out;
}

json write(const EnergyReading &reading)
{
    return {{"joules", reading.joules},
            {"seconds", reading.seconds},
            {"runs", reading.runs},
            {"resolution", reading.resolutionJoules}};
}

template <>
kernel::Bindings decode(const json &in)
{
    kernel::Bindings bindings;
    for (const auto &item : in.items()) {
        if (item.value().is_number_integer())
            bindings[item.key()] = decode<std::int64_t>(item.value());
        else
            bindings[item.key()] = item.value().get<double>();
    }
    return bindings;
}

template <>
Environment decode(const json &in)
{
    Environment environment;
    environment.platform = in.at("platform").get<std::string>();
    environment.device = in.at("device").get<std::string>();
    environment.facts = in.at("facts").get<std::map<std::string, std::string>>();
    return environment;
}

template <>
std::vector<Metric> decode(const json &in)
{
    std::vector<Metric> metrics;
    for (const json &entry : in) {
        Metric metric;
        metric.name = entry.at("name").get<std::string>();
        metric.value = entry.at("value").get<double>();
        metric.unit = entry.at("unit").get<std::string>();
        metric.kernel = entry.at("kernel").get<std::string>();
        if (!std::isfinite(metric.value) || metrics.size() >= 2048)
            throw std::invalid_argument("metrics");
        metrics.push_back(std::move(metric));
    }
    return metrics;
}

template <>
std::vector<ListedInstruction> decode(const json &in)
{
    constexpr std::size_t mostInstructions = 100'000;
    std::vector<ListedInstruction> instructions;
    for (const json &entry : in) {
        ListedInstruction one;
        one.kernel = entry.at("kernel").get<std::string>();
        one.offset = decode<std::uint64_t>(entry.at("offset"));
        one.line = decode<int>(entry.at("line"));
        one.samples = decode<std::int64_t>(entry.at("samples"));
        one.stalls = decode<std::map<std::string, std::int64_t>>(entry.at("stalls"));
        const bool negative =
            std::any_of(one.stalls.begin(), one.stalls.end(), [](const auto &s) { return s.second < 0; });
        if (one.line < 0 || one.samples < 0 || negative || one.stalls.size() > 64
            || instructions.size() >= mostInstructions)
            throw std::invalid_argument("instructions");
        instructions.push_back(std::move(one));
    }
    return instructions;
}

template <>
CompiledLaunch decode(const json &in)
{
    constexpr std::int64_t mostTaken = 128; // arguments of a plan's and maps together
    const auto numberIn = [](const json &from, const char *key, std::int64_t most) {
        const auto value = decode<std::int64_t>(from.at(key));
        if (value < 0 || value > most)
            throw std::out_of_range(key);
        return value;
    };
    const auto number = [&](const char *key, std::int64_t most) { return numberIn(in, key, most); };
    CompiledLaunch launch;
    launch.kernel = in.at("kernel").get<std::string>();
    launch.threads = number("threads", 1024);
    launch.sharedBytes = number("shared", std::int64_t{1} << 30);
    launch.scratchBytes = number("scratch", std::int64_t{1} << 20);
    launch.pointers = number("pointers", 8);
    for (const json &entry : in.at("maps")) {
        const auto word = [&](const char *key, auto last) {
            return static_cast<decltype(last)>(numberIn(entry, key, static_cast<std::int64_t>(last)));
        };
        CompiledLaunch::Map &map = launch.maps.emplace_back();
        map.box = decode<std::vector<std::int64_t>>(entry.at("box"));
        map.swizzle = word("swizzle", kernel::Swizzle::B128);
        if (!entry.contains("argument"))
            continue;
        map.argument = static_cast<std::size_t>(numberIn(entry, "argument", mostTaken));
        map.dims = decode<std::vector<std::string>>(entry.at("dims"));
        map.strides = decode<std::vector<std::string>>(entry.at("strides"));
        map.promotion = word("promotion", kernel::L2Promotion::B256);
        map.fill = word("fill", kernel::TensorMapFill::Nan);
    }
    if (const auto takes = in.find("takes"); takes != in.end()) {
        launch.takes = decode<std::vector<std::int64_t>>(*takes);
        if (std::ssize(*launch.takes) > mostTaken)
            throw std::out_of_range("takes");
    }
    return launch;
}

template <>
CompileOutput decode(const json &in)
{
    CompileOutput output;
    output.ok = in.at("ok").get<bool>();
    output.log = in.at("log").get<std::string>();
    output.metrics = decode<std::vector<Metric>>(in.at("metrics"));
    output.compiler = in.at("compiler").get<std::string>();
    output.usesLocal = in.value("uses_local", true);
    if (const auto launches = in.find("launches"); launches != in.end())
        output.launches = decode<std::vector<CompiledLaunch>>(*launches);
    return output;
}

template <>
std::vector<BufferSet> decode(const json &in)
{
    std::vector<BufferSet> sets;
    for (const json &entry : in) {
        BufferSet set;
        for (const auto &item : entry.items())
            set[item.key()] = {decode<BufferId>(item.value().at(0)), decode<std::size_t>(item.value().at(1))};
        sets.push_back(std::move(set));
    }
    return sets;
}

template <>
ReferenceCall decode(const json &in)
{
    ReferenceCall call;
    call.provider = in.at("provider").get<std::string>();
    call.op = in.at("op").get<std::string>();
    call.buffers = in.at("buffers").get<std::map<std::string, std::string>>();
    call.sizes = decode<std::map<std::string, std::int64_t>>(in.at("sizes"));
    return call;
}

template <>
FillSets decode(const json &in)
{
    FillSets fills;
    for (const json &set : in)
        fills.push_back(regionsFrom(set));
    return fills;
}

template <>
Guards decode(const json &in)
{
    Guards guards;
    for (const json &entry : in.at("copies"))
        guards.copies.push_back({decode<BufferId>(entry.at(0)), decode<std::vector<std::size_t>>(entry.at(1)),
                                 decode<std::size_t>(entry.at(2)), decode<std::size_t>(entry.at(3)),
                                 decode<std::size_t>(entry.at(4)), decode<BufferId>(entry.at(5))});
    guards.slack = regionsFrom(in.at("slack"));
    for (const json &entry : in.at("variables"))
        guards.variables.push_back({decode<ModuleId>(entry.at(0)), entry.at(1).get<std::string>(),
                                    decode<std::size_t>(entry.at(2))});
    return guards;
}

template <>
OutputSets decode(const json &in)
{
    OutputSets outputs;
    for (const json &entry : in.at("layouts")) {
        const auto dtype = kernel::dtypeFromString(entry.at(0).get<std::string>());
        const TileLayout layout{dtype.value_or(kernel::DType::F32), decode<std::size_t>(entry.at(1)),
                                decode<std::size_t>(entry.at(2))};
        if (!dtype || layout.tileElements == 0)
            throw std::invalid_argument("layout");
        outputs.layouts.push_back(layout);
    }
    for (const json &set : in.at("sets")) {
        auto &bindings = outputs.sets.emplace_back();
        for (const json &entry : set)
            bindings.push_back({decode<BufferId>(entry.at(0)), decode<std::size_t>(entry.at(1))});
        if (bindings.size() != outputs.layouts.size())
            throw std::invalid_argument("sets");
    }
    outputs.key = decode<std::uint32_t>(in.at("key"));
    return outputs;
}

template <>
std::vector<CopyRange> decode(const json &in)
{
    std::vector<CopyRange> ranges;
    for (const json &entry : in) {
        CopyRange &range = ranges.emplace_back(CopyRange{
            decode<BufferId>(entry.at(0)), decode<std::size_t>(entry.at(1)), decode<BufferId>(entry.at(2)),
            decode<std::size_t>(entry.at(3)), decode<std::size_t>(entry.at(4))});
        if (entry.size() == 5)
            continue;
        range.with = decode<BufferId>(entry.at(5));
        const int kind = decode<int>(entry.at(6));
        const auto dtype = kernel::dtypeFromString(entry.at(7).get<std::string>());
        if (range.with == 0 || kind < 0 || kind > static_cast<int>(Blend::Kind::Varied) || !dtype)
            throw std::invalid_argument("range");
        range.blend = {static_cast<Blend::Kind>(kind),     *dtype,
                       decode<std::uint64_t>(entry.at(8)), entry.at(9).get<double>(),
                       decode<std::size_t>(entry.at(10)),  decode<std::size_t>(entry.at(11))};
        const std::size_t elements = range.bytes / kernel::sizeOf(*dtype);
        if (range.blend.piece == 0 || range.blend.unit == 0
            || elements * kernel::sizeOf(*dtype) != range.bytes || !std::isfinite(range.blend.mean))
            throw std::invalid_argument("range");
    }
    return ranges;
}

template <>
std::vector<std::vector<CopyRange>> decode(const json &in)
{
    std::vector<std::vector<CopyRange>> sets;
    for (const json &ranges : in)
        sets.push_back(decode<std::vector<CopyRange>>(ranges));
    return sets;
}

template <>
TimedRun decode(const json &in)
{
    return {decode<SubjectId>(in.at(0)), decode<std::size_t>(in.at(1)),
            decode<int>(in.at(2)),       decode<std::uint32_t>(in.at(3)),
            in.at(4).get<bool>(),        decode<std::uint64_t>(in.at(5)),
            decode<int>(in.at(6)),       decode<std::vector<CopyRange>>(in.at(7)),
            decode<int>(in.at(8)),       decode<std::vector<CopyRange>>(in.at(9))};
}

template <>
TimedSample decode(const json &in)
{
    TimedSample sample{in.at(0).get<double>(), in.at(1).get<double>()};
    if (in.size() > 2)
        sample.touched = BufferBinding{decode<BufferId>(in.at(2)), decode<std::size_t>(in.at(3))};
    if (!std::isfinite(sample.ns) || sample.ns <= 0 || !std::isfinite(sample.clockMhz) || sample.clockMhz < 0)
        throw std::invalid_argument("sample");
    return sample;
}

template <>
EnergyReading decode(const json &in)
{
    EnergyReading reading{in.at("joules").get<double>(), in.at("seconds").get<double>(),
                          decode<std::int64_t>(in.at("runs")), in.at("resolution").get<double>()};
    const auto sound = [](double value) { return std::isfinite(value) && value > 0; };
    if (!sound(reading.joules) || !sound(reading.seconds) || reading.runs < 1
        || !sound(reading.resolutionJoules))
        throw std::invalid_argument("energy");
    return reading;
}

template <>
Error decode(const json &in)
{
    const int code = decode<int>(in.at("code"));
    if (code < 0 || code > static_cast<int>(ErrorCode::Internal))
        throw std::invalid_argument("code");
    return {static_cast<ErrorCode>(code), in.at("message").get<std::string>(),
            in.at("detail").get<std::string>()};
}

} // namespace klineage::gate::protocol
