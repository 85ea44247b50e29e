// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/supervisor/apart.h"

#include "core/base/numbertext.h"
#include "core/gate/timing/profile.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace klineage::gate {

namespace {

constexpr double largeGain = 1.25;
constexpr double shareThatShows = 0.5;
constexpr int tries = 3; ///< of a busy machine
constexpr double secondsAlone = 0.5;
constexpr double leastSecondsLeft = 3;

/// Nanoseconds of a run.
StageResult<double> latencyAlone(PreparedCandidate &side, const CorrectnessResult &correct, double roughNs,
                                 CompilerSession &compiler, const TrialContext &context,
                                 WorkerSession &worker, const Trial &trial)
{
    GateJob job{context.job.workload, context.job.request};
    job.request.parentText.clear();
    job.request.withReference = false;
    job.request.quick = true;
    job.request.energy = false;
    job.request.profileSeconds = secondsAlone;
    TrialContext mine = context.on(worker, job);
    mine.progress = {}; // it has been all the way already
    mine.clock = nullptr;
    CorrectnessResult known = correct;
    known.roughNs = roughNs;
    Trial alone;
    alone.surface = trial.surface;
    NoiseFloors noise;
    if (auto done = profileCandidate(side, known, compiler, {false, false}, mine, noise, alone); !done)
        return tl::unexpected(done.error().end);
    return alone.latencyNs.value;
}

} // namespace

StageResult<void> tellApart(PreparedCandidate &candidate, const CorrectnessResult &correct,
                            CompilerSession &compiler, const TrialContext &context, const FreshWorker &fresh,
                            Trial &trial)
{
    auto &all = trial.verdict.comparisons;
    const auto gain = std::find_if(all.begin(), all.end(), [](const Comparison &comparison) {
        return comparison.against == "parent" && comparison.change == Change::Gain
               && comparison.speedup.low >= largeGain;
    });
    if (gain == all.end())
        return {};
    auto parent =
        prepareCandidate("parent", context.job.request.parentText, "parent", {}, &context.job.workload);
    if (!parent)
        return tl::unexpected(parent.error());
    const double wanted = 1 + shareThatShows * (gain->speedup.low - 1);
    const double parentNs = gain->otherNs;
    double most = 0;
    for (int i = 0; i < tries && most < wanted && context.deadline.secondsLeft() > leastSecondsLeft; ++i) {
        std::vector<double> ns;
        for (const auto &[side, roughNs] :
             {std::pair{&candidate, trial.latencyNs.value}, {&*parent, parentNs}}) {
            const auto worker = fresh();
            if (!worker)
                return tl::unexpected(worker.error());
            const auto taken = latencyAlone(*side, correct, roughNs, compiler, context, **worker, trial);
            if (!taken && side == &candidate)
                return tl::unexpected(taken.error());
            ns.push_back(taken ? *taken : 0);
        }
        most = std::max(most, ns[0] > 0 ? ns[1] / ns[0] : 0);
    }
    const std::string ratio = most > 0 ? significantText(most, 3) + "×" : "not measured";
    trial.verdict.evidence.push_back({"apart", ratio + " where each has a process of its own, "
                                                   + significantText(gain->speedup.value, 3)
                                                   + "× beside each other"});
    if (most < wanted)
        gain->change = Change::Undecided;
    return {};
}

} // namespace klineage::gate
