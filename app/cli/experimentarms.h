// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/run/experiment/results.h"

#include <nlohmann/json_fwd.hpp>

namespace klineage::cli {

/// The arms of an experiment with goals, side by side: shares that reached the goal, questions and dollars to it, paired gains over the
/// root, and the last policy against the others. Nothing of an experiment without goals.
void printArms(const run::Experiment &experiment, const run::ExperimentResults &results);
/// Adds "goals", "arms", "contrasts" and "preregistered".
void addArmsJson(nlohmann::json &out, const run::Experiment &experiment,
                 const run::ExperimentResults &results);

} // namespace klineage::cli
