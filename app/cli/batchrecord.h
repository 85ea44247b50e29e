// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trial/trial.h"

#include <string>
#include <vector>

namespace klineage::cli {

/// A trial of a batch's output, whose lines are {"id", "trial", "text"?} or {"id", "error"}, or bare trials.
struct BatchRecord {
    gate::Trial trial;
    std::string candidateText; ///< when the line has it
    std::string where;         ///< "out.jsonl:3", for messages
};
struct BatchOutput {
    std::vector<BatchRecord> records;
    std::vector<std::string> problems; ///< lines that cannot be read or have no trial, a sentence each
};
[[nodiscard]] Result<BatchOutput> readBatchOutput(const std::string &file);

} // namespace klineage::cli
