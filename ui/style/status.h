// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/skills/card.h"
#include "core/trial/verdict.h"

#include <QColor>
#include <QString>

#include <optional>

namespace klineage::ui {

/// What a colour means. Every tone is shown with a glyph or a word beside it.
enum class Tone { Neutral, Accent, Good, Warn, Bad };
[[nodiscard]] QColor toneColor(Tone tone);

/// A status as the window shows it.
struct StatusStyle {
    QString word;  ///< "correct", "no gain"
    QString glyph; ///< one character of its own
    Tone tone = Tone::Neutral;
};

[[nodiscard]] StatusStyle statusStyle(gate::VerdictStatus status);
[[nodiscard]] StatusStyle statusStyle(gate::Change change);
[[nodiscard]] StatusStyle statusStyle(skills::Life life);
[[nodiscard]] StatusStyle statusStyle(skills::ReviewVerdict verdict);

/// How far a candidate came: one entry a stage (compile, correctness, profile).
enum class StageOutcome { NotReached, Passed, Failed };
struct StageOutcomes {
    StageOutcome compile = StageOutcome::NotReached;
    StageOutcome correctness = StageOutcome::NotReached;
    StageOutcome profile = StageOutcome::NotReached;
    friend bool operator==(const StageOutcomes &, const StageOutcomes &) = default;
};
[[nodiscard]] StageOutcomes stageOutcomes(const gate::Verdict &verdict);

} // namespace klineage::ui
