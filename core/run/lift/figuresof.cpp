// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/run/lift/figuresof.h"

#include <algorithm>
#include <cmath>

namespace klineage::run {

namespace {

void addFactor(Figures &figures, double factor)
{
    if (!(factor > 0) || !std::isfinite(factor))
        return;
    figures.factors.push_back(factor);
    figures.factors.push_back(1 / factor);
    figures.percents.push_back(std::abs(factor - 1) * 100);
    figures.percents.push_back(std::abs(1 - 1 / factor) * 100);
}

void addInterval(std::vector<double> &values, const gate::Interval &interval)
{
    values.insert(values.end(), {interval.value, interval.low, interval.high});
}

void addMetric(Figures &figures, const gate::Metric &metric)
{
    if (metric.unit == "%")
        figures.percents.push_back(metric.value);
    else if (metric.unit == "ns")
        figures.times.push_back(metric.value);
    else if (metric.unit == "B/s" || metric.unit == "FLOP/s")
        figures.rates.push_back(metric.value);
}

} // namespace

Figures figuresOf(const gate::Trial &trial, const gate::Trial *before)
{
    Figures figures;
    for (const gate::Comparison &comparison : trial.verdict.comparisons) {
        for (const double factor :
             {comparison.speedup.value, comparison.speedup.low, comparison.speedup.high})
            addFactor(figures, factor);
        figures.times.push_back(comparison.otherNs);
    }
    addInterval(figures.times, trial.latencyNs);
    figures.rates.insert(figures.rates.end(), {trial.achievedFlops, trial.achievedBytes});
    for (const gate::Metric &metric : trial.metrics)
        addMetric(figures, metric);
    if (!before)
        return figures;
    addInterval(figures.times, before->latencyNs);
    figures.rates.insert(figures.rates.end(), {before->achievedFlops, before->achievedBytes});
    for (const gate::Metric &metric : before->metrics)
        addMetric(figures, metric);
    for (const MetricChange &change : metricChanges(*before, trial))
        addFactor(figures, change.after / change.before);
    return figures;
}

std::vector<MetricChange> metricChanges(const gate::Trial &before, const gate::Trial &after)
{
    std::map<std::string, std::pair<double, double>>
        sums; // kernels come and go: what they add up to is compared
    std::map<std::string, int> sides;
    for (const gate::Metric &metric : before.metrics) {
        sums[metric.name].first += metric.value;
        sides[metric.name] |= 1;
    }
    for (const gate::Metric &metric : after.metrics) {
        sums[metric.name].second += metric.value;
        sides[metric.name] |= 2;
    }
    std::vector<MetricChange> changes;
    for (const auto &[name, values] : sums) {
        const bool isRatio = sides[name] == 3 && values.first > 0 && values.second > 0;
        if (isRatio && std::abs(std::log(values.second / values.first)) > std::log(1.1))
            changes.push_back({name, values.first, values.second});
    }
    std::stable_sort(changes.begin(), changes.end(), [](const MetricChange &a, const MetricChange &b) {
        return std::abs(std::log(a.after / a.before)) > std::abs(std::log(b.after / b.before));
    });
    return changes;
}

bool Figures::hold(const Quantity &quantity) const
{
    const std::vector<double> &values = quantity.kind == Quantity::Kind::Factor    ? factors
                                        : quantity.kind == Quantity::Kind::Percent ? percents
                                        : quantity.kind == Quantity::Kind::Time    ? times
                                                                                   : rates;
    return std::any_of(values.begin(), values.end(), [&](double value) {
        return std::abs(value - quantity.value) <= quantity.half * 1.001 + std::abs(value) * 1e-9;
    });
}

} // namespace klineage::run
