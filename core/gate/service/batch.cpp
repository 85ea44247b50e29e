// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/service/batch.h"

#include "core/files/atomicfile.h"
#include "core/files/jsonlines.h"
#include "core/kernel/candidatetext.h"
#include "core/process/deadline.h"
#include "core/trial/requestjson.h"

#include <set>

namespace klineage::gate {

namespace {

using nlohmann::json;

struct Item {
    std::string id;
    std::filesystem::path workload;
    std::filesystem::path candidate;
    std::filesystem::path parent;
    GateRequest request;
};

Result<Item> readItem(const files::Line &line, const std::string &file, const GateRequest &defaults)
{
    const std::string where = file + ":" + std::to_string(line.number) + ": ";
    const json in = json::parse(line.text, nullptr, false);
    if (!in.is_object())
        return fail(ErrorCode::InvalidInput, where + "expected a JSON object.");
    Item item;
    item.request = defaults;
    if (auto settings =
            protocol::readSettings(in, {"id", "workload", "candidate", "parent", "name"}, item.request);
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

Result<std::vector<Item>> readItems(const BatchOptions &options)
{
    const auto lines = files::readLines(options.in);
    if (!lines)
        return tl::unexpected(lines.error());
    std::vector<Item> items;
    std::set<std::string> ids;
    auto all = lines->lines;
    if (lines->tornTail)
        all.push_back(*lines->tornTail);
    for (const files::Line &line : all) {
        auto item = readItem(line, options.in.string(), options.defaults);
        if (!item)
            return tl::unexpected(item.error());
        if (!ids.insert(item->id).second)
            return fail(ErrorCode::InvalidInput, options.in.string() + ":" + std::to_string(line.number)
                                                     + ": the id \"" + item->id + "\" is used twice.");
        items.push_back(std::move(*item));
    }
    return items;
}

/// Ids that have a trial in the out file already.
Result<std::set<std::string>> finishedIds(const std::filesystem::path &out)
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

/// The next few that are not done yet are compiled while this one is measured.
void compileAhead(const std::vector<Item> &items, std::size_t after, const std::set<std::string> &finished,
                  Supervisor &supervisor)
{
    int wanted = 2;
    for (std::size_t i = after + 1; i < items.size() && wanted > 0; ++i) {
        if (finished.contains(items[i].id))
            continue;
        --wanted;
        GateRequest request = items[i].request;
        if (auto text = kernel::readCandidateText(items[i].candidate)) {
            request.candidateText = std::move(*text);
            supervisor.compileAhead(request);
        }
    }
}

Result<Trial> gateItem(const Item &item, Supervisor &supervisor, const std::stop_token &stop)
{
    GateJob job;
    job.request = item.request;
    auto workload = workload::readWorkload(item.workload);
    if (!workload)
        return tl::unexpected(workload.error());
    job.workload = std::move(*workload);
    auto candidate = kernel::readCandidateText(item.candidate);
    if (!candidate)
        return tl::unexpected(candidate.error());
    job.request.candidateText = std::move(*candidate);
    if (!item.parent.empty()) {
        auto parent = kernel::readCandidateText(item.parent);
        if (!parent)
            return tl::unexpected(parent.error());
        job.request.parentText = std::move(*parent);
    }
    return supervisor.gate(job, stop);
}

} // namespace

Result<BatchSummary> runBatch(const BatchOptions &options, const std::stop_token &stop,
                              const std::function<void(const std::string &)> &say)
{
    const auto items = readItems(options);
    if (!items)
        return tl::unexpected(items.error());
    const auto finished = finishedIds(options.out);
    if (!finished)
        return tl::unexpected(finished.error());
    const auto limit =
        options.limitSeconds > 0 ? process::Deadline::in(options.limitSeconds) : process::Deadline::never();
    Supervisor supervisor(options.supervisor);
    BatchSummary summary;
    for (std::size_t i = 0; i < items->size(); ++i) {
        const Item &item = (*items)[i];
        if (finished->contains(item.id)) {
            ++summary.skipped;
            continue;
        }
        if (limit.passed() || stop.stop_requested()) {
            ++summary.left;
            continue;
        }
        compileAhead(*items, i, *finished, supervisor);
        const auto trial = gateItem(item, supervisor, stop);
        if (!trial && trial.error().code == ErrorCode::Cancelled) {
            ++summary.left;
            continue;
        }
        json line = {{"id", item.id}};
        if (trial)
            line["trial"] = carryTrial(*trial);
        else
            line["error"] = {{"code", toString(trial.error().code)},
                             {"message", trial.error().message},
                             {"detail", trial.error().detail}};
        if (auto written =
                files::appendLine(options.out, line.dump(-1, ' ', false, json::error_handler_t::replace));
            !written)
            return tl::unexpected(written.error());
        ++(trial ? summary.done : summary.failed);
        say(item.id + ": "
            + (trial ? std::string(toString(trial->verdict.status)) + ". " + trial->verdict.message
                     : trial.error().message));
    }
    return summary;
}

} // namespace klineage::gate
