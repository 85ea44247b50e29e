// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/policy/newoptions.h"
#include "core/run/experiment/experiment.h"

#include <optional>

namespace klineage::run {

/// experiments/<name>/preregistered.toml: experiment.toml as it was when the first run began. What is compared and what counts is said
/// before anything is known, and a change afterwards shows.
struct Preregistration {
    std::string sha256; ///< of experiment.toml
    std::string time;   ///< UTC
    /// By policy: what the options of its runs are where the plan does not say them (policy::newOptions() of then). None in plans of
    /// earlier versions.
    std::map<std::string, policy::Options> defaults;
};

/// Nothing where no run has begun.
[[nodiscard]] Result<std::optional<Preregistration>> readPreregistration(const Experiment &experiment);
/// Writes it where there is none and no run has begun. Conflict when experiment.toml is another than then: a new plan is a new experiment.
/// An experiment whose runs are older than this file goes on without one.
[[nodiscard]] Status preregister(const Experiment &experiment);
/// Those of the preregistration; of an experiment that has not begun, those of new runs, which preregister() then keeps. By policy.
[[nodiscard]] Result<std::map<std::string, policy::Options>> defaultsOf(const Experiment &experiment);

} // namespace klineage::run
