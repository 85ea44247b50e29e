// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trial/batchfile.h"

#include "core/files/atomicfile.h"
#include "core/files/formatnumber.h"
#include "core/files/jsonlines.h"
#include "core/kernel/candidatetext.h"
#include "core/trial/requestjson.h"

namespace klineage::gate {

namespace {

using nlohmann::json;

Result<BatchItem> readItem(const files::Line &line, const std::string &file, const GateRequest &defaults)
{
    const std::string where = file + ":" + std::to_string(line.number) + ": ";
    const json in = json::parse(line.text, nullptr, false);
    if (!in.is_object())
        return fail(ErrorCode::InvalidInput, where + "expected a JSON object.");
    if (in.contains("format")) {
        const std::string written =
            in["format"].is_string() ? in["format"].get<std::string>() : in["format"].dump();
        if (const std::string problem = files::formatProblem(files::parseFormatNumber(written), written);
            !problem.empty())
            return fail(ErrorCode::InvalidInput, where + problem);
    }
    BatchItem item;
    item.request = defaults;
    if (auto settings = protocol::readSettings(
            in, {"id", "workload", "candidate", "parent", "name", "format"}, item.request);
        !settings)
        return fail(ErrorCode::InvalidInput, where + settings.error().message);
    try {
        item.id = in.at("id").get<std::string>();
        item.workload = in.at("workload").get<std::string>();
        item.candidate = in.at("candidate").get<std::string>();
        item.parent = in.value("parent", "");
        item.request.candidateName = in.value("name", item.candidate.filename().string());
    } catch (const json::exception &problem) {
        return fail(ErrorCode::InvalidInput,
                    where + "\"id\", \"workload\" and \"candidate\" are required strings: " + problem.what()
                        + ".");
    }
    return item;
}

} // namespace

Result<std::vector<BatchItem>> readBatch(const std::filesystem::path &in, const GateRequest &defaults)
{
    const auto lines = files::readLines(in);
    if (!lines)
        return tl::unexpected(lines.error());
    std::vector<BatchItem> items;
    std::set<std::string> ids;
    auto all = lines->lines;
    if (lines->tornTail)
        all.push_back(*lines->tornTail);
    for (const files::Line &line : all) {
        auto item = readItem(line, in.string(), defaults);
        if (!item)
            return tl::unexpected(item.error());
        if (!ids.insert(item->id).second)
            return fail(ErrorCode::InvalidInput, in.string() + ":" + std::to_string(line.number)
                                                     + ": the id \"" + item->id + "\" is used twice.");
        items.push_back(std::move(*item));
    }
    return items;
}

Result<std::set<std::string>> finishedOfBatch(const std::filesystem::path &out)
{
    std::set<std::string> ids;
    const auto lines = files::readLines(out);
    if (!lines && lines.error().code == ErrorCode::NotFound)
        return ids;
    if (!lines)
        return tl::unexpected(lines.error());
    for (const files::Line &line : lines->lines) {
        const json entry = json::parse(line.text, nullptr, false);
        if (!entry.is_object() || !entry.contains("id") || !entry["id"].is_string())
            return fail(ErrorCode::InvalidInput,
                        out.string() + ":" + std::to_string(line.number)
                            + ": is no line of a batch; expected {\"id\", \"trial\"}. Choose another --out.");
        if (entry.contains("trial"))
            ids.insert(entry["id"].get<std::string>());
    }
    return ids;
}

Status readTexts(BatchItem &item)
{
    auto candidate = kernel::readCandidateText(item.candidate);
    if (!candidate)
        return tl::unexpected(candidate.error());
    item.request.candidateText = std::move(*candidate);
    item.request.workloadDirectory = item.workload;
    if (item.parent.empty())
        return {};
    auto parent = kernel::readCandidateText(item.parent);
    if (!parent)
        return tl::unexpected(parent.error());
    item.request.parentText = std::move(*parent);
    return {};
}

Status appendToBatch(const std::filesystem::path &out, const std::string &id, const Result<Trial> &trial)
{
    json line = {{"id", id}};
    if (trial)
        line["trial"] = carryTrial(*trial);
    else
        line["error"] = {{"code", toString(trial.error().code)},
                         {"message", trial.error().message},
                         {"detail", trial.error().detail}};
    return files::appendLine(out, line.dump(-1, ' ', false, json::error_handler_t::replace));
}

std::string batchReport(const std::string &id, const Result<Trial> &trial)
{
    return id + ": "
           + (trial ? std::string(toString(trial->verdict.status)) + ". " + trial->verdict.message
                    : trial.error().message);
}

} // namespace klineage::gate
