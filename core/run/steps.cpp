// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/run/runfiles.h"

#include "core/files/jsonreader.h"
#include "core/files/jsontext.h"
#include "core/files/sha256.h"

#include <limits>

namespace klineage::run {

using files::JsonReader;
using nlohmann::json;

namespace {

constexpr std::size_t maxList = 4096;

std::string readSha(JsonReader &reader, const char *key)
{
    std::string sha = reader.optionalText(key, 256);
    if (!sha.empty() && !files::isSha256Hex(sha))
        reader.refuse(key, "is no sha-256; 64 lower-case hex digits were expected");
    return sha;
}

int readPositive(const json &value, const files::JsonPath &path)
{
    const std::int64_t number = files::readInteger(value, path);
    if (number < 1 || number > std::numeric_limits<int>::max())
        throw files::JsonFormatError{path, path.back() + " is no number from 1"};
    return static_cast<int>(number);
}

double readAmount(JsonReader &reader, const char *key)
{
    const double amount = reader.optionalNumber(key, 0);
    if (amount < 0)
        reader.refuse(key, "is negative");
    return amount;
}

StepRecord readStep(const json &value)
{
    JsonReader reader(value, {});
    StepRecord step;
    step.number = readPositive(reader.require("step"), reader.pathOf("step"));
    step.time = reader.text("time", 256);
    step.action = reader.text("action", 64);
    step.title = reader.optionalText("title");
    step.outcome = reader.text("outcome", 64);
    step.reason = reader.optionalText("reason");
    step.candidate = readSha(reader, "candidate");
    step.parent = readSha(reader, "parent");
    step.trial = reader.optionalText("trial", 64);
    if (const json *list = reader.optionalArray("exchanges", maxList)) {
        for (const json &number : *list)
            step.exchanges.push_back(readPositive(number, reader.pathOf("exchanges")));
    }
    if (const json *list = reader.optionalArray("cards", maxList)) {
        for (const json &card : *list)
            step.cards.push_back(files::readText(card, reader.pathOf("cards"), 256));
    }
    step.dollars = readAmount(reader, "dollars");
    step.totalDollars = readAmount(reader, "total_dollars");
    step.speedup = readAmount(reader, "speedup");
    step.best = readAmount(reader, "best");
    reader.finish();
    return step;
}

/// What every log of a run has in common: a missing file is empty, a torn last line is left out and said.
Result<files::Lines> readLog(const std::filesystem::path &file, std::vector<std::string> *notices)
{
    Result<files::Lines> lines = files::readLines(file);
    if (!lines && lines.error().code == ErrorCode::NotFound)
        return files::Lines();
    if (lines && lines->tornTail && notices)
        notices->push_back("The last line of '" + file.string() + "' was cut short and is left out.");
    return lines;
}

} // namespace

std::string writeStep(const StepRecord &step)
{
    files::OrderedJson out{{"step", step.number}, {"time", step.time}, {"action", step.action}};
    files::setUnlessEmpty(out, "title", step.title);
    out["outcome"] = step.outcome;
    files::setUnlessEmpty(out, "reason", step.reason);
    files::setUnlessEmpty(out, "candidate", step.candidate);
    files::setUnlessEmpty(out, "parent", step.parent);
    files::setUnlessEmpty(out, "trial", step.trial);
    if (!step.exchanges.empty())
        out["exchanges"] = step.exchanges;
    if (!step.cards.empty())
        out["cards"] = step.cards;
    if (step.speedup != 0)
        out["speedup"] = step.speedup;
    if (step.best != 0)
        out["best"] = step.best;
    out["dollars"] = step.dollars;
    out["total_dollars"] = step.totalDollars;
    return files::oneLine(out); // titles and reasons may quote a reply, which need not be UTF-8
}

Result<StepRecord> parseStep(std::string_view line, const std::string &where)
{
    return files::parseJsonLine(line, where, [](const json &value) { return readStep(value); });
}

Result<std::vector<StepRecord>> readSteps(const std::filesystem::path &directory,
                                          std::vector<std::string> *notices)
{
    const std::filesystem::path file = directory / stepsFile;
    const Result<files::Lines> lines = readLog(file, notices);
    if (!lines)
        return tl::unexpected(lines.error());
    if (lines->lines.size() > maxSteps)
        return fail(ErrorCode::InvalidInput,
                    file.string() + " has more than " + std::to_string(maxSteps) + " steps.");
    std::vector<StepRecord> steps;
    for (const files::Line &line : lines->lines) {
        const std::string where = file.string() + ':' + std::to_string(line.number);
        Result<StepRecord> step = parseStep(line.text, where);
        if (!step)
            return tl::unexpected(step.error());
        if (step->number != static_cast<int>(steps.size()) + 1)
            return fail(ErrorCode::InvalidInput, where + ":1: step " + std::to_string(step->number)
                                                     + " is out of order; expected step "
                                                     + std::to_string(steps.size() + 1) + '.');
        steps.push_back(std::move(*step));
    }
    return steps;
}

Result<std::vector<gate::Trial>> readTrials(const std::filesystem::path &directory,
                                            std::vector<std::string> *notices)
{
    const std::filesystem::path file = directory / trialsFile;
    const Result<files::Lines> lines = readLog(file, notices);
    if (!lines)
        return tl::unexpected(lines.error());
    std::vector<gate::Trial> trials;
    for (const files::Line &line : lines->lines) {
        Result<gate::Trial> trial =
            gate::parseTrial(line.text, file.string() + ':' + std::to_string(line.number));
        if (!trial)
            return tl::unexpected(trial.error());
        trials.push_back(std::move(*trial));
    }
    return trials;
}

} // namespace klineage::run
