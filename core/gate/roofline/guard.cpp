// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/roofline/guard.h"

#include "core/base/numbertext.h"
#include "core/gate/roofline/measure.h"
#include "core/trial/analysis/figuretext.h"
#include "core/trial/analysis/roof.h"

#include <algorithm>
#include <charconv>

namespace klineage::gate {

namespace {

constexpr double startLimitSeconds = 60;
constexpr double measureLimitSeconds = 40;
constexpr int mostMeasured = 3; ///< once more each time that a kernel on the CPU seems too fast

/// What the tolerances and types leave room for: the least precise of the tensors, or what a declared tolerance amounts to.
std::string precisionOf(const workload::Workload &workload)
{
    using kernel::DType;
    int least = 4;
    for (const workload::Tensor &tensor : workload.tensors) {
        switch (tensor.dtype) {
        case DType::F64:
            break;
        case DType::F32:
            least = std::min(least, 3);
            break;
        case DType::TF32:
            least = std::min(least, 2);
            break;
        case DType::F16:
        case DType::BF16:
            least = std::min(least, 1);
            break;
        case DType::F8E4M3:
        case DType::F8E5M2:
            least = 0;
            break;
        case DType::I8:
        case DType::U8:
            return {}; // integer multipliers are not measured
        case DType::I64:
        case DType::I32:
        case DType::I16:
        case DType::U32:
            break; // indices
        }
    }
    if (workload.tolerance.relL2 > 1e-3)
        least = std::min(least, 1);
    else if (workload.tolerance.relL2 > 1e-4)
        least = std::min(least, 2);
    constexpr const char *names[] = {"fp8", "half", "tf32", "fp32", "fp64"};
    return names[least];
}

std::string whyOf(const Demand &demand, const Floor &floor)
{
    return floor.memoryNs >= floor.computeNs
               ? formatScaled(demand.bytes, "B") + " at " + formatScaled(floor.bandwidth, "B/s")
               : formatScaled(demand.flops, "FLOP") + " at " + formatScaled(floor.peak, "FLOP/s") + " of "
                     + floor.peakName;
}

std::size_t setsOf(const Trial &trial)
{
    for (const Evidence &evidence : trial.verdict.evidence) {
        std::size_t sets = 0;
        if (evidence.name == "buffer_sets"
            && std::from_chars(evidence.value.data(), evidence.value.data() + evidence.value.size(), sets).ec
                   == std::errc()
            && sets > 0)
            return sets;
    }
    return 1;
}

} // namespace

Demand demandOf(const workload::Workload &workload, std::size_t sets)
{
    Demand demand;
    const workload::Case &timed = workload.cases.front();
    const kernel::Bindings bindings = workload.bindings(timed);
    demand.flops = workload.leastFlops().evaluateReal(bindings).value_or(0);
    demand.bytes = workload.bytes.evaluateReal(bindings).value_or(0);
    demand.precision = precisionOf(workload);
    if (const auto tensors = workload.buffersOf(timed)) {
        for (const kernel::ResolvedBuffer &tensor : *tensors)
            demand.footprintBytes += static_cast<double>(tensor.bytes()) * static_cast<double>(sets);
    }
    return demand;
}

Verdict rooflineVerdict(double ns, const Demand &demand, const Floor &floor, const std::string &caseName)
{
    Verdict verdict;
    verdict.status = VerdictStatus::Suspect;
    verdict.stage = Stage::Profile;
    verdict.reason = "roofline";
    verdict.message = "It seems to take " + durationText(ns, 3) + ", less than the "
                      + durationText(floor.ns, 3) + " that this device needs at best for "
                      + whyOf(demand, floor) + ".";
    verdict.evidence = {{"case", caseName},
                        {"measured", durationText(ns, 3)},
                        {"floor", durationText(floor.ns, 3)},
                        {"margin", formatShare(floor.margin)},
                        {"bytes", fixedText(demand.bytes, 0)},
                        {"bandwidth", formatScaled(floor.bandwidth, "B/s")},
                        {"footprint", formatScaled(demand.footprintBytes, "B")},
                        {"flops", fixedText(demand.flops, 0)},
                        {"peak", formatScaled(floor.peak, "FLOP/s")}};
    verdict.hint =
        "The work was not done, or not within the timed region. When it honestly was, with an algorithm that needs fewer "
        "operations or bytes than the workload says, correct least_flops and bytes in workload.toml.";
    return verdict;
}

RooflineGuard::RooflineGuard(std::vector<std::string> workerCommand, std::filesystem::path directory)
    : m_workerCommand(std::move(workerCommand))
    , m_store(std::move(directory))
{}

Result<Ceilings> RooflineGuard::ceilings(kernel::DeviceKind device, const Environment &environment,
                                         bool again, CompilerSession &compiler, const std::stop_token &stop,
                                         const ProgressCallback &progress)
{
    if (m_store.directory().empty())
        return fail(ErrorCode::Unavailable, "There is no cache directory to keep the ceilings in.");
    const Fingerprint fingerprint = fingerprintOf(environment);
    if (!again) {
        if (const auto known = m_known.find(fingerprint); known != m_known.end())
            return known->second;
        if (auto kept = m_store.find(fingerprint))
            return m_known[fingerprint] = std::move(*kept);
        if (const auto failed = m_failed.find(fingerprint); failed != m_failed.end())
            return tl::unexpected(failed->second);
    }
    const auto report = [&](const std::string &what) {
        if (progress)
            progress({Stage::Profile, -1, "measuring what this device can do, once: " + what});
    };
    report("starting");
    std::vector<std::string> command = m_workerCommand;
    command.insert(command.end(), {"--backend", kernel::toString(device)});
    const auto worker = WorkerSession::start(command, device, startLimitSeconds, stop);
    if (!worker)
        return tl::unexpected(m_failed[fingerprint] = worker.error().error);
    (*worker)->beginTrial(stop, process::Deadline::in(measureLimitSeconds));
    auto measured = measureCeilings(**worker, device, compiler, stop, report);
    if (!measured) {
        if (measured.error().code != ErrorCode::Cancelled)
            m_failed[fingerprint] = measured.error();
        return measured;
    }
    if (const auto kept = m_store.find(measured->fingerprint))
        measured = mergeCeilings(*kept, *measured);
    (void)m_store.store(*measured); // what cannot be kept is measured again by the next supervisor
    return m_known[fingerprint] = std::move(*measured);
}

StageResult<void> RooflineGuard::judge(const GateJob &job, CompilerSession &compiler,
                                       const std::stop_token &stop, const ProgressCallback &progress,
                                       Trial &trial)
{
    const auto note = [&](const std::string &text) { trial.verdict.evidence.push_back({"roofline", text}); };
    if (trial.latencyNs.value <= 0)
        return {};
    const Demand demand = demandOf(job.workload, setsOf(trial));
    // A processor that others keep busy is measured too low for as long as they do.
    const int mostTimes = trial.surface.device().isHost ? mostMeasured : 1;
    for (int measured = 0; measured <= mostTimes; ++measured) {
        const bool again = measured > 0;
        const auto known =
            ceilings(trial.surface->device, trial.environment, again, compiler, stop, progress);
        if (!known) {
            if (known.error().code == ErrorCode::Cancelled)
                return tl::unexpected<TrialEnd>(known.error());
            // A second measurement that fails says nothing against the first.
            if (!again) {
                note("not measured: " + known.error().message);
                return {};
            }
        }
        const auto held =
            known ? known
                  : ceilings(trial.surface->device, trial.environment, false, compiler, stop, progress);
        if (!held)
            return {};
        recordRoof(*held, demand.footprintBytes, demand.precision, trial.environment);
        const Floor floor = rooflineFloor(demand, *held);
        if (!isBelow(trial.latencyNs.value, floor)) {
            note(floor.ns > 0 ? "floor " + durationText(floor.ns, 3) + ": " + whyOf(demand, floor)
                              : "no floor: " + floor.missing);
            return {};
        }
        if (measured == mostTimes)
            return tl::unexpected<TrialEnd>(
                rooflineVerdict(trial.latencyNs.value, demand, floor, job.workload.cases.front().name));
    }
    return {};
}

} // namespace klineage::gate
