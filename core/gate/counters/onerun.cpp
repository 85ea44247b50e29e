// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/counters/onerun.h"

#include "core/device/compilers.h"
#include "core/device/counters/hotspots.h"
#include "core/device/counters/metricsets.h"
#include "core/device/worker/messages.h"
#include "core/gate/check/inputs.h"
#include "core/gate/supervisor/trialcontext.h"

#include <algorithm>

namespace klineage::gate::counters {

namespace {

using nlohmann::json;

constexpr std::uint64_t seed = 1;

/// The candidate on the device of this process.
class OneRun
{
public:
    [[nodiscard]] Status open(const OneRunOptions &options);
    /// Loads the module and binds fresh buffers.
    [[nodiscard]] Result<SubjectId> place();
    [[nodiscard]] Backend &backend() { return *m_backend; }
    [[nodiscard]] std::size_t sets() const { return m_sets; }
    [[nodiscard]] std::span<const std::byte> binary() const { return m_compiled.binary; }
    [[nodiscard]] json kernels() const;

private:
    [[nodiscard]] Status resolve();
    [[nodiscard]] Result<BufferSet> makeSet();

    std::unique_ptr<Backend> m_backend;
    workload::Workload m_workload;
    kernel::Candidate m_candidate;
    CompileOutput m_compiled;
    kernel::ResolvedPlan m_plan;
    std::vector<HostTensor> m_tensors;
    std::size_t m_sets = 1;
};

Status OneRun::open(const OneRunOptions &options)
{
    auto workload = workload::readWorkload(options.workload);
    if (!workload)
        return tl::unexpected(workload.error());
    m_workload = std::move(*workload);
    auto candidate = kernel::readCandidate(options.candidate);
    if (!candidate)
        return tl::unexpected(candidate.error());
    m_candidate = std::move(*candidate);
    auto backend = openCudaBackend();
    if (!backend)
        return tl::unexpected(backend.error());
    m_backend = std::move(*backend);
    std::map<std::string, std::int64_t> tunables;
    for (const kernel::Tunable &tunable : m_candidate.tunables)
        tunables[tunable.name] = tunable.defaultValue;
    auto compiled =
        compileBy(compilers(), {kernel::toString(m_candidate.surface), m_candidate.source,
                                options.candidate.filename().string(), tunables,
                                m_candidate.surface.device().target(m_backend->environment().platform)});
    if (!compiled)
        return tl::unexpected(compiled.error());
    if (!compiled->ok)
        return fail(ErrorCode::InvalidInput, "Cannot compile " + options.candidate.string() + ".",
                    compiled->log);
    m_compiled = std::move(*compiled);
    return resolve();
}

Status OneRun::resolve()
{
    const workload::Case &timed = m_workload.cases.front();
    const auto buffers = m_workload.buffersOf(timed);
    if (!buffers)
        return tl::unexpected(buffers.error());
    kernel::Bindings bindings = m_workload.bindings(timed);
    for (const auto &[name, value] : m_candidate.defaultTunables())
        bindings[name] = value;
    for (const auto &[name, value] : m_backend->deviceFacts())
        bindings[name] = value;
    auto plan = kernel::resolvePlan(m_candidate, *buffers, bindings);
    if (!plan)
        return tl::unexpected(plan.error());
    m_plan = std::move(*plan);
    auto tensors = generateCase(m_workload, timed, seed);
    if (!tensors)
        return tl::unexpected(tensors.error());
    m_tensors = std::move(*tensors);
    std::size_t bytes = 1;
    for (const HostTensor &tensor : m_tensors)
        bytes += tensor.elements() * kernel::sizeOf(tensor.dtype);
    m_sets = std::clamp<std::size_t>(2 * m_backend->cacheBytes() / bytes + 1, 2, mostSets);
    return {};
}

Result<BufferSet> OneRun::makeSet()
{
    BufferSet set;
    for (const HostTensor &tensor : m_tensors) {
        const auto buffer = m_backend->allocate(tensor.elements() * kernel::sizeOf(tensor.dtype));
        if (!buffer)
            return tl::unexpected(buffer.error());
        if (auto filled = m_backend->upload(*buffer, 0, tensor.bytes); !filled)
            return tl::unexpected(filled.error());
        set[tensor.name] = {*buffer, 0};
    }
    for (const kernel::ResolvedBuffer &workspace : m_plan.workspaces) {
        const auto buffer = m_backend->allocate(static_cast<std::size_t>(workspace.bytes()));
        if (!buffer)
            return tl::unexpected(buffer.error());
        set[workspace.name] = {*buffer, 0};
    }
    return set;
}

Result<SubjectId> OneRun::place()
{
    CompileOutput output;
    const auto module = m_backend->load(m_compiled.binary, {}, {}, output);
    if (!module)
        return tl::unexpected(module.error());
    std::vector<BufferSet> sets;
    for (std::size_t i = 0; i < m_sets; ++i) {
        auto set = makeSet();
        if (!set)
            return tl::unexpected(set.error());
        sets.push_back(std::move(*set));
    }
    return m_backend->addPlan(*module, m_plan, sets);
}

json OneRun::kernels() const
{
    json names = json::array();
    for (const kernel::ResolvedLaunch &launch : m_plan.launches)
        names.push_back(launch.kernel);
    return names;
}

} // namespace

Result<json> runOnce(const OneRunOptions &options)
{
    OneRun one;
    if (auto opened = one.open(options); !opened)
        return tl::unexpected(opened.error());
    const auto subject = one.place();
    if (!subject)
        return tl::unexpected(subject.error());
    json out = {{"kernels", one.kernels()}};
    if (options.launchOnly) {
        for (std::size_t run = 0; run < 3; ++run) {
            if (auto ran = one.backend().run(*subject, run % one.sets()); !ran)
                return tl::unexpected(ran.error());
        }
        return out;
    }
    std::vector<Metric> metrics;
    for (const MetricSet &set : metricSets()) {
        const auto read = one.backend().counters(*subject, {std::string(set.name)});
        if (read)
            metrics.insert(metrics.end(), read->begin(), read->end());
        else
            out["problems"].push_back(std::string(set.name) + ": " + read.error().message);
    }
    one.backend().removeSubject(*subject);
    const auto prepared = one.backend().prepareSampling();
    const auto again = prepared ? one.place() : Result<SubjectId>(tl::unexpected<Error>(prepared.error()));
    const auto lines = again ? one.backend().sample(*again, one.binary())
                             : Result<SampledCode>(tl::unexpected<Error>(again.error()));
    if (lines) {
        metrics.insert(metrics.end(), lines->metrics.begin(), lines->metrics.end());
        for (const Hotspot &spot : rankHotspots(lines->instructions))
            out["hotspots"].push_back({{"kernel", spot.kernel},
                                       {"line", spot.line},
                                       {"samples", spot.samples},
                                       {"stalls", spot.stalls}});
    } else {
        out["problems"].push_back("hotspots: " + lines.error().message);
    }
    out["metrics"] = protocol::write(metrics);
    return out;
}

} // namespace klineage::gate::counters
