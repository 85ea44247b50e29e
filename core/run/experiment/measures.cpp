// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/run/experiment/measures.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace klineage::run {

namespace {

template <typename Value>
double meanOver(std::span<const Instance> instances, Value value)
{
    if (instances.empty())
        return 0;
    const double sum = std::accumulate(instances.begin(), instances.end(), 0.0,
                                       [&](double before, const Instance &instance) {
                                           return before + (instance.correct ? value(instance) : 0.0);
                                       });
    return sum / static_cast<double>(instances.size());
}

Measures measure(const ExperimentResults &results, const std::string &policy, const std::string &root)
{
    std::vector<Instance> instances;
    for (const CellResult &cell : results.cells) {
        if (cell.isOver() && cell.cell.policy == policy && (root.empty() || cell.cell.root == root))
            instances.push_back(instanceOf(cell));
    }
    return {policy,
            root,
            static_cast<int>(instances.size()),
            shareCorrect(instances),
            fastShare(instances, 1),
            fastShare(instances, 2),
            meanSpeedupRatio(instances),
            geometricMeanSpeedup(instances)};
}

} // namespace

double shareCorrect(std::span<const Instance> instances)
{
    return meanOver(instances, [](const Instance &) { return 1.0; });
}

double fastShare(std::span<const Instance> instances, double p)
{
    return meanOver(instances, [p](const Instance &instance) { return instance.speedup > p ? 1.0 : 0.0; });
}

double meanSpeedupRatio(std::span<const Instance> instances)
{
    return meanOver(instances,
                    [](const Instance &instance) { return instance.speedup < 1 ? 0.0 : instance.speedup; });
}

double geometricMeanSpeedup(std::span<const Instance> instances)
{
    double logarithms = 0;
    int correct = 0;
    for (const Instance &instance : instances) {
        if (!instance.correct || instance.speedup <= 0)
            continue;
        logarithms += std::log(instance.speedup);
        ++correct;
    }
    return correct > 0 ? std::exp(logarithms / correct) : 0;
}

Instance instanceOf(const CellResult &cell)
{
    const bool isOwn = cell.isOver() && cell.summary.improved && cell.summary.finalSpeedup > 0;
    return {isOwn, isOwn ? cell.summary.finalSpeedup : 0};
}

std::vector<Measures> measuresOf(const Experiment &experiment, const ExperimentResults &results)
{
    std::vector<Measures> measures;
    for (const std::string &root : experiment.roots) {
        for (const std::string &policy : experiment.policies)
            measures.push_back(measure(results, policy, root));
    }
    for (const std::string &policy : experiment.policies)
        measures.push_back(measure(results, policy, {}));
    return measures;
}

} // namespace klineage::run
