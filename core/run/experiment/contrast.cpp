// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/run/experiment/contrast.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

namespace klineage::run {

namespace {

constexpr std::size_t mostExact = 16;
constexpr std::size_t drawnSigns = 65'536;
constexpr std::size_t drawnMeans = 10'000;

double gainOf(const CellResult &cell)
{
    const bool better = cell.summary.improved && cell.summary.gain.value > 0;
    return better ? cell.summary.gain.value : 1;
}

std::optional<double> goalOf(const Experiment &experiment, const std::string &root)
{
    const auto goal = experiment.goals.find(root);
    return goal == experiment.goals.end() ? std::nullopt : std::optional(goal->second);
}

/// Whether the first candidate that was gated after the root was correct.
bool wasFirstRight(const Summary &summary)
{
    const auto first =
        std::find_if(summary.trajectory.begin(), summary.trajectory.end(), [](const TrajectoryPoint &point) {
            return point.action != "root" && point.action != "load"
                   && (point.outcome == "valid" || point.outcome == "failed" || point.outcome == "wrapper");
        });
    return first != summary.trajectory.end() && first->outcome == "valid";
}

ArmResult armOn(const Experiment &experiment, const ExperimentResults &results, const std::string &policy,
                const std::string &root)
{
    ArmResult arm;
    arm.policy = policy;
    arm.root = root;
    double logarithms = 0;
    for (const CellResult &cell : results.cells) {
        if (cell.cell.policy != policy || (!root.empty() && cell.cell.root != root) || !cell.isOver())
            continue;
        ++arm.runs;
        arm.firstRight += wasFirstRight(cell.summary) ? 1 : 0;
        logarithms += std::log(gainOf(cell));
        const std::optional<double> goal = goalOf(experiment, cell.cell.root);
        if (!goal || gainOf(cell) < *goal)
            continue;
        ++arm.reached;
        const std::optional<Reached> at = reachedAt(cell.summary, *goal);
        arm.questions += at ? at->questions : cell.summary.questions;
        arm.dollars += at ? at->dollars : cell.summary.dollars;
    }
    if (arm.runs > 0)
        arm.gain = std::exp(logarithms / arm.runs);
    if (arm.reached > 0) {
        arm.questions /= arm.reached;
        arm.dollars /= arm.reached;
    }
    return arm;
}

double meanOf(const std::vector<double> &values)
{
    return values.empty()
               ? 0
               : std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// Whether the mean under the signs is at least as far from zero as the one that was seen.
class Permutation
{
public:
    explicit Permutation(const std::vector<double> &differences)
        : m_differences(differences)
        , m_seen(std::fabs(std::accumulate(differences.begin(), differences.end(), 0.0)) * (1 - 1e-12))
    {}

    template <typename Bits> ///< the signs of the next 64 differences
    void count(Bits bits)
    {
        double sum = 0;
        std::uint64_t signs = 0;
        for (std::size_t k = 0; k < m_differences.size(); ++k) {
            signs = k % 64 == 0 ? bits() : signs >> 1;
            sum += (signs & 1) != 0 ? m_differences[k] : -m_differences[k];
        }
        m_asFar += std::fabs(sum) >= m_seen ? 1 : 0;
        ++m_all;
    }
    [[nodiscard]] double share() const { return static_cast<double>(m_asFar) / static_cast<double>(m_all); }

private:
    const std::vector<double> &m_differences;
    double m_seen;
    std::size_t m_asFar = 0;
    std::size_t m_all = 0;
};

} // namespace

std::vector<ArmResult> armResults(const Experiment &experiment, const ExperimentResults &results)
{
    std::vector<ArmResult> arms;
    for (const std::string &root : experiment.roots) {
        for (const std::string &policy : experiment.policies)
            arms.push_back(armOn(experiment, results, policy, root));
    }
    for (const std::string &policy : experiment.policies)
        arms.push_back(armOn(experiment, results, policy, {}));
    return arms;
}

std::vector<Contrast> contrasts(const Experiment &experiment, const ExperimentResults &results)
{
    std::vector<Contrast> out;
    if (experiment.goals.empty())
        return out;
    for (std::size_t i = 0; i + 1 < experiment.policies.size(); ++i) {
        Contrast contrast;
        contrast.policy = experiment.policies.back();
        contrast.against = experiment.policies[i];
        std::vector<double> shares;
        std::vector<double> gains;
        for (const std::string &root : experiment.roots) {
            const ArmResult own = armOn(experiment, results, contrast.policy, root);
            const ArmResult other = armOn(experiment, results, contrast.against, root);
            if (own.runs == 0 || other.runs == 0)
                continue;
            shares.push_back(100.0 * own.reached / own.runs - 100.0 * other.reached / other.runs);
            gains.push_back(std::log(own.gain / other.gain));
        }
        contrast.roots = static_cast<int>(shares.size());
        contrast.points = meanOf(shares);
        contrast.pPoints = signPermutation(shares);
        const MeanInterval ratio = bootstrapMean(gains);
        contrast.ratio = std::exp(ratio.mean);
        contrast.low = std::exp(ratio.low);
        contrast.high = std::exp(ratio.high);
        contrast.pRatio = signPermutation(gains);
        out.push_back(contrast);
    }
    return out;
}

double signPermutation(const std::vector<double> &differences)
{
    if (differences.empty())
        return 1;
    const bool isExact = differences.size() <= mostExact;
    const std::size_t count = isExact ? std::size_t{1} << differences.size() : drawnSigns;
    std::mt19937_64 random(1);
    Permutation permutation(differences);
    for (std::size_t i = 0; i < count; ++i)
        permutation.count([&] { return isExact ? std::uint64_t{i} : std::uint64_t{random()}; });
    return permutation.share();
}

MeanInterval bootstrapMean(const std::vector<double> &values)
{
    const double mean = meanOf(values);
    if (values.size() < 2)
        return {mean, mean, mean};
    std::mt19937_64 random(1);
    std::vector<double> means;
    means.reserve(drawnMeans);
    for (std::size_t i = 0; i < drawnMeans; ++i) {
        double sum = 0;
        for (std::size_t k = 0; k < values.size(); ++k)
            sum += values[random() % values.size()];
        means.push_back(sum / static_cast<double>(values.size()));
    }
    std::sort(means.begin(), means.end());
    return {mean, means[drawnMeans / 40], means[drawnMeans - 1 - drawnMeans / 40]};
}

} // namespace klineage::run
