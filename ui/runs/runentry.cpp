// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/runs/runentry.h"

#include "core/llm/ledger.h"
#include "ui/style/format.h"

#include <QCoreApplication>
#include <QStringList>

#include <algorithm>
#include <array>
#include <map>

namespace klineage::ui {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t maxFolders = 10'000;

QString runText(const char *text)
{
    return QCoreApplication::translate("klineage::ui::Runs", text);
}

QString stampOf(const fs::path &directory)
{
    QString stamp;
    for (const char *name : {"run.toml", "steps.jsonl", "trials.jsonl", "ledger.jsonl", "ending.toml"}) {
        std::error_code ignored;
        const auto written = fs::last_write_time(directory / name, ignored);
        const auto size = ignored ? 0 : fs::file_size(directory / name, ignored);
        stamp += QStringLiteral("%1:%2 ").arg(size).arg(
            ignored ? 0 : static_cast<qint64>(written.time_since_epoch().count()));
    }
    return stamp;
}

Result<RunEntryPtr> readEntry(const fs::path &directory, const QString &stamp)
{
    Result<run::RunRecord> record = run::readRun(directory);
    if (!record)
        return tl::unexpected(record.error());
    auto entry = std::make_shared<RunEntry>();
    entry->stamp = stamp;
    entry->summary = run::summarize(*record);
    entry->spentDollars = entry->summary.dollars;
    if (const auto ledger = llm::Ledger::open(directory / "ledger.jsonl", record->settings.capDollars)) {
        entry->spentDollars = ledger->spentDollars();
        entry->reservedDollars = ledger->reservedDollars();
        entry->usage = ledger->usage();
    }
    entry->record = std::move(*record);
    return entry;
}

} // namespace

const run::StepRecord *RunEntry::step(int number) const
{
    const auto found = std::find_if(record.steps.begin(), record.steps.end(),
                                    [number](const run::StepRecord &step) { return step.number == number; });
    return found == record.steps.end() ? nullptr : &*found;
}

const gate::Trial *RunEntry::trialOf(const run::StepRecord &step) const
{
    const auto found =
        std::find_if(record.trials.begin(), record.trials.end(),
                     [&](const gate::Trial &trial) { return !step.trial.empty() && trial.id == step.trial; });
    return found == record.trials.end() ? nullptr : &*found;
}

fs::path RunEntry::candidateFile(const std::string &sha) const
{
    if (sha.empty())
        return {};
    const auto surface = kernel::surfaceFromString(record.settings.surface);
    return record.directory / run::candidateFileName(sha, surface.value_or(kernel::Surface()));
}

RunListing readRunListing(const fs::path &runsDirectory, const std::vector<RunEntryPtr> &known)
{
    std::map<fs::path, RunEntryPtr> before;
    for (const RunEntryPtr &entry : known)
        before[entry->record.directory] = entry;
    RunListing listing;
    std::error_code ignored;
    std::size_t folders = 0;
    for (fs::directory_iterator it(runsDirectory, ignored), end; it != end && ++folders < maxFolders;
         it.increment(ignored)) {
        const fs::path directory = it->path();
        if (!fs::is_regular_file(directory / "run.toml", ignored))
            continue;
        const QString stamp = stampOf(directory);
        const auto old = before.find(directory);
        // Whether a process holds an unfinished run is not seen from its files.
        if (old != before.end() && old->second->stamp == stamp && old->second->isFinished()) {
            listing.runs.push_back(old->second);
            continue;
        }
        const Result<RunEntryPtr> entry = readEntry(directory, stamp);
        if (entry)
            listing.runs.push_back(*entry);
        else
            listing.problems << QString::fromStdString(entry.error().message);
    }
    std::sort(listing.runs.begin(), listing.runs.end(), [](const RunEntryPtr &a, const RunEntryPtr &b) {
        const run::Settings &x = a->record.settings;
        const run::Settings &y = b->record.settings;
        return x.created != y.created ? x.created > y.created : x.id < y.id;
    });
    return listing;
}

StatusStyle runStateStyle(const RunEntry &run)
{
    if (run.isRunning())
        return {runText("running"), QStringLiteral("▸"), Tone::Accent};
    if (!run.isFinished())
        return {runText("stopped"), QStringLiteral("‖"), Tone::Warn};
    const QString code = QString::fromStdString(run.record.ending.code);
    const QString words = QString(code).replace(QLatin1Char('_'), QLatin1Char(' '));
    if (code == QLatin1String("complete"))
        return {words, QStringLiteral("✓"), Tone::Good};
    if (code == QLatin1String("error"))
        return {words, QStringLiteral("✗"), Tone::Bad};
    return {words, QStringLiteral("■"), Tone::Neutral};
}

StatusStyle outcomeStyle(const std::string &outcome)
{
    struct Known {
        const char *outcome;
        const char *glyph;
        Tone tone;
    };
    static constexpr std::array known = {
        Known{"valid", "●", Tone::Good},     Known{"accepted", "●", Tone::Good},
        Known{"stored", "●", Tone::Good},    Known{"admitted", "●", Tone::Good},
        Known{"audited", "◇", Tone::Accent}, Known{"wrapper", "×", Tone::Warn},
        Known{"failed", "△", Tone::Bad},     Known{"rejected", "△", Tone::Bad},
        Known{"error", "△", Tone::Bad},
    };
    const QString word = QString::fromStdString(outcome).replace(QLatin1Char('_'), QLatin1Char(' '));
    for (const Known &entry : known) {
        if (outcome == entry.outcome)
            return {word, QString::fromUtf8(entry.glyph), entry.tone};
    }
    return {word, QStringLiteral("○"), Tone::Neutral};
}

QString policyOf(const run::Settings &settings)
{
    return settings.policy.empty() ? QString::fromLatin1(run::toString(settings.kind))
                                   : QString::fromStdString(settings.policy);
}

QString formatDollars(double dollars)
{
    return QLatin1Char('$') + formatFixed(dollars, dollars > 0 && dollars < 1 ? 4 : 2);
}

} // namespace klineage::ui
