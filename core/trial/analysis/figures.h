// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trial/trial.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace klineage::gate {

/// The metrics of one kernel; of those it has several times (one a launch), the largest.
struct KernelFigures {
    std::string kernel; ///< empty: the whole run
    std::map<std::string, double> values;

    [[nodiscard]] std::optional<double> find(const std::string &name) const;
};

/// A trial's metrics by kernel, in the order in which kernels first appear.
struct Figures {
    std::vector<KernelFigures> kernels;
    KernelFigures run;
    int launches = 0; ///< 0: not known

    [[nodiscard]] bool has(const std::string &name) const;
    /// Mean over kernels, weighted by the time that counters saw; of all equally when they saw none.
    [[nodiscard]] std::optional<double> weighted(const std::string &name) const;
    [[nodiscard]] std::optional<double> sum(const std::string &name) const;
};

[[nodiscard]] Figures figuresOf(const Trial &trial);

} // namespace klineage::gate
