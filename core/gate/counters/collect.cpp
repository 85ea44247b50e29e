// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/counters/collect.h"

#include "core/base/random.h"
#include "core/device/counters/hotspots.h"
#include "core/device/counters/metricsets.h"
#include "core/files/sha256.h"
#include "core/gate/counters/sass.h"
#include "core/gate/timing/timedbuffers.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace klineage::gate::counters {

namespace {

constexpr double startLimitSeconds = 60;
constexpr double longestReadSeconds = 60;
constexpr double longestDisassemblySeconds = 20;
constexpr double cacheMultiple = 2;
constexpr std::size_t deviceBudgetBytes = std::size_t{2} << 30;
const std::string side = "candidate";

template <typename T>
using Told = tl::expected<T, std::string>; ///< or why not, for the evidence

std::string textOf(const TrialEnd &end)
{
    const auto *verdict = std::get_if<Verdict>(&end);
    return verdict ? verdict->message : std::get<Error>(end).message;
}

tl::unexpected<std::string> told(const WorkerFailure &failure)
{
    return tl::unexpected(failure.error.message);
}

/// A fresh worker with the candidate's plan over enough sets that the caches do not help more than in timing.
class Bench
{
public:
    Bench(const PreparedCandidate &prepared, const CaseInstancePtr &timed, const TrialContext &context)
        : m_prepared(prepared)
        , m_timed(timed)
        , m_context(context)
    {}
    [[nodiscard]] Told<void> start(const std::vector<std::string> &workerCommand);
    [[nodiscard]] Told<SubjectId> place();
    [[nodiscard]] WorkerSession &session() { return *m_session; }
    [[nodiscard]] const PreparedCandidate &prepared() const { return m_prepared; }
    [[nodiscard]] double limitSeconds() const
    {
        return std::min(longestReadSeconds, m_context.deadline.secondsLeft());
    }

private:
    PreparedCandidate m_prepared;
    CaseInstancePtr m_timed;
    const TrialContext &m_context;
    std::unique_ptr<WorkerSession> m_session;
    std::unique_ptr<TimedBuffers> m_buffers;
};

Told<void> Bench::start(const std::vector<std::string> &workerCommand)
{
    if (m_context.deadline.passed())
        return tl::unexpected(std::string("the deadline left no time."));
    std::vector<std::string> command = workerCommand;
    command.insert(command.end(), {"--backend", "cuda"});
    auto session = WorkerSession::start(command, kernel::Surface::Cuda, startLimitSeconds, m_context.stop);
    if (!session)
        return told(session.error());
    m_session = std::move(*session);
    m_session->beginTrial(m_context.stop, m_context.deadline);
    return {};
}

Told<SubjectId> Bench::place()
{
    const TrialContext mine{
        m_context.job,      *m_session, m_context.stop, {}, m_context.deadline, m_context.launchLimitSeconds,
        m_context.instance, {}};
    const auto module = loadCandidate(m_prepared, mine);
    if (!module)
        return tl::unexpected(textOf(module.error()));
    const auto plan = resolveFor(m_prepared, mine, m_context.job.workload.cases.front());
    if (!plan)
        return tl::unexpected(textOf(plan.error()));
    const auto bytes = static_cast<double>(CheckedSet::tensorBytes(*m_timed));
    const double wanted = std::ceil(cacheMultiple * static_cast<double>(m_session->cacheBytes()) / bytes);
    const double affordable = std::max(1.0, static_cast<double>(deviceBudgetBytes) / bytes);
    const auto sets =
        std::min(mostSets, static_cast<std::size_t>(std::min(std::max(wanted, 2.0), affordable)));
    m_buffers = std::make_unique<TimedBuffers>(*m_session, std::vector<CaseInstancePtr>{m_timed});
    if (auto allocated = m_buffers->allocate(sets); !allocated)
        return told(allocated.error());
    if (auto allocated = m_buffers->allocateWorkspaces(side, *plan); !allocated)
        return told(allocated.error());
    if (auto drawn = m_buffers->redraw(entropy()); !drawn)
        return told(drawn.error());
    const auto subject = m_session->addPlan(*module, *plan, m_buffers->bindings(side));
    if (!subject)
        return told(subject.error());
    return *subject;
}

Told<void> readCounters(Bench &bench, const std::vector<std::string> &workerCommand, Trial &trial)
{
    if (auto started = bench.start(workerCommand); !started)
        return started;
    const auto subject = bench.place();
    if (!subject)
        return tl::unexpected(subject.error());
    // Set by set, so that one that cannot be read leaves what the others said.
    for (const MetricSet &set : metricSets()) {
        const auto metrics =
            bench.session().counters(*subject, {std::string(set.name)}, bench.limitSeconds());
        if (!metrics)
            return told(metrics.error());
        trial.metrics.insert(trial.metrics.end(), metrics->begin(), metrics->end());
    }
    return {};
}

Told<void> readHotspots(Bench &bench, const std::vector<std::string> &workerCommand, Trial &trial,
                        std::vector<ListedInstruction> &instructions)
{
    if (auto started = bench.start(workerCommand); !started)
        return started;
    if (auto prepared = bench.session().prepareSampling(bench.limitSeconds()); !prepared)
        return told(prepared.error());
    const auto subject = bench.place();
    if (!subject)
        return tl::unexpected(subject.error());
    const auto sampled =
        bench.session().sample(*subject, bench.prepared().compiled.binary, bench.limitSeconds());
    if (!sampled)
        return told(sampled.error());
    trial.metrics.insert(trial.metrics.end(), sampled->metrics.begin(), sampled->metrics.end());
    trial.hotspots = rankHotspots(sampled->instructions);
    instructions = sampled->instructions;
    return {};
}

/// The machine code with the samples that hit it, which the trial keeps.
Told<void> keepListing(const PreparedCandidate &prepared, const TrialContext &context,
                       const std::vector<ListedInstruction> &sampled, Trial &trial)
{
    const auto code =
        disassemble(prepared.compiled.binary, context.job.request.candidateName,
                    std::min(longestDisassemblySeconds, std::max(0.0, context.deadline.secondsLeft())));
    if (!code)
        return tl::unexpected(code.error().message);
    std::map<std::pair<std::string, std::uint64_t>, const ListedInstruction *> hits;
    for (const ListedInstruction &hit : sampled)
        hits.emplace(std::pair(hit.kernel, hit.offset), &hit);
    Listing listing;
    listing.compiler = prepared.compiled.compiler;
    for (const SassLine &line : *code) {
        const auto hit = hits.find({line.kernel, line.offset});
        ListedInstruction one = hit == hits.end() ? ListedInstruction{} : *hit->second;
        one.kernel = line.kernel;
        one.offset = line.offset;
        one.line = line.line;
        one.text = line.text;
        listing.instructions.push_back(std::move(one));
    }
    std::string text = writeListing(listing);
    if (text.size() > maxListingBytes)
        return tl::unexpected("the machine code is longer than " + std::to_string(maxListingBytes)
                              + " bytes as text.");
    trial.listing = files::sha256Hex(text);
    trial.listingText = std::move(text);
    return {};
}

} // namespace

void collect(const std::vector<std::string> &workerCommand, const PreparedCandidate &prepared,
             const CaseInstancePtr &timed, const TrialContext &context, Trial &trial)
{
    if (prepared.candidate.surface != kernel::Surface::Cuda) {
        trial.verdict.evidence.push_back({"counters", "not read: OpenCL offers no hardware counters."});
        return;
    }
    const auto tell = [&](const char *what, const Told<void> &done) {
        if (!done)
            trial.verdict.evidence.push_back({what, "not read: " + done.error()});
    };
    context.report(Stage::Profile, -1, "hardware counters");
    {
        Bench bench(prepared, timed, context);
        tell("counters", readCounters(bench, workerCommand, trial));
    }
    context.report(Stage::Profile, -1, "program counter samples");
    Bench bench(prepared, timed, context);
    std::vector<ListedInstruction> instructions;
    tell("hotspots", readHotspots(bench, workerCommand, trial, instructions));
    tell("listing", keepListing(prepared, context, instructions, trial));
}

} // namespace klineage::gate::counters
