// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/batchrecord.h"

#include "core/files/jsonlines.h"
#include "core/files/jsonreader.h"
#include "core/kernel/candidate.h"

#include <nlohmann/json.hpp>

#include <optional>

namespace klineage::cli {

using nlohmann::json;

namespace {

struct Line {
    std::optional<gate::Trial> trial;
    std::string candidateText;
    std::string error; ///< why the batch has no trial for it
};

Result<Line> parseLine(const std::string &line, const std::string &where)
{
    json value = json::parse(line, nullptr, false);
    if (!value.is_object() || (!value.contains("trial") && !value.contains("error"))) {
        Result<gate::Trial> trial = gate::parseTrial(line, where);
        if (!trial)
            return tl::unexpected(trial.error());
        return Line{std::move(*trial), {}, {}};
    }
    return files::parseJsonLine(line, where, [](const json &object) {
        files::JsonReader reader(object, {});
        Line read;
        static_cast<void>(reader.optionalText("id")); // of the batch, not of the trial
        read.candidateText = reader.optionalText("text", kernel::maxCandidateBytes);
        if (const json *error = reader.find("error"))
            read.error =
                error->is_object() && error->contains("message") ? (*error)["message"].dump() : error->dump();
        if (const json *trial = reader.find("trial"); trial && !trial->is_null())
            read.trial = trial->get<gate::Trial>();
        reader.finish();
        return read;
    });
}

} // namespace

Result<BatchOutput> readBatchOutput(const std::string &file)
{
    const Result<files::Lines> lines = files::readLines(file);
    if (!lines)
        return tl::unexpected(lines.error());
    BatchOutput output;
    for (const files::Line &line : lines->lines) {
        const std::string where = file + ':' + std::to_string(line.number);
        Result<Line> read = parseLine(line.text, where);
        if (!read)
            output.problems.push_back(read.error().message);
        else if (!read->trial)
            output.problems.push_back(where + ": the batch has no trial here: " + read->error);
        else
            output.records.push_back({std::move(*read->trial), std::move(read->candidateText), where});
    }
    if (lines->tornTail)
        output.problems.push_back(file + ':' + std::to_string(lines->tornTail->number)
                                  + ": the last line is cut short and was left out.");
    return output;
}

} // namespace klineage::cli
