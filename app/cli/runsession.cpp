// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/runsession.h"

#include "core/base/numbertext.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <iterator>
#include <sstream>

#include <unistd.h>

namespace klineage::cli {

using nlohmann::json;
namespace fs = std::filesystem;

tl::expected<fs::path, int> findRun(const Session &session, const std::string &name)
{
    std::error_code ignored;
    if (fs::exists(fs::path(name) / "run.toml", ignored))
        return fs::path(name);
    const Result<fs::path> root = session.workspaceRoot();
    if (!root)
        return tl::unexpected(session.fail(root.error()));
    const fs::path directory = *root / "runs" / name;
    if (run::isRunId(name) && fs::exists(directory / "run.toml", ignored))
        return directory;
    std::vector<std::string> known;
    for (const run::RunRecord &record : run::readRuns(*root / "runs"))
        known.push_back(record.settings.id);
    return tl::unexpected(session.unknownName("run", name, known));
}

RunPrinter::RunPrinter(int quietUpTo, std::string prefix)
    : m_quietUpTo(quietUpTo)
    , m_prefix(std::move(prefix))
    , m_isTerminal(::isatty(STDERR_FILENO) != 0)
{}

run::Watcher RunPrinter::watcher()
{
    run::Watcher watcher;
    watcher.begins = [this](const std::string &what) { busy(what); };
    watcher.gateProgress = [this](const gate::GateProgress &progress) {
        busy(std::string(gate::toString(progress.stage)) + ": " + progress.text);
    };
    watcher.notice = [this](const std::string &text) { notice(text); };
    watcher.stepped = [this](const run::StepRecord &step) { stepped(step); };
    return watcher;
}

void RunPrinter::clear() const
{
    if (m_isTerminal)
        std::fprintf(stderr, "\r\033[K");
}

void RunPrinter::busy(const std::string &what) const
{
    if (m_isTerminal)
        std::fprintf(stderr, "\r\033[K%s%.100s", m_prefix.c_str(), what.c_str());
}

void RunPrinter::notice(const std::string &text) const
{
    clear();
    std::fprintf(stderr, "%s%s\n", m_prefix.c_str(), text.c_str());
}

void RunPrinter::stepped(const run::StepRecord &step) const
{
    if (step.number <= m_quietUpTo)
        return;
    clear();
    std::string line = fmt::format("{}[{}] {}: {}", m_prefix, step.number, step.action, step.outcome);
    if (step.speedup > 0)
        line += ", " + formatFactor(step.speedup);
    if (step.best > 0)
        line += ", best " + formatFactor(step.best);
    if (!step.exchanges.empty())
        line += ", " + formatDollars(step.totalDollars);
    std::fprintf(stderr, "%s. %s\n", line.c_str(), step.reason.c_str());
}

run::GateFunction gateOf(gate::GatePool &pool)
{
    return [&pool](const gate::GateRequest &request, std::stop_token stop,
                   const gate::ProgressCallback &progress) {
        return pool.run(request, std::move(stop), progress);
    };
}

std::string formatDollars(double dollars)
{
    return '$' + fixedText(dollars, 4);
}

std::string formatFactor(double speedup)
{
    return speedup <= 0 ? "–" : fixedText(speedup, 3) + "×";
}

json stepJson(const run::StepRecord &step)
{
    return json::parse(run::writeStep(step));
}

json summaryJson(const run::RunRecord &record)
{
    const run::Summary summary = run::summarize(record);
    const run::Settings &settings = record.settings;
    const auto textOrNull = [](const std::string &text) { return text.empty() ? json() : json(text); };
    return {{"run", settings.id},
            {"directory", record.directory.string()},
            {"kind", run::toString(settings.kind)},
            {"workload", textOrNull(settings.workload)},
            {"platform", textOrNull(settings.platform)},
            {"policy", textOrNull(settings.policy)},
            {"subject", textOrNull(settings.subject)},
            {"provider", textOrNull(settings.provider)},
            {"model", textOrNull(settings.model)},
            {"seed", settings.seed},
            {"created", textOrNull(settings.created)},
            {"state", record.state},
            {"ending", textOrNull(record.ending.text())},
            {"reference", textOrNull(summary.reference.name)},
            {"root_speedup", summary.rootSpeedup},
            {"best", summary.best},
            {"final_speedup", summary.finalSpeedup},
            {"improved", summary.improved},
            {"audited", summary.audited},
            {"candidate", textOrNull(summary.candidate)},
            {"trial", textOrNull(summary.trial)},
            {"steps", record.steps.size()},
            {"questions", summary.questions},
            {"valid", summary.valid},
            {"failed", summary.failed},
            {"wrappers", summary.wrappers},
            {"dollars", summary.dollars},
            {"load_dollars", summary.loadDollars},
            {"cap_dollars", settings.capDollars}};
}

void printSummary(const run::RunRecord &record)
{
    const run::Summary summary = run::summarize(record);
    const run::Settings &settings = record.settings;
    std::printf("Run %s: %s%s%s\n", settings.id.c_str(), record.state.c_str(),
                record.ending.code.empty() ? "" : ", ", record.ending.text().c_str());
    std::printf("  %s of %s, %s, %s%s%s\n", run::toString(settings.kind), settings.subject.c_str(),
                settings.policy.empty() ? "no policy" : settings.policy.c_str(), settings.provider.c_str(),
                settings.model.empty() ? "" : " ", settings.model.c_str());
    if (settings.kind == run::Kind::Materialize && summary.rootSpeedup > 0) {
        std::printf("  Speedup against %s: root %s, best %s, final %s%s\n", summary.reference.name.c_str(),
                    formatFactor(summary.rootSpeedup).c_str(), formatFactor(summary.best).c_str(),
                    formatFactor(summary.finalSpeedup).c_str(), summary.audited ? " (gated again)" : "");
        if (summary.improved)
            std::printf("  Candidate %s\n",
                        run::candidateFileName(
                            summary.candidate,
                            kernel::surfaceFromString(settings.surface).value_or(kernel::Surface()))
                            .c_str());
    }
    std::printf("  %d questions: %d valid, %d failed, %d wrappers; %s of %s\n", summary.questions,
                summary.valid, summary.failed, summary.wrappers, formatDollars(summary.dollars).c_str(),
                formatDollars(settings.capDollars).c_str());
    for (const std::string &notice : record.notices)
        std::printf("  Note: %s\n", notice.c_str());
}

} // namespace klineage::cli
