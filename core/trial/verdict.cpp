// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trial/verdict.h"

#include "core/base/suggest.h"
#include "core/trial/verdictjson.h"

#include <array>

namespace klineage::gate {

using files::childPath;

using nlohmann::json;

namespace {

constexpr std::size_t maxLogBytes = std::size_t{1} << 20;
constexpr std::size_t maxEvidence = 1024;
constexpr std::size_t maxComparisons = 64;

constexpr std::array statusNames{"correct", "compile_error", "wrong", "unsafe",
                                 "suspect", "timeout",       "crash", "unavailable"};
constexpr std::array stageNames{"compile", "correctness", "profile"};
constexpr std::array changeNames{"gain", "no_gain", "loss", "undecided"};

template <typename Enum, typename Names>
std::optional<Enum> enumFromString(const Names &names, std::string_view name)
{
    for (std::size_t i = 0; i < names.size(); ++i) {
        if (name == names[i])
            return static_cast<Enum>(i);
    }
    return std::nullopt;
}

template <typename Enum, typename Names>
Enum readEnum(JsonReader &reader, const std::string &key, const Names &names)
{
    const std::string name = reader.text(key, 64);
    const std::optional<Enum> value = enumFromString<Enum>(names, name);
    if (!value) {
        const std::vector<std::string> known(names.begin(), names.end());
        reader.refuse(key, "is '" + name + "'; expected " + quotedList(known) + didYouMean(name, known));
    }
    return *value;
}

Comparison readComparison(const json &value, const JsonPath &path)
{
    JsonReader reader(value, path);
    Comparison comparison;
    comparison.against = reader.text("against");
    comparison.subject = reader.optionalText("subject");
    comparison.speedup = readInterval(reader.require("speedup"), reader.pathOf("speedup"));
    comparison.otherNs = reader.optionalNumber("other_ns", 0);
    comparison.change = readEnum<Change>(reader, "change", changeNames);
    reader.finish();
    return comparison;
}

} // namespace

const char *toString(VerdictStatus status)
{
    return statusNames.at(static_cast<std::size_t>(status));
}

std::optional<VerdictStatus> verdictStatusFromString(std::string_view name)
{
    return enumFromString<VerdictStatus>(statusNames, name);
}

const char *toString(Stage stage)
{
    return stageNames.at(static_cast<std::size_t>(stage));
}

std::optional<Stage> stageFromString(std::string_view name)
{
    return enumFromString<Stage>(stageNames, name);
}

const char *toString(Change change)
{
    return changeNames.at(static_cast<std::size_t>(change));
}

std::optional<Change> changeFromString(std::string_view name)
{
    return enumFromString<Change>(changeNames, name);
}

files::OrderedJson writeInterval(const Interval &interval)
{
    return {{"value", interval.value}, {"low", interval.low}, {"high", interval.high}};
}

Interval readInterval(const json &value, const JsonPath &path)
{
    JsonReader reader(value, path);
    Interval interval;
    interval.value = reader.number("value");
    interval.low = reader.number("low");
    interval.high = reader.number("high");
    reader.finish();
    if (interval.low > interval.high)
        reader.refuse("low", "is above 'high'");
    if (interval.low < 0 || interval.value < 0)
        reader.refuse("value", "or its interval is negative; times and speedups are not");
    return interval;
}

Verdict readVerdict(const json &value, const JsonPath &path)
{
    JsonReader reader(value, path);
    Verdict verdict;
    verdict.status = readEnum<VerdictStatus>(reader, "status", statusNames);
    verdict.stage = readEnum<Stage>(reader, "stage", stageNames);
    verdict.reason = reader.text("reason");
    verdict.message = reader.optionalText("message");
    verdict.hint = reader.optionalText("hint");
    verdict.log = reader.optionalText("log", maxLogBytes);
    if (const json *list = reader.optionalArray("evidence", maxEvidence)) {
        for (std::size_t i = 0; i < list->size(); ++i) {
            JsonReader fact((*list)[i], childPath(reader.pathOf("evidence"), std::to_string(i)));
            std::string name = fact.text("name");
            verdict.evidence.push_back({std::move(name), fact.text("value")});
            fact.finish();
        }
    }
    if (const json *list = reader.optionalArray("comparisons", maxComparisons)) {
        for (std::size_t i = 0; i < list->size(); ++i) {
            const JsonPath at = childPath(reader.pathOf("comparisons"), std::to_string(i));
            verdict.comparisons.push_back(readComparison((*list)[i], at));
        }
    }
    reader.finish();
    return verdict;
}

/// A candidate's words stand in verdicts; what is written is never longer than what is read.
std::string cut(const std::string &text)
{
    constexpr std::string_view mark = " …";
    if (text.size() <= files::maxJsonText)
        return text;
    std::size_t end = files::maxJsonText - mark.size();
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80)
        --end;
    return text.substr(0, end).append(mark);
}

files::OrderedJson writeVerdict(const Verdict &verdict)
{
    files::OrderedJson out{
        {"status", toString(verdict.status)}, {"stage", toString(verdict.stage)}, {"reason", verdict.reason}};
    files::setUnlessEmpty(out, "message", cut(verdict.message));
    for (const Evidence &fact : verdict.evidence)
        out["evidence"].push_back({{"name", cut(fact.name)}, {"value", cut(fact.value)}});
    for (const Comparison &comparison : verdict.comparisons) {
        files::OrderedJson entry{{"against", comparison.against}};
        files::setUnlessEmpty(entry, "subject", comparison.subject);
        entry["speedup"] = writeInterval(comparison.speedup);
        entry["other_ns"] = comparison.otherNs;
        entry["change"] = toString(comparison.change);
        out["comparisons"].push_back(std::move(entry));
    }
    files::setUnlessEmpty(out, "hint", verdict.hint);
    files::setUnlessEmpty(out, "log", verdict.log);
    return out;
}

void to_json(json &out, const Verdict &verdict)
{
    out = writeVerdict(verdict);
}

void from_json(const json &value, Verdict &verdict)
{
    rethrowAsJson([&] { verdict = readVerdict(value, {}); });
}

} // namespace klineage::gate
