// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trial/trial.h"

#include <string>

/// Trials in a line, for the steps of a run, the reasons in a lineage and the lists of prompts. A function of the trial alone, so that a
/// replayed run says the same again.
namespace klineage::run {

[[nodiscard]] std::string factorText(double factor); ///< "1.830×"
/// "correct, 12.300 µs, 1.830× [1.790, 1.870] against its parent (gain), 0.710× [0.700, 0.720] against openblas (loss)".
[[nodiscard]] std::string figuresText(const gate::Trial &trial);
/// "compile_error at the compile stage: …"
[[nodiscard]] std::string verdictLine(const gate::Trial &trial);
/// One line that ends as a sentence does.
[[nodiscard]] std::string sentence(std::string text);

} // namespace klineage::run
