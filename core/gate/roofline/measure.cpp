// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/roofline/measure.h"

#include "core/files/utctime.h"
#include "core/gate/roofline/kernels.h"
#include "core/gate/supervisor/trialcontext.h"
#include "core/trial/statistics.h"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace klineage::gate {

namespace {

using Tunables = std::map<std::string, std::int64_t>;

constexpr double runLimitSeconds = 20;
constexpr double mebibyte = 1 << 20;
constexpr std::int64_t vectorsOfCl = 64; ///< bytes of a float16
constexpr std::int64_t vectorsOfCu = 16; ///< bytes of a uint4
constexpr std::int64_t tileOfCu = 2048;  ///< vectors
constexpr std::int64_t mostLaunches = 64;
constexpr std::int64_t longestProbe = std::int64_t{1} << 22;

/// A built-in candidate with its sizes. What lengthens a sample is the number that `lengthener` names or, where a launch must see
/// everything only once, the number of launches.
struct Probe {
    const char *text = nullptr;
    const char *name = nullptr;
    Tunables tunables;
    kernel::Bindings sizes;
    std::string lengthener; ///< "PASSES", "ROUNDS"
    double work = 0;        ///< bytes or operations of one pass or round
    bool once = false;      ///< one pass a launch
};

/// Work per second of each sample.
using Speeds = std::vector<double>;

double bestOf(const Speeds &speeds)
{
    return speeds.empty() ? 0 : *std::max_element(speeds.begin(), speeds.end());
}

double spreadOf(const Speeds &speeds)
{
    return speeds.empty() ? 0 : 1 - median(speeds) / bestOf(speeds);
}

class Measurer
{
public:
    Measurer(WorkerSession &session, kernel::DeviceKind device, CompilerSession &compiler,
             const std::stop_token &stop)
        : m_session(session)
        , m_compiler(compiler)
        , m_stop(stop)
        , m_cuda(device == kernel::DeviceKind::Cuda)
        , m_platform(session.helloEnvironment().platform)
    {}

    [[nodiscard]] WorkerResult<void> bandwidths(Ceilings &ceilings,
                                                const std::function<void(const std::string &)> &progress);
    [[nodiscard]] WorkerResult<void> rates(Ceilings &ceilings,
                                           const std::function<void(const std::string &)> &progress);

private:
    [[nodiscard]] std::int64_t units() const
    {
        const auto found = m_session.facts().find("sm_count");
        const auto *count =
            found == m_session.facts().end() ? nullptr : std::get_if<std::int64_t>(&found->second);
        return count ? std::max<std::int64_t>(1, *count) : 1;
    }
    [[nodiscard]] int capability() const { return kernel::computeCapability(m_platform).value_or(0); }
    [[nodiscard]] WorkerResult<ModuleId> load(const kernel::Candidate &candidate, const Probe &probe);
    [[nodiscard]] WorkerResult<SubjectId> prepare(const kernel::Candidate &candidate, ModuleId module,
                                                  const Probe &probe, std::int64_t length);
    /// Finds a length of about sampleNs, and takes the samples.
    [[nodiscard]] WorkerResult<Speeds> speeds(const Probe &probe, std::size_t samples);
    [[nodiscard]] WorkerResult<void> launch(Ceilings &ceilings);
    [[nodiscard]] std::vector<double> footprints() const;
    [[nodiscard]] Probe stream(int kind, double footprintBytes, std::int64_t groups) const;
    [[nodiscard]] WorkerResult<Speeds> streamSpeeds(int kind, double footprintBytes);
    [[nodiscard]] std::vector<Probe> arithmetic(const std::string &rate) const;
    [[nodiscard]] WorkerResult<void> measureRate(const std::string &name, Ceilings &ceilings);

    WorkerSession &m_session;
    CompilerSession &m_compiler;
    std::stop_token m_stop;
    bool m_cuda;
    std::string m_platform;
    BufferId m_large = 0;
    BufferId m_small = 0;
    double m_largeBytes = 0;
    static constexpr double smallBytes = 4 * mebibyte;
};

WorkerResult<ModuleId> Measurer::load(const kernel::Candidate &candidate, const Probe &probe)
{
    CompileOutput compiled;
    const bool apart = candidate.surface->compiledApart;
    if (apart) {
        auto output = m_compiler.compile({kernel::toString(candidate.surface), candidate.source, probe.name,
                                          probe.tunables, candidate.surface.device().target(m_platform)},
                                         compileLimitSeconds, m_stop);
        if (!output)
            return tl::unexpected(output.error());
        compiled = std::move(*output);
        if (!compiled.ok)
            return tl::unexpected(WorkerFailure{
                FailureKind::Candidate,
                {ErrorCode::Internal, std::string("Cannot compile ") + probe.name + ".", compiled.log},
                {},
                {},
                0});
    }
    const auto loaded = m_session.load(compiled.binary, apart ? std::string() : candidate.source,
                                       probe.tunables, compileLimitSeconds);
    if (!loaded)
        return tl::unexpected(loaded.error());
    if (!loaded->module)
        return tl::unexpected(WorkerFailure{FailureKind::Candidate, loaded->error, {}, {}, 0});
    return *loaded->module;
}

WorkerResult<SubjectId> Measurer::prepare(const kernel::Candidate &candidate, ModuleId module,
                                          const Probe &probe, std::int64_t length)
{
    kernel::Bindings bindings = m_session.facts();
    for (const auto &[name, value] : probe.tunables)
        bindings[name] = value;
    for (const auto &[name, value] : probe.sizes)
        bindings[name] = value;
    bindings[probe.lengthener] = length;
    const std::vector<kernel::ResolvedBuffer> tensors = {
        {"a", kernel::DType::F32, {static_cast<std::int64_t>(m_largeBytes / 4)}},
        {"b", kernel::DType::F32, {static_cast<std::int64_t>(m_largeBytes / 4)}}};
    const auto plan = kernel::resolvePlan(candidate, tensors, bindings);
    if (!plan)
        return tl::unexpected(WorkerFailure{FailureKind::Candidate, plan.error(), {}, {}, 0});
    // A copy goes from the front of the large buffer to a place behind it; a pure reader's few results go to the small one.
    const auto kind = probe.tunables.find("KIND");
    const bool copies = kind != probe.tunables.end() && kind->second == 0;
    const bool writes = kind != probe.tunables.end() && kind->second == 2;
    const auto bytes = static_cast<std::size_t>(probe.work);
    const BufferSet set = {{"a", {m_large, 0}},
                           {"b", copies   ? BufferBinding{m_large, bytes / 2}
                                 : writes ? BufferBinding{m_large, 0}
                                          : BufferBinding{m_small, 0}}};
    return m_session.addPlan(module, *plan, {set});
}

WorkerResult<Speeds> Measurer::speeds(const Probe &probe, std::size_t samples)
{
    const double sampleNs = m_cuda ? 2e6 : 10e6;
    const auto candidate = kernel::parseCandidate(probe.text, probe.name);
    if (!candidate)
        return tl::unexpected(WorkerFailure{FailureKind::Machine, candidate.error(), {}, {}, 0});
    const auto module = load(*candidate, probe);
    if (!module)
        return tl::unexpected(module.error());
    const auto sampled = [&](std::int64_t length,
                             std::size_t count) -> WorkerResult<std::vector<TimedSample>> {
        const auto subject = prepare(*candidate, *module, probe, probe.once ? 1 : length);
        if (!subject)
            return tl::unexpected(subject.error());
        const int launches = probe.once ? static_cast<int>(std::min<std::int64_t>(length, mostLaunches)) : 1;
        auto taken = m_session.time(std::vector<TimedRun>(count, TimedRun{*subject, 0, launches, 0, true}),
                                    runLimitSeconds);
        if (!taken)
            return taken;
        if (auto removed = m_session.removeSubject(*subject); !removed)
            return tl::unexpected(removed.error());
        return taken;
    };
    // Judged by the fastest sample: on a busy machine one of a few steps can wait for a processor longer than a whole sample should take, and
    // what is then taken for long enough is all launch.
    std::int64_t length = 1;
    auto taken = sampled(length, samples);
    for (int attempt = 0; attempt < 6 && taken;
         ++attempt) { // the first may be all launch, and says too little
        const auto fastest = std::min_element(taken->begin(), taken->end(),
                                              [](const auto &a, const auto &b) { return a.ns < b.ns; });
        const double ns = std::max(fastest->ns, 1.0) * (probe.once ? static_cast<double>(length) : 1.0);
        if (ns > sampleNs / 2 || length == longestProbe)
            break;
        length = std::min<std::int64_t>(
            static_cast<std::int64_t>(static_cast<double>(length) * sampleNs / ns) + 1, longestProbe);
        taken = sampled(length, samples);
    }
    if (!taken)
        return tl::unexpected(taken.error());
    Speeds speeds;
    for (const TimedSample &sample : *taken)
        speeds.push_back(probe.work * (probe.once ? 1.0 : static_cast<double>(length)) / (sample.ns * 1e-9));
    if (auto unloaded = m_session.unload(*module); !unloaded)
        return tl::unexpected(unloaded.error());
    return speeds;
}

/// Within the last-level cache, and beyond it. Timed runs rotate over five caches where memory allows.
std::vector<double> Measurer::footprints() const
{
    const double cache = std::max(static_cast<double>(m_session.cacheBytes()), mebibyte);
    const double budget = m_cuda ? 4096 * mebibyte : 512 * mebibyte;
    const double perUnit = m_cuda ? 0 : 0.25 * mebibyte * static_cast<double>(units());
    std::vector<double> wanted = {perUnit, cache / 8, cache / 2, 5 * cache};
    if (m_cuda)
        wanted.push_back(16 * cache);
    std::vector<double> sizes;
    for (const double bytes : wanted) {
        // Whole tiles for every group, of either kind of kernel.
        const double grain =
            m_cuda ? 2.0 * tileOfCu * vectorsOfCu : 2.0 * 4 * vectorsOfCl * static_cast<double>(units());
        const double rounded = std::floor(std::min(bytes, budget) / grain) * grain;
        if (rounded > 0 && (sizes.empty() || rounded > 1.5 * sizes.back()))
            sizes.push_back(rounded);
    }
    return sizes;
}

Probe Measurer::stream(int kind, double footprintBytes, std::int64_t groups) const
{
    Probe probe;
    probe.text = m_cuda ? roofline::bandwidthCu : roofline::bandwidthCl;
    probe.name = m_cuda ? "bandwidth.cu" : "bandwidth.cl";
    probe.tunables = {{"KIND", kind}};
    const double each = m_cuda ? vectorsOfCu : vectorsOfCl;
    const double sides = kind == 0 ? 2 : 1;
    probe.sizes = {{"GROUPS", groups}, {"VECTORS", static_cast<std::int64_t>(footprintBytes / sides / each)}};
    probe.lengthener = "PASSES";
    probe.work = footprintBytes;
    return probe;
}

WorkerResult<Speeds> Measurer::streamSpeeds(int kind, double footprintBytes)
{
    const double sides = kind == 0 ? 2 : 1;
    const auto tiles = static_cast<std::int64_t>(footprintBytes / sides / (1.0 * vectorsOfCu * tileOfCu));
    const std::size_t samples = 6;
    // Groups that stay and loop suit what fits a cache; beyond it a group for each tile often wins. Those see their tile only once:
    // a second pass would find it in the cache.
    auto best =
        speeds(stream(kind, footprintBytes, m_cuda ? std::min(4 * units(), tiles) : units()), samples);
    if (!best || !m_cuda || footprintBytes < static_cast<double>(m_session.cacheBytes()))
        return best;
    Probe tiled = stream(kind, footprintBytes, tiles);
    tiled.once = true;
    auto other = speeds(tiled, samples);
    if (!other)
        return other;
    return bestOf(*other) > bestOf(*best) ? other : best;
}

WorkerResult<void> Measurer::bandwidths(Ceilings &ceilings,
                                        const std::function<void(const std::string &)> &progress)
{
    std::vector<double> sizes = footprints();
    const auto allocate = [&](double bytes) { return m_session.allocate(static_cast<std::size_t>(bytes)); };
    for (;; sizes.pop_back()) {
        if (sizes.empty())
            return tl::unexpected(
                WorkerFailure{FailureKind::Machine,
                              {ErrorCode::Internal, "Cannot allocate any device memory.", {}},
                              {},
                              {},
                              0});
        m_largeBytes = sizes.back();
        if (const auto large = allocate(m_largeBytes); large) {
            m_large = *large;
            break;
        } else if (!m_session.alive()) {
            return tl::unexpected(large.error());
        }
    }
    const auto small = allocate(smallBytes);
    if (!small)
        return tl::unexpected(small.error());
    m_small = *small;
    // The largest first, and writing first: pages that nobody wrote to are all one page.
    for (auto size = sizes.rbegin(); size != sizes.rend(); ++size) {
        progress("bandwidth over " + std::to_string(static_cast<long long>(*size / 1024)) + " KiB");
        BandwidthCeiling ceiling;
        ceiling.footprintBytes = *size;
        for (const int kind : {2, 0, 1}) {
            const auto measured = streamSpeeds(kind, *size);
            if (!measured)
                return tl::unexpected(measured.error());
            (kind == 0 ? ceiling.copy : kind == 1 ? ceiling.read : ceiling.write) = bestOf(*measured);
            if (kind == 0)
                ceiling.spread = spreadOf(*measured);
        }
        ceilings.bandwidths.insert(ceilings.bandwidths.begin(), ceiling);
    }
    return {};
}

/// Ways to reach a rate on this device; the fastest counts. Empty: the device has no such arithmetic.
std::vector<Probe> Measurer::arithmetic(const std::string &rate) const
{
    const double groups = static_cast<double>(4 * units());
    const kernel::Bindings four = {{"GROUPS", 4 * units()}};
    if (!m_cuda) {
        const std::int64_t isDouble = rate == "fp64" ? 1 : 0;
        std::vector<Probe> probes;
        for (const std::int64_t width : rate == "fp32"   ? std::vector<std::int64_t>{8, 16}
                                        : rate == "fp64" ? std::vector<std::int64_t>{4, 8}
                                                         : std::vector<std::int64_t>{}) {
            for (const std::int64_t fused : {0, 1})
                probes.push_back({roofline::fmaCl,
                                  "fma.cl",
                                  {{"DOUBLE", isDouble}, {"WIDTH", width}, {"FUSED", fused}},
                                  four,
                                  "ROUNDS",
                                  10.0 * 8 * static_cast<double>(width) * 2 * groups});
        }
        return probes;
    }
    const bool hopper = m_platform == "sm90";
    std::vector<Probe> probes;
    if (rate == "fp32" || rate == "fp64")
        probes.push_back({roofline::fmaCu,
                          "fma.cu",
                          {{"DOUBLE", rate == "fp64" ? 1 : 0}},
                          four,
                          "ROUNDS",
                          8.0 * 16 * 2 * 512 * groups});
    const auto mma = [&](std::int64_t type, double flops) {
        probes.push_back(
            {roofline::mmaCu, "mma.cu", {{"TYPE", type}}, four, "ROUNDS", flops * 8 * 8 * groups});
    };
    const auto wgmma = [&](std::int64_t type, double flops) {
        probes.push_back({roofline::wgmmaCu,
                          "wgmma.cu",
                          {{"TYPE", type}},
                          {{"GROUPS", units()}},
                          "ROUNDS",
                          flops * 4 * 2 * static_cast<double>(units())});
    };
    if (rate == "fp64" && capability() >= 80)
        mma(2, hopper ? 4096 : 512);
    if (rate == "tf32" && capability() >= 80)
        hopper ? wgmma(1, 2.0 * 64 * 256 * 8) : mma(1, 2048);
    if (rate == "bf16" && capability() >= 80)
        hopper ? wgmma(0, 2.0 * 64 * 256 * 16) : mma(0, 4096);
    if (rate == "fp8" && capability() >= 89)
        hopper ? wgmma(3, 2.0 * 64 * 256 * 32) : mma(3, 8192);
    return probes;
}

WorkerResult<void> Measurer::measureRate(const std::string &name, Ceilings &ceilings)
{
    RateCeiling ceiling;
    ceiling.name = name;
    for (Probe &probe : arithmetic(name)) {
        const bool tensor = probe.text == roofline::mmaCu || probe.text == roofline::wgmmaCu;
        probe.sizes["RANDOM"] = std::int64_t{1};
        const auto measured = speeds(probe, tensor ? 20 : 6);
        if (!measured) {
            if (m_session.alive() && measured.error().kind == FailureKind::Candidate)
                continue; // no double precision, say
            return tl::unexpected(measured.error());
        }
        double limit = bestOf(*measured);
        if (tensor) {
            probe.sizes["RANDOM"] = std::int64_t{0};
            const auto zeros = speeds(probe, 6);
            if (!zeros)
                return tl::unexpected(zeros.error());
            limit = std::max(limit, bestOf(*zeros));
        }
        if (bestOf(*measured) > ceiling.perSecond) {
            ceiling.perSecond = bestOf(*measured);
            ceiling.spread = spreadOf(*measured);
            ceiling.method = probe.text == roofline::wgmmaCu ? "wgmma" : tensor ? "mma.sync" : "multiply-add";
            // Blackwell's data-centre chips have tcgen05, which these kernels do not use.
            ceiling.isBound = !tensor || capability() < 100 || capability() >= 120;
        }
        ceiling.limit = std::max(ceiling.limit, limit);
    }
    if (ceiling.perSecond > 0)
        ceilings.rates.push_back(ceiling);
    return {};
}

/// Many runs of a kernel that has nothing to do, as timed samples of short candidates are.
WorkerResult<void> Measurer::launch(Ceilings &ceilings)
{
    const Probe probe = arithmetic("fp32").front();
    const auto candidate = kernel::parseCandidate(probe.text, probe.name);
    const auto module = candidate ? load(*candidate, probe) : WorkerResult<ModuleId>(0);
    if (!module)
        return tl::unexpected(module.error());
    const auto subject = prepare(*candidate, *module, probe, 0);
    if (!subject)
        return tl::unexpected(subject.error());
    const auto taken =
        m_session.time(std::vector<TimedRun>(8, TimedRun{*subject, 0, 64, 0, true}), runLimitSeconds);
    if (!taken)
        return tl::unexpected(taken.error());
    ceilings.launchNs = std::min_element(taken->begin(), taken->end(), [](const auto &a, const auto &b) {
                            return a.ns < b.ns;
                        })->ns;
    if (auto removed = m_session.removeSubject(*subject); !removed)
        return tl::unexpected(removed.error());
    return m_session.unload(*module);
}

WorkerResult<void> Measurer::rates(Ceilings &ceilings,
                                   const std::function<void(const std::string &)> &progress)
{
    for (const char *name : {"fp32", "fp64", "tf32", "bf16", "fp8"}) {
        progress(std::string("arithmetic in ") + name);
        if (auto measured = measureRate(name, ceilings); !measured)
            return measured;
    }
    return launch(ceilings);
}

Error errorOf(const WorkerFailure &failure)
{
    if (failure.kind == FailureKind::Cancelled)
        return {ErrorCode::Cancelled, "The measurement was cancelled.", {}};
    Error error = failure.error;
    if (failure.exit)
        error.message = "The worker that measured ended: " + failure.exit->describe() + ".";
    error.detail += failure.output;
    return error;
}

} // namespace

Result<Ceilings> measureCeilings(WorkerSession &session, kernel::DeviceKind device, CompilerSession &compiler,
                                 const std::stop_token &stop,
                                 const std::function<void(const std::string &)> &progress)
{
    const auto begin = std::chrono::steady_clock::now();
    Ceilings ceilings;
    ceilings.fingerprint = fingerprintOf(session.helloEnvironment());
    ceilings.time = files::nowUtc();
    ceilings.gateVersion = KLINEAGE_VERSION;
    Measurer measurer(session, device, compiler, stop);
    if (auto done = measurer.bandwidths(ceilings, progress); !done)
        return tl::unexpected(errorOf(done.error()));
    if (auto done = measurer.rates(ceilings, progress); !done)
        return tl::unexpected(errorOf(done.error()));
    ceilings.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return ceilings;
}

} // namespace klineage::gate
