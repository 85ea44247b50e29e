// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/experiments/compare/comparedrun.h"

#include "ui/experiments/experimentfolders.h"

#include <algorithm>

namespace klineage::ui {

namespace fs = std::filesystem;

namespace {

/// The comparison that run::speedupOf() takes its value from; nullptr: it is a ratio of medians.
const gate::Comparison *pairedWith(const gate::Trial &trial, const run::Reference &reference)
{
    const bool isParent = !reference.candidate.empty() && trial.parent == reference.candidate;
    return trial.comparison(isParent ? "parent" : reference.name);
}

SpeedupFigure figureOf(double value, const gate::Trial *trial, const run::Reference &reference)
{
    SpeedupFigure figure;
    if (value <= 0)
        return figure;
    figure.value = value;
    figure.against = QString::fromStdString(reference.name);
    const gate::Comparison *paired = trial ? pairedWith(*trial, reference) : nullptr;
    // A step's speedup may be of an earlier trial than the one that is named: then it is not this comparison's.
    if (paired && paired->speedup.value == value) {
        figure.paired = true;
        figure.low = paired->speedup.low;
        figure.high = paired->speedup.high;
    }
    return figure;
}

/// The first valid step that has the run's best.
const run::StepRecord *bestStep(const RunEntry &run)
{
    const std::vector<run::StepRecord> &steps = run.record.steps;
    const auto found = std::find_if(steps.begin(), steps.end(), [&](const run::StepRecord &step) {
        return step.speedup > 0 && step.speedup == run.summary.best && step.outcome != "wrapper";
    });
    return found == steps.end() ? nullptr : &*found;
}

SpeedupFigure gainOfRun(const RunEntry &run)
{
    const run::Summary &summary = run.summary;
    SpeedupFigure gain;
    gain.against = QStringLiteral("root");
    if (summary.gain.value > 0) {
        gain.value = summary.gain.value;
        gain.low = summary.gain.low;
        gain.high = summary.gain.high;
        gain.paired = true;
    } else if (summary.finalSpeedup > 0 && summary.rootSpeedup > 0) {
        gain.value = summary.finalSpeedup / summary.rootSpeedup;
    }
    return gain;
}

} // namespace

QString ComparedRun::key() const
{
    return experiment + QLatin1Char('/') + run->id();
}

QString ComparedRun::runsDirectory() const
{
    return QString::fromStdString(run->record.directory.parent_path().string());
}

bool ComparedRun::isSuccess() const
{
    const run::Summary &summary = run->summary;
    return run->isFinished() && summary.improved && summary.finalSpeedup > summary.rootSpeedup;
}

ComparedRun compareRun(const RunEntryPtr &run, const QString &experiment)
{
    ComparedRun compared;
    compared.run = run;
    compared.experiment = experiment;
    const run::Summary &summary = run->summary;
    const auto trialOf = [&](const std::string &id) {
        const auto &trials = run->record.trials;
        const auto found = std::find_if(trials.begin(), trials.end(), [&](const gate::Trial &trial) {
            return !id.empty() && trial.id == id;
        });
        return found == trials.end() ? nullptr : &*found;
    };
    const gate::Trial *root = run->record.trials.empty() ? nullptr : &run->record.trials.front();
    compared.root = figureOf(summary.rootSpeedup, root, summary.reference);
    const run::StepRecord *best = bestStep(*run);
    compared.best = figureOf(summary.best, best ? trialOf(best->trial) : nullptr, summary.reference);
    compared.final = figureOf(summary.finalSpeedup, trialOf(summary.trial), summary.reference);
    compared.gain = gainOfRun(*run);
    return compared;
}

std::vector<ComparedRun> readExperimentRuns(const std::vector<fs::path> &places,
                                            const std::vector<ComparedRun> &known, QStringList *problems)
{
    std::vector<ComparedRun> runs;
    QStringList names;
    for (const fs::path &place : places) {
        for (const fs::path &folder : experimentFolders(place)) {
            const QString name = QString::fromStdString(folder.filename().string());
            if (names.contains(name) || !fs::is_directory(folder / "runs"))
                continue;
            names << name;
            std::vector<RunEntryPtr> before;
            for (const ComparedRun &one : known) {
                if (one.experiment == name)
                    before.push_back(one.run);
            }
            const RunListing listing = readRunListing(folder / "runs", before);
            for (const RunEntryPtr &entry : listing.runs)
                runs.push_back(compareRun(entry, name));
            *problems << listing.problems;
        }
    }
    return runs;
}

} // namespace klineage::ui
