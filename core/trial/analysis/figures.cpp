// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trial/analysis/figures.h"

#include "core/trial/metricnames.h"

#include <algorithm>

namespace klineage::gate {

std::optional<double> KernelFigures::find(const std::string &name) const
{
    const auto found = values.find(name);
    return found == values.end() ? std::nullopt : std::optional<double>(found->second);
}

bool Figures::has(const std::string &name) const
{
    return run.values.contains(name)
           || std::any_of(kernels.begin(), kernels.end(),
                          [&](const KernelFigures &kernel) { return kernel.values.contains(name); });
}

std::optional<double> Figures::weighted(const std::string &name) const
{
    if (const auto whole = run.find(name))
        return whole;
    double total = 0;
    double weights = 0;
    for (const KernelFigures &kernel : kernels) {
        if (const auto value = kernel.find(name)) {
            const double weight = kernel.find(metric::kernelTime).value_or(1);
            total += *value * weight;
            weights += weight;
        }
    }
    return weights > 0 ? std::optional<double>(total / weights) : std::nullopt;
}

std::optional<double> Figures::sum(const std::string &name) const
{
    if (const auto whole = run.find(name))
        return whole;
    std::optional<double> total;
    for (const KernelFigures &kernel : kernels) {
        if (const auto value = kernel.find(name))
            total = total.value_or(0) + *value;
    }
    return total;
}

Figures figuresOf(const Trial &trial)
{
    Figures figures;
    std::map<std::string, int> launches;
    for (const Metric &entry : trial.metrics) {
        KernelFigures *kernel = &figures.run;
        if (!entry.kernel.empty()) {
            const auto known = std::find_if(figures.kernels.begin(), figures.kernels.end(),
                                            [&](const auto &k) { return k.kernel == entry.kernel; });
            kernel = known != figures.kernels.end()
                         ? &*known
                         : &figures.kernels.emplace_back(KernelFigures{entry.kernel, {}});
        }
        const auto [place, fresh] = kernel->values.emplace(entry.name, entry.value);
        if (!fresh)
            place->second = std::max(place->second, entry.value);
        if (entry.name == metric::blocks || entry.name == "work_groups")
            ++figures.launches;
    }
    return figures;
}

} // namespace klineage::gate
