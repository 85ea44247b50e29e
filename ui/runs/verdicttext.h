// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trial/request.h"
#include "core/trial/trial.h"

#include <QString>

#include <optional>

namespace klineage::ui {

/// What the gate does with a trial, in the one word that all of the window has for it: "waiting", "checking"; "starting" before it has said anything.
[[nodiscard]] QString progressWord(const std::optional<gate::GateProgress> &progress = {});
/// "checking: case odd, seed 2 of 3".
[[nodiscard]] QString progressSentence(const gate::GateProgress &progress);

/// All that the gate said of a candidate, in lines: message, evidence, comparisons, hint, log.
[[nodiscard]] QString verdictText(const gate::Trial &trial);
/// What follows the message.
[[nodiscard]] QStringList verdictDetails(const gate::Verdict &verdict);

} // namespace klineage::ui
