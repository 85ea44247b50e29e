// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/report/report.h"

#include "core/base/suggest.h"
#include "core/report/subjectreports.h"

#include <algorithm>

namespace klineage::report {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view runPrefix = "run:";
constexpr std::string_view experimentPrefix = "experiment:";

/// The folder that holds `file`: the name itself, or a folder of that name below `shelf`.
std::optional<fs::path> folderWith(const char *file, const std::string &name, const fs::path &shelf)
{
    std::error_code ignored;
    const bool isPlain = name.find('/') == std::string::npos;
    for (const fs::path &folder : {fs::path(name), isPlain ? shelf / name : fs::path(name)}) {
        if (!name.empty() && fs::is_regular_file(folder / file, ignored))
            return folder;
    }
    return std::nullopt;
}

std::vector<std::string> foldersWith(const char *file, const fs::path &shelf, std::string_view prefix)
{
    std::vector<std::string> names;
    std::error_code ignored;
    for (fs::directory_iterator it(shelf, ignored), end; it != end; it.increment(ignored)) {
        if (fs::is_regular_file(it->path() / file, ignored))
            names.push_back(std::string(prefix) + it->path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
}

std::vector<std::string> knownNames(const Workspace &workspace, std::string_view asked)
{
    const bool isPrefixed = asked.starts_with(runPrefix) || asked.starts_with(experimentPrefix);
    std::vector<std::string> known = workspace.lineageKeys();
    for (const auto &[file, shelf, prefix] :
         {std::tuple("run.toml", workspace.root / "runs", runPrefix),
          std::tuple("experiment.toml", workspace.root / "experiments", experimentPrefix)}) {
        for (std::string &name : foldersWith(file, shelf, isPrefixed ? prefix : std::string_view()))
            known.push_back(std::move(name));
    }
    return known;
}

} // namespace

Result<Subject> findSubject(const Workspace &workspace, const std::string &name)
{
    Subject subject;
    if (const lineage::Lineage *lineage = workspace.findLineage(name)) {
        subject.lineage = lineage;
        return subject;
    }
    const bool isRun = name.starts_with(runPrefix);
    const bool isExperiment = name.starts_with(experimentPrefix);
    const std::string bare = name.substr(isRun          ? runPrefix.size()
                                         : isExperiment ? experimentPrefix.size()
                                                        : 0);
    if (const auto folder = folderWith("run.toml", bare, workspace.root / "runs"); folder && !isExperiment) {
        Result<run::RunRecord> record = run::readRun(*folder);
        if (!record)
            return tl::unexpected(record.error());
        subject.run = std::move(*record);
        return subject;
    }
    if (const auto folder = folderWith("experiment.toml", bare, workspace.root / "experiments");
        folder && !isRun) {
        Result<run::Experiment> experiment = run::readExperiment(*folder);
        if (!experiment)
            return tl::unexpected(experiment.error());
        subject.experiment = std::move(*experiment);
        return subject;
    }
    return fail(ErrorCode::NotFound,
                noSuchName("lineage, run or experiment", name, knownNames(workspace, name)));
}

Document makeReport(const Workspace &workspace, const Subject &subject)
{
    if (subject.lineage)
        return lineageReport(workspace, *subject.lineage);
    if (subject.run)
        return runReport(*subject.run);
    return experimentReport(*subject.experiment);
}

} // namespace klineage::report
