// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trial/trial.h"

#include "core/base/suggest.h"
#include "core/files/sha256.h"
#include "core/trial/listing.h"
#include "core/trial/stages.h"
#include "core/trial/verdictjson.h"

#include <algorithm>
#include <limits>
#include <random>

namespace klineage::gate {

using files::childPath;
using files::readInteger;
using files::readNumber;
using files::readText;

using files::OrderedJson;
using nlohmann::json;

namespace {

constexpr std::size_t maxLineBytes = std::size_t{16} << 20;
constexpr std::size_t maxSamples = 100000;
constexpr std::size_t maxSubjects = 64;
constexpr std::size_t maxMetrics = 4096;
constexpr std::size_t maxHotspots = 1024;
constexpr std::size_t maxStallReasons = 64;
constexpr std::size_t maxSeeds = 1024;
constexpr std::size_t maxTunables = 64;
constexpr std::size_t maxFacts = 512;

bool isLowerHex(std::string_view text, std::size_t length)
{
    return text.size() == length && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

/// 2025-01-31T12:34:56Z, with an optional fraction of the second.
bool isUtcTime(std::string_view text)
{
    constexpr std::string_view pattern = "dddd-dd-ddTdd:dd:dd";
    if (text.size() < pattern.size() + 1 || text.size() > 40 || text.back() != 'Z')
        return false;
    const auto isDigit = [](char c) { return c >= '0' && c <= '9'; };
    for (std::size_t i = 0; i < pattern.size(); ++i) {
        if (pattern[i] == 'd' ? !isDigit(text[i]) : text[i] != pattern[i])
            return false;
    }
    const std::string_view fraction = text.substr(pattern.size(), text.size() - pattern.size() - 1);
    return fraction.empty()
           || (fraction.front() == '.' && fraction.size() > 1
               && std::all_of(fraction.begin() + 1, fraction.end(), isDigit));
}

struct NamedTrust {
    const char *name;
    Trust trust;
};
constexpr NamedTrust trustWords[] = {
    {"isolated", Trust::Isolated}, {"audited", Trust::Audited}, {"advisory", Trust::Advisory}};

Trust readTrust(JsonReader &reader)
{
    const std::string word = reader.optionalText("trust", 64);
    if (word.empty())
        return Trust::Unsaid;
    for (const NamedTrust &known : trustWords) {
        if (word == known.name)
            return known.trust;
    }
    reader.refuse("trust", "is '" + word + "'; expected 'isolated', 'audited' or 'advisory'");
}

std::string readSha(JsonReader &reader, const std::string &key, bool required)
{
    std::string sha = required ? reader.text(key, 256) : reader.optionalText(key, 256);
    if ((required || !sha.empty()) && !isLowerHex(sha, 64))
        reader.refuse(key, "is no sha-256; 64 lower-case hex digits were expected");
    return sha;
}

Environment readEnvironment(const json &value, const JsonPath &path)
{
    JsonReader reader(value, path);
    Environment environment;
    environment.platform = reader.text("platform");
    environment.device = reader.text("device");
    if (const json *facts = reader.optionalObject("facts", maxFacts)) {
        for (const auto &item : facts->items())
            environment.facts[item.key()] =
                readText(item.value(), childPath(reader.pathOf("facts"), item.key()));
    }
    reader.finish();
    return environment;
}

void readSeedsAndTunables(JsonReader &reader, Trial &trial)
{
    if (const json *tunables = reader.optionalObject("tunables", maxTunables)) {
        for (const auto &item : tunables->items())
            trial.tunables[item.key()] =
                readInteger(item.value(), childPath(reader.pathOf("tunables"), item.key()));
    }
    if (const json *seeds = reader.optionalArray("seeds", maxSeeds)) {
        for (const json &seed : *seeds) {
            if (!seed.is_number_unsigned())
                reader.refuse("seeds", "holds something that is no unsigned whole number of 64 bits");
            trial.seeds.push_back(seed.get<std::uint64_t>());
        }
    }
}

void readMetrics(JsonReader &reader, Trial &trial)
{
    const json *list = reader.optionalArray("metrics", maxMetrics);
    for (std::size_t i = 0; list && i < list->size(); ++i) {
        JsonReader item((*list)[i], childPath(reader.pathOf("metrics"), std::to_string(i)));
        Metric metric;
        metric.name = item.text("name");
        metric.value = item.number("value");
        metric.unit = item.optionalText("unit");
        metric.kernel = item.optionalText("kernel");
        item.finish();
        trial.metrics.push_back(std::move(metric));
    }
}

std::int64_t readCount(const json &value, const JsonPath &path)
{
    const std::int64_t count = readInteger(value, path);
    if (count < 0)
        throw JsonFormatError{path, "is negative; a count was expected"};
    return count;
}

void readHotspots(JsonReader &reader, Trial &trial)
{
    const json *list = reader.optionalArray("hotspots", maxHotspots);
    for (std::size_t i = 0; list && i < list->size(); ++i) {
        JsonReader item((*list)[i], childPath(reader.pathOf("hotspots"), std::to_string(i)));
        Hotspot spot;
        spot.kernel = item.text("kernel");
        const std::int64_t line = readCount(item.require("line"), item.pathOf("line"));
        if (line > std::numeric_limits<int>::max())
            item.refuse("line", "is no line number");
        spot.line = static_cast<int>(line);
        spot.samples = readCount(item.require("samples"), item.pathOf("samples"));
        if (const json *stalls = item.optionalObject("stalls", maxStallReasons)) {
            for (const auto &reason : stalls->items())
                spot.stalls[reason.key()] =
                    readCount(reason.value(), childPath(item.pathOf("stalls"), reason.key()));
        }
        item.finish();
        trial.hotspots.push_back(std::move(spot));
    }
}

void readSamples(JsonReader &reader, Trial &trial)
{
    const json *list = reader.optionalArray("samples", maxSubjects);
    for (std::size_t i = 0; list && i < list->size(); ++i) {
        JsonReader item((*list)[i], childPath(reader.pathOf("samples"), std::to_string(i)));
        Samples samples;
        samples.subject = item.text("subject");
        if (const json *values = item.optionalArray("ns", maxSamples)) {
            const JsonPath path = item.pathOf("ns");
            samples.ns.reserve(values->size());
            for (const json &value : *values)
                samples.ns.push_back(readNumber(value, path));
        }
        item.finish();
        trial.samples.push_back(std::move(samples));
    }
}

void readStages(JsonReader &reader, Trial &trial)
{
    const json *stages = reader.find("stages");
    if (!stages)
        return;
    JsonReader item(*stages, reader.pathOf("stages"));
    for (const NamedStage &stage : stageFields) {
        const double seconds = item.optionalNumber(stage.name, 0);
        if (seconds < 0)
            item.refuse(stage.name, "is negative; seconds were expected");
        trial.stages.*stage.seconds = seconds;
    }
    item.finish();
}

void readListingText(JsonReader &reader, Trial &trial)
{
    trial.listing = readSha(reader, "listing", false);
    trial.listingText = reader.optionalText("listing_text", maxListingBytes);
    if (!trial.listingText.empty() && files::sha256Hex(trial.listingText) != trial.listing)
        reader.refuse("listing_text", "is not what 'listing' names: its sha-256 is another");
}

Trial readTrial(const json &value)
{
    JsonReader reader(value, {});
    Trial trial;
    trial.id = reader.text("id", 256);
    if (!isLowerHex(trial.id, 16))
        reader.refuse("id", "is no trial id; 16 lower-case hex digits were expected");
    trial.time = reader.text("time", 256);
    if (!isUtcTime(trial.time))
        reader.refuse("time", "is no UTC time of the form 2025-01-31T12:34:56Z");
    trial.workload = reader.text("workload", 256);
    trial.candidate = readSha(reader, "candidate", true);
    trial.file = reader.optionalText("file", 4096);
    trial.parent = readSha(reader, "parent", false);
    const std::string surface = reader.text("surface", 64);
    if (const auto known = kernel::surfaceFromString(surface))
        trial.surface = *known;
    else
        reader.refuse("surface", "is '" + surface + "'; expected " + quotedList(kernel::surfaceNames()));
    readSeedsAndTunables(reader, trial);
    trial.environment = readEnvironment(reader.require("environment"), reader.pathOf("environment"));
    trial.trust = readTrust(reader);
    trial.replayOf = reader.optionalText("replay_of", 256);
    if (!trial.replayOf.empty() && !isLowerHex(trial.replayOf, 16))
        reader.refuse("replay_of", "is no trial id; 16 lower-case hex digits were expected");
    trial.verdict = readVerdict(reader.require("verdict"), reader.pathOf("verdict"));
    if (const json *latency = reader.find("latency_ns"))
        trial.latencyNs = readInterval(*latency, reader.pathOf("latency_ns"));
    trial.achievedFlops = reader.optionalNumber("achieved_flops", 0);
    trial.achievedBytes = reader.optionalNumber("achieved_bytes", 0);
    readMetrics(reader, trial);
    readHotspots(reader, trial);
    readSamples(reader, trial);
    readListingText(reader, trial);
    readStages(reader, trial);
    trial.gateVersion = reader.optionalText("gate_version", 256);
    reader.finish();
    return trial;
}

void writeMeasurements(OrderedJson &out, const Trial &trial)
{
    if (trial.latencyNs.value != 0)
        out["latency_ns"] = writeInterval(trial.latencyNs);
    if (trial.achievedFlops != 0)
        out["achieved_flops"] = trial.achievedFlops;
    if (trial.achievedBytes != 0)
        out["achieved_bytes"] = trial.achievedBytes;
    for (const Metric &metric : trial.metrics) {
        OrderedJson entry{{"name", metric.name}, {"value", metric.value}};
        files::setUnlessEmpty(entry, "unit", metric.unit);
        files::setUnlessEmpty(entry, "kernel", metric.kernel);
        out["metrics"].push_back(std::move(entry));
    }
    for (const Hotspot &spot : trial.hotspots)
        out["hotspots"].push_back({{"kernel", spot.kernel},
                                   {"line", spot.line},
                                   {"samples", spot.samples},
                                   {"stalls", spot.stalls}});
    for (const NamedStage &stage : stageFields) {
        if (trial.stages.*stage.seconds > 0)
            out["stages"][stage.name] = trial.stages.*stage.seconds;
    }
    files::setUnlessEmpty(out, "listing", trial.listing);
    for (const Samples &samples : trial.samples)
        out["samples"].push_back({{"subject", samples.subject}, {"ns", samples.ns}});
}

/// What was tried and what came of it first, the figures behind that, the long lists last.
OrderedJson ordered(const Trial &trial)
{
    OrderedJson out{{"id", trial.id},
                    {"time", trial.time},
                    {"workload", trial.workload},
                    {"surface", kernel::toString(trial.surface)}};
    files::setUnlessEmpty(out, "file", trial.file);
    out["candidate"] = trial.candidate;
    files::setUnlessEmpty(out, "parent", trial.parent);
    if (!trial.tunables.empty())
        out["tunables"] = trial.tunables;
    out["verdict"] = writeVerdict(trial.verdict);
    if (trial.trust != Trust::Unsaid)
        out["trust"] = toString(trial.trust);
    OrderedJson &environment = out["environment"];
    environment = {{"platform", trial.environment.platform}, {"device", trial.environment.device}};
    if (!trial.environment.facts.empty())
        environment["facts"] = trial.environment.facts;
    files::setUnlessEmpty(out, "gate_version", trial.gateVersion);
    if (!trial.seeds.empty())
        out["seeds"] = trial.seeds;
    files::setUnlessEmpty(out, "replay_of", trial.replayOf);
    writeMeasurements(out, trial);
    return out;
}

} // namespace

const char *toString(Trust trust)
{
    for (const NamedTrust &known : trustWords) {
        if (known.trust == trust)
            return known.name;
    }
    return "not said";
}

const Comparison *Trial::comparison(std::string_view against) const
{
    const auto it = std::find_if(verdict.comparisons.begin(), verdict.comparisons.end(),
                                 [&](const Comparison &c) { return c.against == against; });
    return it == verdict.comparisons.end() ? nullptr : &*it;
}

const Comparison *Trial::referenceComparison() const
{
    const Comparison *best = nullptr;
    for (const Comparison &comparison : verdict.comparisons) {
        if (comparison.against != "parent" && (!best || comparison.otherNs < best->otherNs))
            best = &comparison;
    }
    return best;
}

void to_json(json &out, const Trial &trial)
{
    out = ordered(trial);
}

void from_json(const json &value, Trial &trial)
{
    rethrowAsJson([&] { trial = readTrial(value); });
}

json carryTrial(const Trial &trial)
{
    json out = trial;
    if (!trial.listingText.empty())
        out["listing_text"] = trial.listingText;
    return out;
}

std::string writeTrial(const Trial &trial)
{
    return files::oneLine(ordered(trial)); // compiler and worker logs are bytes of any kind
}

Result<Trial> parseTrial(std::string_view line, const std::string &where)
{
    if (line.size() > maxLineBytes)
        return fail(ErrorCode::InvalidInput,
                    where + ":1: the trial is longer than " + std::to_string(maxLineBytes) + " bytes.");
    return files::parseJsonLine(line, where, [](const json &value) { return readTrial(value); });
}

} // namespace klineage::gate
