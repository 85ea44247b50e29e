// SPDX-License-Identifier: GPL-3.0-or-later
//
// What profileCandidate() is made of: profile.cpp measures, profilelooks.cpp looks at what the timed runs left.
#pragma once

#include "core/gate/timing/decoys.h"
#include "core/gate/timing/measuredsides.h"
#include "core/gate/timing/profile.h"

#include <chrono>
#include <functional>

namespace klineage::gate {

class Profiler
{
public:
    Profiler(PreparedCandidate &candidate, const CorrectnessResult &correct, CompilerSession &compiler,
             const TrialContext &context, NoiseFloors &noise, Trial &trial);
    tl::expected<void, ProfileEnd> run(const ProfileRequest &request);

private:
    using Step = tl::expected<void, ProfileEnd>;

    const workload::Case &timedCase() const { return m_context.job.workload.cases.front(); }
    std::string noiseKey() const
    {
        // The spread depends on how long a run takes and what it touches, so one candidate's says little of another's.
        // Tunables make another kernel of it, and what a rough measurement saw says too little for a fine one.
        std::string key = m_context.job.workload.name + "/" + m_context.session.helloEnvironment().platform
                          + "/" + m_trial.candidate + "/"
                          + std::to_string(m_context.job.request.targetHalfWidth);
        for (const auto &[name, value] : m_trial.tunables)
            key += "/" + name + "=" + std::to_string(value);
        return key;
    }
    void note(const std::string &name, const std::string &value)
    {
        m_trial.verdict.evidence.push_back({name, value});
    }
    tl::unexpected<ProfileEnd> failed(const WorkerFailure &failure, Culprit culprit) const
    {
        return tl::unexpected(ProfileEnd{failureEnd(failure, m_where), culprit});
    }
    Step installHelpers();
    int roundsPerBlock(double secondsLeft) const;
    Step measure();
    Step measureBlock(const process::Deadline &limit);
    void decideStop(const process::Deadline &limit);
    std::optional<double> spread() const;
    Step checkReplay();
    Step compareReplays(bool &isSuspect);
    Step launchParent();
    Step measureEnergy();
    RoundState::Decoy decoy();
    RoundState::Decoy decoyElsewhere(std::size_t subject);
    std::vector<RoundState::Decoy> decoys();
    RoundResult judgeDecoy(const Decoy &decoy, const TimedSample &sample);
    RoundResult lookAtOne(const TimedRun &run);
    RoundResult untouched(std::size_t subject, const TimedRun &run, const TimedSample &sample) const;
    Step lookCloser(double blockSeconds);
    Step checkClock(bool first);
    Step checkClockOf(std::size_t subject, double runNs, double leastNs);
    RoundResult look(std::size_t subject, const TimedRun &run, const TimedSample &sample);
    RoundResult judged(const TimedOutputs::Looked<TimedOutputs::Wrong> &looked);
    Step blame(const RoundFailure &failure);
    StageResult<CaseInstancePtr> computeSet(std::size_t set);
    Step finish();
    Step compare(std::optional<double> spread);
    void comparePrecision(Comparison &comparison);
    void compareClock(Comparison &comparison);
    void compareLaunched(Comparison &comparison);

    PreparedCandidate &m_candidate;
    const CorrectnessResult &m_correct;
    CompilerSession &m_compiler;
    const TrialContext &m_context;
    NoiseFloors &m_noise;
    Trial &m_trial;
    Where m_where;
    double m_work;
    TimedBuffers m_buffers;
    TimedOutputs m_outputs;
    MeasuredSides m_sides;
    std::vector<TimedSubject> &m_subjects;
    RoundState m_state;
    std::vector<std::size_t> m_decoyContents;
    std::string m_stoppedBy;
    Precision m_precision;   ///< of the candidate's results
    bool m_compares = false; ///< with a parent or references
    double m_clockNs = 0;    ///< of a run of the candidate's, by a clock that was looked at; 0: none was
    bool m_forgiven = false; ///< launched one by one it takes longer, by no more than launching may
    double m_launchedNs = 0; ///< a run, launched so
    double m_parentLaunchedNs = 0; ///< the same of the parent's; 0: nobody asked
    double m_oracleSeconds = 0;    ///< for one set; 0: not known
    double m_lookSeconds = 0;      ///< of the looks at decoys so far
    const std::chrono::steady_clock::time_point m_begin = std::chrono::steady_clock::now();
};

} // namespace klineage::gate
