// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/llm/message.h"
#include "ui/runs/runentry.h"
#include "ui/runs/stepcards.h"

#include <QString>

namespace klineage::ui {

/// What was asked and answered in a step, as a person reads it.
struct StepTexts {
    QString prompt;
    QString reply;
    StepCards cards; ///< those of the library that the step had before it
};

/// Reads the step's exchanges from the run's transcript; what cannot be read says why in place of the text. Any thread.
[[nodiscard]] StepTexts readStepTexts(const RunEntry &run, const run::StepRecord &step);
/// The system's text and the messages, each under its role. The last message is what is asked now.
[[nodiscard]] QString requestText(const llm::Request &request);

} // namespace klineage::ui
