// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/run/experiment/contrast.h"
#include "core/run/experiment/measures.h"
#include "ui/style/status.h"

#include <QString>
#include <QStringList>

#include <memory>
#include <vector>

namespace klineage::ui {

/// An experiment and what its runs came to, as it was on disk when it was read. Never changed afterwards, so that it can be shared
/// with worker threads.
struct ExperimentEntry {
    run::Experiment experiment;
    run::ExperimentResults results;
    std::vector<run::ArmResult> arms;     ///< as results.policies: each policy on each root, then on all
    std::vector<run::Measures> measures;  ///< the same
    std::vector<run::Contrast> contrasts; ///< of an experiment with goals
    QString problem; ///< why experiment.toml could not be read; then only the name is there
    QString stamp;   ///< changes when one of its files does

    [[nodiscard]] QString name() const { return QString::fromStdString(experiment.name); }
    [[nodiscard]] QString runsDirectory() const;
    [[nodiscard]] bool isRunning() const; ///< a live process is at one of its runs
    [[nodiscard]] int finished() const;
    [[nodiscard]] double dollars() const;
};
using ExperimentEntryPtr = std::shared_ptr<const ExperimentEntry>;

/// All experiments in these places (experimentfolders.h), of those of one name the first; read again only where something may have changed
/// since `known`. Any thread.
[[nodiscard]] std::vector<ExperimentEntryPtr> readExperiments(
    const std::vector<std::filesystem::path> &places, const std::vector<ExperimentEntryPtr> &known);

/// "finished", "running", "missing", …, with a glyph; a finished run without a success says so.
[[nodiscard]] StatusStyle cellStyle(const run::CellResult &cell);

/// The contrasts, a sentence each: against what, how much, how sure.
[[nodiscard]] QString contrastText(const ExperimentEntry &entry);

/// "policy,root,geometric_mean,successes,failures,unfinished,dollars,…" and a line a row of the table of policies; root empty: all.
[[nodiscard]] QString policiesCsv(const ExperimentEntry &entry);

} // namespace klineage::ui
