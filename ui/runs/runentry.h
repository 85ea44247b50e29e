// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/llm/message.h"
#include "core/run/summary.h"
#include "ui/style/status.h"

#include <QString>

#include <memory>
#include <vector>

namespace klineage::ui {

/// A run as it was on disk when it was read. Never changed afterwards, so that it can be shared with worker threads.
struct RunEntry {
    run::RunRecord record;
    run::Summary summary;
    double spentDollars = 0; ///< by the ledger
    double reservedDollars = 0;
    llm::Usage usage;
    QString stamp; ///< changes when one of its files does

    [[nodiscard]] QString id() const { return QString::fromStdString(record.settings.id); }
    [[nodiscard]] bool isRunning() const { return record.state == "running"; }
    [[nodiscard]] bool isFinished() const { return record.state == "finished"; }
    [[nodiscard]] const run::StepRecord *step(int number) const;
    [[nodiscard]] const gate::Trial *trialOf(const run::StepRecord &step) const;
    /// Where the text with this sha-256 lies; empty for an empty sha.
    [[nodiscard]] std::filesystem::path candidateFile(const std::string &sha) const;
};
using RunEntryPtr = std::shared_ptr<const RunEntry>;

/// All of runs/, newest first, read again only where something may have changed since `known`. Any thread.
struct RunListing {
    std::vector<RunEntryPtr> runs;
    QStringList problems; ///< of folders that could not be read
};
[[nodiscard]] RunListing readRunListing(const std::filesystem::path &runsDirectory,
                                        const std::vector<RunEntryPtr> &known);

/// "running", "stopped", "budget", …: how it stands in a word, with its glyph.
[[nodiscard]] StatusStyle runStateStyle(const RunEntry &run);
/// ● valid, ◇ audited, × wrapper, △ failed; what belongs to none of them is a small circle.
[[nodiscard]] StatusStyle outcomeStyle(const std::string &outcome);
/// "materialize" or the policy's name.
[[nodiscard]] QString policyOf(const run::Settings &settings);
/// "$0.0123"; from a dollar on with two decimals.
[[nodiscard]] QString formatDollars(double dollars);

} // namespace klineage::ui
