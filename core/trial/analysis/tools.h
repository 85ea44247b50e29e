// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trial/analysis/analysis.h"
#include "core/trial/analysis/figures.h"

#include <initializer_list>

namespace klineage::gate {

/// Of the compute units, used on average over all rounds of work: from here on as good as full.
inline constexpr double tailShare = 0.85;

/// What a tool sees: one kernel, or the run.
struct ToolScope {
    const Trial &trial;
    const std::optional<Roof> &roof;
    const Analysis &analysis; ///< classified
    const Figures &figures;
    const KernelFigures &kernel; ///< of the run for tools that look at the whole

    [[nodiscard]] std::optional<double> find(const std::string &name) const { return kernel.find(name); }
    [[nodiscard]] double get(const std::string &name) const { return kernel.find(name).value_or(0); }
    /// A number among the environment's facts; 0: not there.
    [[nodiscard]] double fact(const std::string &name) const;
};

/// A micro-profiling tool. look() is called when all that it needs is there, and gives one sentence or, when its trigger does not fire,
/// nothing.
struct Tool {
    enum class Looks { EachKernel, WholeRun };
    const char *name;
    std::optional<kernel::DeviceKind> device; ///< the only kind that it knows; nothing: all
    Looks looks;
    std::vector<const char *>
        metrics; ///< needed, all of them, of the kernel (or of any kernel, for the whole run)
    bool roof;   ///< needs measured ceilings
    std::optional<std::string> (*look)(const ToolScope &);
    /// What samples of the program counter say of a warp where this happens, by the reasons of the samplers: those lines are shown with
    /// the finding. Empty: samples do not show it.
    std::vector<const char *> reasons{};
    /// The metric that the finding is about, where that depends; else the first of `metrics`.
    std::string (*subject)(const ToolScope &) = nullptr;
};

[[nodiscard]] const std::vector<Tool> &allTools();

// Their two halves.
[[nodiscard]] std::vector<Tool> sharedTools(); ///< any device, and OpenCL's own
[[nodiscard]] std::vector<Tool> cudaTools();

} // namespace klineage::gate
