// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/experiments/experimententry.h"

#include "ui/experiments/experimentfolders.h"

#include <QCoreApplication>

#include <algorithm>
#include <map>
#include <set>

namespace klineage::ui {

namespace fs = std::filesystem;

namespace {

QString cellText(const char *text)
{
    return QCoreApplication::translate("klineage::ui::Experiments", text);
}

void addStamp(QString &stamp, const fs::path &file)
{
    std::error_code ignored;
    const auto written = fs::last_write_time(file, ignored);
    const auto size = ignored ? 0 : fs::file_size(file, ignored);
    stamp += QStringLiteral("%1:%2 ").arg(size).arg(
        ignored ? 0 : static_cast<qint64>(written.time_since_epoch().count()));
}

QString experimentStamp(const run::Experiment &experiment)
{
    QString stamp;
    addStamp(stamp, experiment.directory / "experiment.toml");
    for (const run::Cell &cell : cellsOf(experiment)) {
        const fs::path run = experiment.directory / "runs" / cell.runId;
        for (const char *name : {"run.toml", "steps.jsonl", "trials.jsonl", "ending.toml"})
            addStamp(stamp, run / name);
    }
    return stamp;
}

ExperimentEntryPtr readEntry(const fs::path &directory, const ExperimentEntryPtr &known)
{
    Result<run::Experiment> experiment = run::readExperiment(directory);
    auto entry = std::make_shared<ExperimentEntry>();
    if (!experiment) {
        entry->experiment.name = directory.filename().string();
        entry->experiment.directory = directory;
        const Error &error = experiment.error();
        entry->problem = QString::fromStdString(error.detail.empty() ? error.message
                                                                     : error.message + "\n" + error.detail);
        return entry;
    }
    entry->stamp = experimentStamp(*experiment);
    // Whether a process holds an unfinished run is not seen from its files.
    if (known && known->stamp == entry->stamp && known->problem.isEmpty()
        && known->finished() == static_cast<int>(known->results.cells.size()))
        return known;
    entry->results = readResults(*experiment);
    entry->arms = armResults(*experiment, entry->results);
    entry->measures = measuresOf(*experiment, entry->results);
    entry->contrasts = contrasts(*experiment, entry->results);
    entry->experiment = std::move(*experiment);
    return entry;
}

} // namespace

QString ExperimentEntry::runsDirectory() const
{
    return QString::fromStdString((experiment.directory / "runs").string());
}

bool ExperimentEntry::isRunning() const
{
    return std::any_of(results.cells.begin(), results.cells.end(),
                       [](const run::CellResult &cell) { return cell.state == "running"; });
}

int ExperimentEntry::finished() const
{
    return static_cast<int>(std::count_if(results.cells.begin(), results.cells.end(),
                                          [](const run::CellResult &cell) { return cell.isOver(); }));
}

double ExperimentEntry::dollars() const
{
    double sum = 0;
    for (const run::CellResult &cell : results.cells)
        sum += cell.summary.dollars;
    return sum;
}

std::vector<ExperimentEntryPtr> readExperiments(const std::vector<fs::path> &places,
                                                const std::vector<ExperimentEntryPtr> &known)
{
    std::map<fs::path, ExperimentEntryPtr> before;
    for (const ExperimentEntryPtr &entry : known)
        before[entry->experiment.directory] = entry;
    std::vector<ExperimentEntryPtr> entries;
    std::set<fs::path> names;
    for (const fs::path &place : places) {
        for (const fs::path &folder : experimentFolders(place)) {
            if (!names.insert(folder.filename()).second)
                continue;
            const auto old = before.find(folder);
            entries.push_back(readEntry(folder, old == before.end() ? nullptr : old->second));
        }
    }
    return entries;
}

StatusStyle cellStyle(const run::CellResult &cell)
{
    if (cell.state == "running")
        return {cellText("running"), QStringLiteral("▸"), Tone::Accent};
    if (cell.state == "stopped")
        return {cellText("stopped"), QStringLiteral("‖"), Tone::Warn};
    if (cell.state == "unreadable")
        return {cellText("unreadable"), QStringLiteral("!"), Tone::Bad};
    if (!cell.isOver())
        return {cellText("not begun"), QStringLiteral("○"), Tone::Neutral};
    return cell.isSuccess() ? StatusStyle{cellText("success"), QStringLiteral("✓"), Tone::Good}
                            : StatusStyle{cellText("failure"), QStringLiteral("✗"), Tone::Bad};
}

QString contrastText(const ExperimentEntry &entry)
{
    QStringList lines;
    for (const run::Contrast &contrast : entry.contrasts)
        lines
            << cellText(
                   "%1 against %2 over %3 roots: %4 points of the runs that reach their goal (p = %5); paired gain "
                   "over the root %6× (%7–%8, p = %9).")
                   .arg(QString::fromStdString(contrast.policy), QString::fromStdString(contrast.against))
                   .arg(contrast.roots)
                   .arg((contrast.points > 0 ? QStringLiteral("+") : QString())
                            + QString::number(contrast.points, 'f', 0),
                        QString::number(contrast.pPoints, 'f', 3), QString::number(contrast.ratio, 'f', 3),
                        QString::number(contrast.low, 'f', 3), QString::number(contrast.high, 'f', 3),
                        QString::number(contrast.pRatio, 'f', 3));
    return lines.join(QLatin1Char('\n'));
}

QString policiesCsv(const ExperimentEntry &entry)
{
    QString csv = QStringLiteral(
        "policy,root,geometric_mean,successes,failures,unfinished,dollars,instances,correct,fast_1,fast_2,amsr,"
        "geometric_mean_of_correct\n");
    const auto figure = [](bool isThere, double value) {
        return isThere ? QString::number(value, 'g', 17) : QString();
    };
    for (std::size_t i = 0; i < entry.results.policies.size() && i < entry.measures.size(); ++i) {
        const run::PolicyResult &policy = entry.results.policies[i];
        const run::Measures &of = entry.measures[i];
        const bool has = of.instances > 0;
        csv += QStringLiteral("%1,%2,%3,%4,%5,%6,%7,")
                   .arg(QString::fromStdString(policy.policy), QString::fromStdString(policy.root),
                        policy.successes > 0 ? QString::number(policy.geometricMean, 'g', 17) : QString())
                   .arg(policy.successes)
                   .arg(policy.failures)
                   .arg(policy.unfinished)
                   .arg(QString::number(policy.dollars, 'g', 17));
        csv += QStringLiteral("%1,%2,%3,%4,%5,%6\n")
                   .arg(of.instances)
                   .arg(figure(has, of.correct), figure(has, of.fast1), figure(has, of.fast2),
                        figure(has, of.amsr), figure(of.geometricMean > 0, of.geometricMean));
    }
    return csv;
}

} // namespace klineage::ui
