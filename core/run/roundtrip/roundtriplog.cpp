// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/run/roundtrip/roundtriplog.h"

#include "core/files/jsonlines.h"
#include "core/files/jsonreader.h"
#include "core/files/jsontext.h"

#include <algorithm>
#include <map>
#include <system_error>

namespace klineage::run {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

const char *const logFile = "log.jsonl";
constexpr std::size_t mostCards = 200;
constexpr std::size_t mostReplies = 10'000;

RoundtripLine readRoundtripLine(const json &object)
{
    files::JsonReader reader(object, {});
    RoundtripLine line;
    line.arm = reader.text("arm");
    line.trial = static_cast<int>(std::clamp<std::int64_t>(reader.integer("trial"), 1, 1000));
    line.number = static_cast<int>(std::clamp<std::int64_t>(reader.integer("try"), 0, 1000));
    line.provider = reader.text("provider");
    if (const json *cards = reader.optionalArray("cards", mostCards)) {
        for (const json &card : *cards)
            line.cards.push_back(files::readText(card, reader.pathOf("cards")));
    }
    line.prompt = reader.text("prompt");
    line.reply = reader.text("reply");
    line.file = reader.optionalText("file");
    line.outcome = reader.text("outcome");
    line.reason = reader.optionalText("reason");
    if (reader.find("share"))
        line.share = reader.number("share");
    line.trialId = reader.optionalText("trial_id");
    reader.finish();
    return line;
}

} // namespace

fs::path roundtripFolder(const fs::path &lineageDirectory)
{
    return lineageDirectory / "roundtrip";
}

Status appendRoundtrip(const fs::path &lineageDirectory, const RoundtripLine &line)
{
    std::error_code ignored;
    fs::create_directories(roundtripFolder(lineageDirectory), ignored);
    files::OrderedJson out;
    out["arm"] = line.arm;
    out["trial"] = line.trial;
    out["try"] = line.number;
    out["provider"] = line.provider;
    out["cards"] = line.cards;
    out["prompt"] = line.prompt;
    out["reply"] = line.reply;
    files::setUnlessEmpty(out, "file", line.file);
    out["outcome"] = line.outcome;
    files::setUnlessEmpty(out, "reason", line.reason);
    if (line.share)
        out["share"] = *line.share;
    files::setUnlessEmpty(out, "trial_id", line.trialId);
    return files::appendLine(roundtripFolder(lineageDirectory) / logFile, files::oneLine(out));
}

Result<std::vector<RoundtripLine>> readRoundtrips(const fs::path &lineageDirectory)
{
    const fs::path path = roundtripFolder(lineageDirectory) / logFile;
    const Result<files::Lines> lines = files::readLines(path);
    std::vector<RoundtripLine> log;
    if (!lines && lines.error().code == ErrorCode::NotFound)
        return log;
    if (!lines)
        return tl::unexpected(lines.error());
    if (lines->lines.size() > mostReplies)
        return fail(ErrorCode::InvalidInput,
                    path.string() + " has more than " + std::to_string(mostReplies) + " replies.");
    for (const files::Line &line : lines->lines) {
        Result<RoundtripLine> read = files::parseJsonLine(
            line.text, path.string() + ':' + std::to_string(line.number), readRoundtripLine);
        if (!read)
            return tl::unexpected(read.error());
        log.push_back(std::move(*read));
    }
    return log;
}

std::vector<RoundtripCount> countRoundtrips(const std::vector<RoundtripLine> &lines)
{
    struct Best {
        double share = 0;
        bool recovered = false;
        bool first = false;
    };
    std::map<std::string, std::map<int, Best>> arms;
    std::vector<std::string> order;
    for (const RoundtripLine &line : lines) {
        if (std::find(order.begin(), order.end(), line.arm) == order.end())
            order.push_back(line.arm);
        Best &best = arms[line.arm][line.trial];
        best.share = std::max(best.share, line.share.value_or(0));
        if (line.outcome == "recovered") {
            best.recovered = true;
            best.first = best.first || line.number == 0;
        }
    }
    std::vector<RoundtripCount> counts;
    for (const std::string &arm : order) {
        RoundtripCount count{arm};
        std::vector<double> shares;
        for (const auto &[trial, best] : arms[arm]) {
            ++count.trials;
            count.correct += best.share > 0 ? 1 : 0;
            count.recovered += best.recovered ? 1 : 0;
            count.first += best.first ? 1 : 0;
            shares.push_back(best.share);
        }
        std::sort(shares.begin(), shares.end());
        const std::size_t middle = shares.size() / 2;
        count.medianShare =
            shares.size() % 2 == 1 ? shares[middle] : 0.5 * (shares[middle - 1] + shares[middle]);
        counts.push_back(count);
    }
    return counts;
}

} // namespace klineage::run
