// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/run/drive/replaycheck.h"

#include "core/files/atomicfile.h"
#include "core/process/scratchfolder.h"

#include <algorithm>

namespace klineage::run {

namespace fs = std::filesystem;

namespace {

/// What ended the record after its last reply or trial, as an error; otherwise that there is no more.
Error endOfRecord(const RunRecord &recorded, const std::string &missing)
{
    if (recorded.ending.code == "budget")
        return {ErrorCode::Budget, recorded.ending.reason, {}};
    if (recorded.state != "finished")
        return {ErrorCode::Cancelled, "The record ends here.", {}};
    return {ErrorCode::NotFound, missing, {}};
}

/// Answers nothing: everything has to be in the transcript.
class NoProvider : public llm::Provider
{
public:
    explicit NoProvider(Error end)
        : m_end(std::move(end))
    {}
    [[nodiscard]] std::string name() const override { return "replay"; }
    [[nodiscard]] bool isPaid() const override { return false; }
    [[nodiscard]] tl::expected<llm::Reply, llm::ProviderFailure> ask(const llm::Request &, std::stop_token,
                                                                     const llm::TextCallback &) override
    {
        return tl::unexpected(llm::ProviderFailure{m_end, {}, false});
    }

private:
    Error m_end;
};

std::string withoutTime(StepRecord step)
{
    step.time.clear();
    return writeStep(step);
}

std::string firstDifference(const RunRecord &recorded, const std::vector<StepRecord> &now, ReplayCheck &check)
{
    const std::size_t common = std::min(recorded.steps.size(), now.size());
    for (std::size_t i = 0; i < common; ++i, ++check.steps) {
        if (withoutTime(recorded.steps[i]) != withoutTime(now[i]))
            return "Step " + std::to_string(i + 1) + " differs.\nRecorded: " + withoutTime(recorded.steps[i])
                   + "\nNow:      " + withoutTime(now[i]);
    }
    if (recorded.steps.size() != now.size())
        return "The record has " + std::to_string(recorded.steps.size()) + " steps; now there are "
               + std::to_string(now.size()) + '.';
    return {};
}

/// Everything but steps, ending and lock.
Status copyRun(const fs::path &from, const fs::path &to)
{
    std::error_code problem;
    fs::create_directories(to.parent_path(), problem);
    fs::copy(from, to, fs::copy_options::recursive, problem);
    for (const char *name : {"steps.jsonl", "ending.toml", ".lock"})
        fs::remove(to / name, problem);
    if (!fs::exists(to / "run.toml", problem))
        return fail(ErrorCode::Io, "Cannot copy the run in '" + from.string() + "' to a temporary folder.");
    return {};
}

/// Procedures other than materialization write lineages, cards and logs: theirs is a copy of the workspace.
Result<fs::path> workspaceFor(Kind kind, const fs::path &workspace, const fs::path &scratch)
{
    if (kind == Kind::Materialize)
        return workspace;
    const fs::path copy = scratch / "workspace";
    std::error_code problem;
    for (const char *folder : {"workloads", "skills"}) {
        fs::create_directories(copy / folder, problem);
        if (!problem && fs::exists(workspace / folder))
            fs::copy(workspace / folder, copy / folder, fs::copy_options::recursive, problem);
        if (problem)
            return fail(ErrorCode::Io, "Cannot copy '" + (workspace / folder).string()
                                           + "' to a temporary folder: " + problem.message() + '.');
    }
    return copy;
}

} // namespace

Result<ReplayCheck> checkReplay(const fs::path &workspace, const fs::path &runDirectory, std::stop_token stop)
{
    const Result<RunRecord> recorded = readRun(runDirectory);
    if (!recorded)
        return tl::unexpected(recorded.error());
    Result<process::ScratchFolder> scratch = process::ScratchFolder::create();
    if (!scratch)
        return tl::unexpected(scratch.error());
    const fs::path copy = scratch->path() / "runs" / recorded->settings.id;
    if (Status copied = copyRun(runDirectory, copy); !copied)
        return tl::unexpected(copied.error());
    Result<Journal> journal = Journal::open(copy);
    if (!journal)
        return tl::unexpected(journal.error());
    NoProvider provider(endOfRecord(*recorded, "The transcript has no reply to this question."));
    Result<llm::Author> author =
        llm::Author::open(copy, provider, llm::PriceTable(), recorded->settings.capDollars);
    if (!author)
        return tl::unexpected(author.error());
    const Error noTrial = endOfRecord(*recorded, "The record has no trial of this candidate.");
    const GateFunction noGate = [&noTrial](const gate::GateRequest &, std::stop_token,
                                           const gate::ProgressCallback &) -> Result<gate::Trial> {
        return tl::unexpected(noTrial);
    };
    const Result<fs::path> place = workspaceFor(recorded->settings.kind, workspace, scratch->path());
    if (!place)
        return tl::unexpected(place.error());
    Context context{*place, *journal, *author, noGate, stop, {}};
    const Result<Ending> ending = runProcedure(context);

    ReplayCheck check;
    check.recorded = static_cast<int>(recorded->steps.size());
    check.difference = firstDifference(*recorded, journal->steps(), check);
    if (const Result<RunRecord> now = readRun(copy))
        check.ending = now->ending;
    if (!check.ok() && !ending)
        check.difference += '\n' + ending.error().message + '\n' + ending.error().detail;
    const bool sameEnding = check.ending == recorded->ending || recorded->state != "finished";
    if (check.ok() && !sameEnding)
        check.difference =
            "The run ended with '" + recorded->ending.text() + "', now with '" + check.ending.text() + "'.";
    return check;
}

} // namespace klineage::run
