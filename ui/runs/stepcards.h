// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/llm/message.h"
#include "ui/runs/runentry.h"

#include <QStringList>

namespace klineage::ui {

/// A card as a run took it from the library, or as it just missed it.
struct StepCard {
    /// What the question of a step has of it.
    enum class Shown {
        Text,    ///< its whole text
        Line,    ///< a line of the index
        Named,   ///< its name alone
        Nothing, ///< it was taken for the run, and is not in this question
        Missed   ///< it was not taken: the rules say what blocked it
    };
    QString name;
    int revision = 0; ///< that was taken; 0: not known
    QString intent;
    QString text; ///< as it was taken; empty: not known
    Shown shown = Shown::Nothing;
    bool isAbout = false; ///< the step is about it
    QStringList why;      ///< why it came, or what blocked it: whole sentences
};

struct StepCards {
    std::vector<StepCard> cards; ///< those of the step, then as they were taken, then near misses
    QString problem;             ///< why there is none, a sentence
};

/// The cards of the run beside what the step asked. requests: of the step's exchanges. Reads cards.json; any thread.
[[nodiscard]] StepCards readStepCards(const RunEntry &run, const run::StepRecord &step,
                                      const std::vector<llm::Request> &requests);

/// "text", "line", …, with its glyph.
[[nodiscard]] StatusStyle shownStyle(StepCard::Shown shown);

} // namespace klineage::ui
