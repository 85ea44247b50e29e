// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/session/sanitizer.h"

#include "core/base/random.h"
#include "core/gate/check/correctness.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <regex>
#include <sstream>

namespace klineage::gate {

namespace {

namespace fs = std::filesystem;

constexpr double startLimitSeconds = 60;
constexpr double toolLimitSeconds = 60;
const char *const tools[] = {"memcheck", "racecheck", "initcheck", "synccheck"};
const std::string mark = "========= ";

std::vector<std::string> commandOf(const std::string &program, const char *tool,
                                   const std::vector<std::string> &workerCommand)
{
    std::vector<std::string> command{program, "--tool",        tool, "--report-api-errors",
                                     "no",    "--print-limit", "5"};
    command.insert(command.end(), workerCommand.begin(), workerCommand.end());
    // The sanitizer would read this link as itself.
    std::error_code problem;
    auto &worker = command[command.size() - workerCommand.size()];
    if (worker == "/proc/self/exe")
        worker = fs::read_symlink(worker, problem).string();
    return command;
}

const workload::Case &smallestCase(const workload::Workload &workload)
{
    const auto bytesOf = [&](const workload::Case &c) {
        std::int64_t bytes = 0;
        if (const auto buffers = workload.buffersOf(c)) {
            for (const auto &buffer : *buffers)
                bytes += buffer.bytes();
        }
        return bytes;
    };
    return *std::min_element(workload.cases.begin(), workload.cases.end(),
                             [&](const auto &a, const auto &b) { return bytesOf(a) < bytesOf(b); });
}

StageResult<void> runOnce(PreparedCandidate &prepared, const TrialContext &context)
{
    const workload::Case &theCase = smallestCase(context.job.workload);
    Where where;
    where.caseName = theCase.name;
    where.seed = entropy();
    const auto instance = context.instance(theCase, where.seed);
    if (!instance)
        return tl::unexpected<TrialEnd>(instance.error());
    const auto module = loadCandidate(prepared, context);
    if (!module)
        return tl::unexpected(module.error());
    const auto plan = resolveFor(prepared, context, theCase);
    if (!plan)
        return tl::unexpected(plan.error());
    CheckedSet set(context.session, *instance);
    if (auto allocated = set.allocateTensors(); !allocated)
        return tl::unexpected(environmentEnd(allocated.error()));
    const auto bindings = set.addPlan(*plan);
    if (!bindings)
        return tl::unexpected(failureEnd(bindings.error(), where));
    const auto subject = context.session.addPlan(*module, *plan, {*bindings});
    if (!subject)
        return tl::unexpected(failureEnd(subject.error(), where));
    if (auto armed = set.arm(Fill::Garbage); !armed)
        return tl::unexpected(environmentEnd(armed.error()));
    if (auto ran = context.session.run(*subject, 0, toolLimitSeconds); !ran)
        return tl::unexpected(failureEnd(ran.error(), where));
    return {};
}

Verdict sanitizerVerdict(const SanitizerReport &report, const std::string &caseName)
{
    Verdict verdict;
    verdict.status = VerdictStatus::Unsafe;
    verdict.stage = Stage::Correctness;
    verdict.reason = "sanitizer_" + report.tool;
    verdict.message = "compute-sanitizer's " + report.tool + " found " + std::to_string(report.errors)
                      + (report.errors == 1 ? " error" : " errors") + " (case " + caseName
                      + "): " + report.first;
    verdict.evidence = {{"tool", report.tool}, {"errors", std::to_string(report.errors)}, {"case", caseName}};
    verdict.hint = report.tool == "racecheck" ? "Put a barrier between writing shared memory and reading it."
                   : report.tool == "initcheck"
                       ? "Write memory before it is read: outputs and workspaces hold nothing."
                   : report.tool == "synccheck" ? "Every thread that a barrier counts has to reach it."
                                                : "Guard the access at the edges of the shape.";
    return verdict;
}

} // namespace

std::optional<SanitizerReport> readSanitizerLog(const std::string &tool, const std::string &log)
{
    static const std::regex errors("ERROR SUMMARY: ([0-9]{1,9}) error");
    static const std::regex hazards("RACECHECK SUMMARY: [0-9]{1,9} hazards? displayed \\(([0-9]{1,9}) error");
    SanitizerReport report{tool, -1, {}};
    std::istringstream lines(log);
    int following = 0;
    for (std::string line; std::getline(lines, line);) {
        if (line.rfind(mark, 0) != 0)
            continue;
        line = line.substr(mark.size(), 300);
        std::smatch match;
        if (std::regex_search(line, match, errors) || std::regex_search(line, match, hazards)) {
            report.errors = std::stoi(match[1]);
            continue;
        }
        const bool begins = line.rfind("COMPUTE-SANITIZER", 0) != 0 && line.rfind(' ', 0) != 0
                            && line.find("SUMMARY") == std::string::npos
                            && line.rfind("Target application", 0) != 0;
        if (report.first.empty() && begins) {
            report.first = line;
            following = 1; // the line after it says which kernel
        } else if (following-- == 1 && line.rfind(' ', 0) == 0) {
            report.first += " " + line.substr(line.find_first_not_of(' '));
        }
    }
    if (report.errors < 0)
        return std::nullopt;
    if (report.errors == 0)
        report.first.clear();
    return report;
}

std::string findSanitizer()
{
    std::vector<fs::path> folders;
    if (const char *path = std::getenv("PATH")) {
        std::istringstream parts(path);
        for (std::string part; std::getline(parts, part, ':');)
            folders.emplace_back(part);
    }
    if (const char *toolkit = std::getenv("CUDA_PATH"))
        folders.push_back(fs::path(toolkit) / "bin");
    folders.emplace_back("/usr/local/cuda/bin");
    for (const fs::path &folder : folders) {
        std::error_code ignored;
        if (folder.is_absolute() && fs::is_regular_file(folder / "compute-sanitizer", ignored))
            return (folder / "compute-sanitizer").string();
    }
    return {};
}

StageResult<void> sanitize(PreparedCandidate &prepared, const std::vector<std::string> &workerCommand,
                           const TrialContext &context, Trial &trial)
{
    const auto note = [&](const std::string &text) { trial.verdict.evidence.push_back({"sanitizer", text}); };
    const std::string program = findSanitizer();
    if (program.empty()) {
        note("not run: compute-sanitizer is not installed");
        return {};
    }
    const std::string caseName = smallestCase(context.job.workload).name;
    std::string clean;
    for (const char *tool : tools) {
        context.report(Stage::Correctness, -1, std::string("compute-sanitizer, ") + tool);
        auto session =
            WorkerSession::start(commandOf(program, tool, workerCommand), prepared.candidate.surface->device,
                                 startLimitSeconds, context.stop, Confinement::LimitsOnly);
        if (!session) {
            if (session.error().kind == FailureKind::Cancelled)
                return tl::unexpected(environmentEnd(session.error()));
            note(std::string(tool) + " not run: " + session.error().error.message);
            continue;
        }
        (*session)->beginTrial(context.stop, context.deadline);
        TrialContext mine{context.job,      **session,        context.stop,     context.progress,
                          context.deadline, toolLimitSeconds, context.instance, {}};
        const auto ran = runOnce(prepared, mine);
        if (context.stop.stop_requested())
            return tl::unexpected<TrialEnd>(Error{ErrorCode::Cancelled, "The trial was cancelled.", {}});
        const auto report = readSanitizerLog(tool, (*session)->finish(startLimitSeconds));
        if (report && report->errors > 0)
            return tl::unexpected<TrialEnd>(sanitizerVerdict(*report, caseName));
        if (!report || !ran) {
            note(std::string(tool) + " did not come to an end");
            continue;
        }
        clean += (clean.empty() ? "" : ", ") + std::string(tool);
    }
    if (!clean.empty())
        note("clean: " + clean + " (case " + caseName + ")");
    return {};
}

} // namespace klineage::gate
