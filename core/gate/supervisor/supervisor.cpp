// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/supervisor/supervisor.h"

#include "core/base/numbertext.h"
#include "core/base/random.h"
#include "core/device/hostfacts.h"
#include "core/device/opencl/scrubkernel.h"
#include "core/files/sha256.h"
#include "core/files/utctime.h"
#include "core/gate/check/hardcontent.h"
#include "core/gate/check/standing.h"
#include "core/gate/check/trivialpass.h"
#include "core/gate/counters/collect.h"
#include "core/gate/oracle/devicejudge.h"
#include "core/gate/oracle/oraclechoice.h"
#include "core/gate/references/python.h"
#include "core/gate/roofline/guard.h"
#include "core/gate/session/compileahead.h"
#include "core/gate/session/sandbox.h"
#include "core/gate/session/sanitizer.h"
#include "core/gate/supervisor/outcometext.h"
#include "core/gate/supervisor/seedcount.h"
#include "core/gate/supervisor/seedpool.h"
#include "core/gate/supervisor/stageclock.h"
#include "core/gate/supervisor/trust.h"
#include "core/gate/supervisor/trustedrun.h"
#include "core/gate/supervisor/turn.h"
#include "core/gate/timing/profile.h"

#include <algorithm>
#include <set>

namespace klineage::gate {

namespace {

constexpr double workerStartSeconds = 60;
constexpr double longestLaunchSeconds = 20;
constexpr const char *self = "/proc/self/exe";

} // namespace

struct Supervisor::Private {
    explicit Private(SupervisorOptions given)
        : options(std::move(given))
        , cache(options.cacheDirectory.empty() ? std::filesystem::path() : options.cacheDirectory / "cubin")
        , compiler(compilerCommand(), cache)
        , ahead(compilerCommand(), cache.ahead())
        , deviceOracle(workerCommand(kernel::deviceThat(&kernel::DeviceTraits::oracle)), compilerCommand(),
                       cache)
        , oracle(deviceOracle)
        , judge(deviceOracle.device())
        , builder(workerCommand(kernel::deviceThat(&kernel::DeviceTraits::isHost)),
                  kernel::deviceThat(&kernel::DeviceTraits::isHost))
        , roofline(workerCommand(), options.cacheDirectory.empty() ? std::filesystem::path()
                                                                   : options.cacheDirectory / "roofline")
        , pool(options.seedPool)
    {}

    [[nodiscard]] std::vector<std::string> compilerCommand() const
    {
        return options.compilerCommand.empty() ? std::vector<std::string>{self, "compile"}
                                               : options.compilerCommand;
    }
    [[nodiscard]] std::vector<std::string> workerCommand() const
    {
        return options.workerCommand.empty() ? std::vector<std::string>{self, "worker"}
                                             : options.workerCommand;
    }

    [[nodiscard]] std::vector<std::string> workerCommand(kernel::DeviceKind device) const
    {
        std::vector<std::string> command = workerCommand();
        command.insert(command.end(), {"--backend", kernel::toString(device)});
        return command;
    }

    /// A worker that is ready, on a device on which a trusted kernel was seen to work.
    WorkerResult<WorkerSession *> session(kernel::DeviceKind device, const std::stop_token &stop);
    WorkerResult<void> ensureStarted(kernel::DeviceKind device, const std::stop_token &stop);
    /// One that has run nothing: a spare, where there are such.
    WorkerResult<std::unique_ptr<WorkerSession>> freshWorker(kernel::DeviceKind device,
                                                             const std::stop_token &stop);
    /// A kernel on the CPU runs in the worker's own process, and could leave something there for what is timed, or for the next
    /// candidate. So each side that is timed, and the next trial, gets a fresh worker, which starts while the one before compiles and is checked.
    void launchSpares(const GateJob &job, kernel::DeviceKind device);
    /// The spares have started, and will not disturb what is timed from here on.
    void awaitSpares(const std::stop_token &stop);
    Result<CaseInstancePtr> instance(const workload::Workload &workload, const workload::Case &c,
                                     std::uint64_t seed);
    [[nodiscard]] ExpectedSource expectedSource()
    {
        return [this](const auto &workload, const auto &c, const auto &tensors, const auto &tolerance) {
            return oracle.compute(workload, c, tensors, tolerance);
        };
    }
    /// Once a workload: an Error when its timed case shows nothing. The instance is kept for the trial, which needs it anyway.
    Status checkWorkload(const GateJob &job, std::uint64_t seed);
    Trial newTrial(const GateJob &job) const;

    /// What the candidate's compiler refuses, while the device is another trial's.
    std::optional<Verdict> refusalBeforeTurn(const PreparedCandidate &prepared, const std::stop_token &stop,
                                             Trial &trial);
    StageResult<void> runTrial(const GateJob &job, const std::stop_token &stop,
                               const ProgressCallback &progress, Trial &trial);
    StageResult<void> runStages(WorkerSession &session, PreparedCandidate &prepared, const GateJob &job,
                                const std::stop_token &stop, const ProgressCallback &progress, Trial &trial);
    StageResult<void> profile(PreparedCandidate &prepared, const CorrectnessResult &correct,
                              const TrialContext &context, Trial &trial);
    StageResult<void> endUnavailable(PreparedCandidate &prepared, const Error &error, double deadlineSeconds,
                                     const std::stop_token &stop, Trial &trial);

    SupervisorOptions options;
    CompileCache cache;
    CompilerSession compiler;
    CompileAhead ahead;
    DeviceOracle deviceOracle;
    OracleChoice oracle;
    DeviceJudge judge;
    ProgramBuilder builder;
    StageClock clock;
    RooflineGuard roofline;
    std::map<kernel::DeviceKind, std::unique_ptr<WorkerSession>> sessions;
    std::set<kernel::DeviceKind> trusted;               ///< where the gate's own kernel ran and was right
    std::vector<std::unique_ptr<WorkerSession>> spares; ///< workers on the host, launched during a trial
    std::unique_ptr<WorkerSession> retired;             ///< ended; the present trial may still speak of it
    NoiseFloors noise;
    PythonSessions python;
    SeedPool pool;
    std::set<std::string> sound; ///< texts of the workloads whose timed case was found to show something
    CaseInstancePtr first; ///< of the timed case of the present trial, when the workload was just checked
};

WorkerResult<void> Supervisor::Private::ensureStarted(kernel::DeviceKind device, const std::stop_token &stop)
{
    auto &slot = sessions[device];
    if (slot && slot->alive())
        return {};
    slot.reset();
    auto started = freshWorker(device, stop);
    if (!started)
        return tl::unexpected(started.error());
    slot = std::move(*started);
    return {};
}

WorkerResult<std::unique_ptr<WorkerSession>> Supervisor::Private::freshWorker(kernel::DeviceKind device,
                                                                              const std::stop_token &stop)
{
    if (kernel::traitsOf(device).isHost && !spares.empty()) {
        auto spare = std::move(spares.back());
        spares.pop_back();
        if (spare->await(workerStartSeconds, stop))
            return spare;
        // another one may do better, or say better what is wrong
    }
    return WorkerSession::start(workerCommand(device), device, workerStartSeconds, stop);
}

WorkerResult<WorkerSession *> Supervisor::Private::session(kernel::DeviceKind device,
                                                           const std::stop_token &stop)
{
    if (auto started = ensureStarted(device, stop); !started)
        return tl::unexpected(started.error());
    auto &slot = sessions[device];
    if (options.trustedKernel && !trusted.contains(device)) {
        if (auto ran = runTrustedKernel(*slot, compiler, builder, device, stop); !ran)
            return tl::unexpected(ran.error());
        trusted.insert(device);
    }
    return slot.get();
}

void Supervisor::Private::launchSpares(const GateJob &job, kernel::DeviceKind device)
{
    const std::size_t wanted = MeasuredSides::mostWorkers(job, device) + 1;
    while (kernel::traitsOf(device).isHost && spares.size() < wanted) {
        auto launched = WorkerSession::launch(workerCommand(device), device);
        if (!launched)
            return;
        spares.push_back(std::move(*launched));
    }
}

void Supervisor::Private::awaitSpares(const std::stop_token &stop)
{
    std::erase_if(spares, [&](const auto &spare) { return !spare->await(workerStartSeconds, stop); });
}

Result<CaseInstancePtr> Supervisor::Private::instance(const workload::Workload &workload,
                                                      const workload::Case &c, std::uint64_t seed)
{
    const bool timed = &c == &workload.cases.front();
    if (timed && first && first->seed == seed)
        return first;
    return timed && pool.has(seed) ? pool.instance(workload, seed, expectedSource())
                                   : makeInstance(workload, c, seed, expectedSource());
}

Status Supervisor::Private::checkWorkload(const GateJob &job, std::uint64_t seed)
{
    const std::string text = workload::writeWorkload(job.workload);
    if (sound.contains(text))
        return {};
    const workload::Case &timed = job.workload.cases.front();
    auto made = [&] {
        const StageTime stage(&clock, &StageSeconds::oracle);
        return instance(job.workload, timed, seed);
    }();
    if (!made)
        return tl::unexpected(made.error());
    if (const auto pass = trivialPass((*made)->tensors, (*made)->expected, (*made)->tolerance))
        return tl::unexpected(trivialError(job.workload.name, timed.name, *pass));
    sound.insert(text);
    first = std::move(*made);
    return {};
}

Trial Supervisor::Private::newTrial(const GateJob &job) const
{
    Trial trial;
    trial.id = randomId();
    trial.time = files::nowUtc();
    trial.workload = job.workload.name;
    trial.candidate = files::sha256Hex(job.request.candidateText);
    trial.file = job.request.candidateName;
    trial.replayOf = job.request.replayOf;
    if (!job.request.parentText.empty())
        trial.parent = files::sha256Hex(job.request.parentText);
    trial.gateVersion = KLINEAGE_VERSION;
    trial.environment.platform = "none";
    trial.environment.facts = hostFacts();
    trial.environment.facts["isolation"] = process::describe(process::isolationSupport());
    return trial;
}

StageResult<void> Supervisor::Private::endUnavailable(PreparedCandidate &prepared, const Error &error,
                                                      double deadlineSeconds, const std::stop_token &stop,
                                                      Trial &trial)
{
    const std::string target = prepared.candidate.surface.device().target({});
    std::optional<std::string> noCompiler;
    if (prepared.candidate.surface->compiledApart) {
        ahead.setTarget(target);
        const auto deadline = process::Deadline::in(deadlineSeconds);
        ahead.await(prepared.candidate.source, prepared.tunables,
                    std::min(longestLaunchSeconds, deadlineSeconds), stop);
        // Without a device the compiler still has its say. When it is missing too, the missing device is the news.
        auto compiled = compileCandidate(prepared, compiler, target, deadline.secondsLeft(), stop);
        const auto *missing = compiled ? nullptr : std::get_if<Error>(&compiled.error());
        if (missing && missing->code != ErrorCode::Cancelled)
            noCompiler = missing->message;
        else if (!compiled)
            return compiled;
        trial.metrics = prepared.compiled.metrics;
    }
    Verdict verdict = unavailableVerdict(error, prepared, target);
    if (noCompiler)
        verdict.evidence.push_back({"compiler", *noCompiler});
    return tl::unexpected<TrialEnd>(std::move(verdict));
}

StageResult<void> Supervisor::Private::profile(PreparedCandidate &prepared, const CorrectnessResult &correct,
                                               const TrialContext &context, Trial &trial)
{
    ProfileRequest wanted;
    std::vector<Evidence> notes;
    WorkerSession *worker = &context.session;
    const kernel::DeviceKind device = trial.surface->device;
    FurtherWorkers further([&] { return freshWorker(device, context.stop); });
    const auto fresh = [&]() -> StageResult<void> {
        further.discard();
        worker->discard();
        const auto started = session(device, context.stop);
        if (!started)
            return tl::unexpected(environmentEnd(started.error()));
        worker = *started;
        worker->beginTrial(context.stop, context.deadline);
        return {};
    };
    const bool isHost = trial.surface.device().isHost;
    if (isHost) {
        // Kernels on the CPU run in the worker's process, whose memory keeps what checked runs left outside of buffers. What is timed runs in
        // others.
        retired = std::move(sessions[device]);
        if (auto started = fresh(); !started)
            return started;
    }
    for (;;) {
        Trial attempt = trial;
        attempt.verdict.evidence.insert(attempt.verdict.evidence.end(), notes.begin(), notes.end());
        TrialContext mine = context.on(*worker);
        mine.python = &python;
        mine.further = isHost ? &further : nullptr;
        const auto done = profileCandidate(prepared, correct, compiler, wanted, mine, noise, attempt);
        if (done) {
            trial = std::move(attempt);
            return {};
        }
        const auto *verdict = std::get_if<Verdict>(&done.error().end);
        if (done.error().culprit == Culprit::Candidate || !verdict)
            return tl::unexpected(done.error().end);
        // The other side failed: its failure is told, and the candidate is measured without it, in fresh workers.
        const bool parent = done.error().culprit == Culprit::Parent;
        (parent ? wanted.withParent : wanted.withReference) = false;
        notes.push_back({parent ? "parent" : "reference", "not compared: " + verdict->message});
        if (auto started = fresh(); !started)
            return started;
    }
}

StageResult<void> Supervisor::Private::runStages(WorkerSession &worker, PreparedCandidate &prepared,
                                                 const GateJob &job, const std::stop_token &stop,
                                                 const ProgressCallback &progress, Trial &trial)
{
    auto deadline = process::Deadline::in(job.request.deadlineSeconds);
    worker.beginTrial(stop, deadline);
    launchSpares(job, prepared.candidate.surface->device);
    trial.environment = worker.helloEnvironment();
    const int seeds = seedsOf(job);
    TrialContext context{
        job,
        worker,
        stop,
        progress,
        deadline,
        std::clamp(job.request.deadlineSeconds / 4, 2.0, longestLaunchSeconds),
        [&](const workload::Case &c, std::uint64_t seed) { return instance(job.workload, c, seed); },
        pool.draw(seeds + unseenSeeds(job.workload))};
    context.unseenSeeds.assign(context.timedSeeds.begin() + seeds, context.timedSeeds.end());
    context.timedSeeds.resize(static_cast<std::size_t>(seeds));
    // A replayed trial lists a seed for each case but the first, then those of the first; one that ended early lists fewer. What timed
    // runs read is drawn anew in any case.
    const auto &replayed = job.request.replaySeeds;
    const std::size_t others = job.workload.cases.size() - 1;
    if (replayed.size() > others)
        context.timedSeeds.assign(replayed.begin() + static_cast<std::ptrdiff_t>(others), replayed.end());
    // A trial that ended before it came to its last seed is replayed as far.
    context.hardLast = seeds > 1 && context.timedSeeds.size() == static_cast<std::size_t>(seeds);
    context.expected = expectedSource();
    context.clock = &clock;
    context.judge = &judge;
    context.builder = &builder;
    const bool host = prepared.candidate.surface.device().isHost;
    context.transfersAreOurs = !host;
    std::unique_ptr<CaseQueue> cases; // while the compiler runs, where the workload is known to be sound
    if (!host && sound.contains(workload::writeWorkload(job.workload)))
        cases = queueCases(context, true);
    context.report(Stage::Compile, -1, "compiling");
    if (prepared.candidate.surface->compiledApart) {
        const std::string target = prepared.candidate.surface.device().target(trial.environment.platform);
        ahead.setTarget(target);
        ahead.await(prepared.candidate.source, prepared.tunables, deadline.secondsLeft() / 2, stop);
        if (auto compiled = compileCandidate(prepared, compiler, target, deadline.secondsLeft(), stop);
            !compiled)
            return compiled;
    }
    const auto module = loadCandidate(prepared, context);
    trial.metrics = prepared.compiled.metrics;
    if (!prepared.compiled.compiler.empty())
        trial.environment.facts["compiler"] = prepared.compiled.compiler;
    if (!module)
        return tl::unexpected(module.error());
    for (const workload::Case &c : job.workload.cases) {
        if (auto plan = resolveFor(prepared, context, c); !plan)
            return tl::unexpected(plan.error());
    }
    (void)clock.enter(&StageSeconds::check);
    if (!cases) {
        const auto workable = [&] {
            const OwnTime own(context, OwnTime::Work::Oracle);
            return checkWorkload(job, context.timedSeeds.front());
        }();
        if (!workable)
            return tl::unexpected<TrialEnd>(workable.error());
        cases = queueCases(context, !host);
    }
    CorrectnessResult correct;
    const auto checked = checkCorrectness(prepared, *module, context, *cases, correct);
    cases.reset(); // it uses the oracle, and `first`
    first.reset();
    trial.seeds = correct.seeds;
    if (worker.sealed())
        trial.environment.facts["isolation"] += ", sealed";
    sayTrust(trial);
    for (const std::string &shape : correct.drawn)
        trial.verdict.evidence.push_back({"drawn_case", shape});
    if (trial.surface.device().oracle || oracle.isPython())
        trial.verdict.evidence.push_back({"oracle", oracle.summary()});
    if (!checked)
        return checked;
    (void)clock.enter(&StageSeconds::profile);
    // The module is loaded anew for timing, so that nothing it kept from these launches helps it.
    if (auto unloaded = worker.unload(*module); !unloaded)
        return tl::unexpected(failureEnd(unloaded.error(), {}));
    if (job.request.sanitize && prepared.candidate.surface.device().sanitizer) {
        if (auto sane = sanitize(prepared, workerCommand(prepared.candidate.surface->device), context, trial);
            !sane)
            return sane;
    }
    awaitSpares(stop);
    if (auto profiled = profile(prepared, correct, context, trial); !profiled)
        return profiled;
    if (const std::string said = judge.summary(); !said.empty())
        trial.verdict.evidence.push_back({"comparison", said});
    if (auto judged = roofline.judge(job, compiler, stop, progress, trial); !judged)
        return judged;
    if (job.request.counters)
        counters::collect(workerCommand(), prepared, correct.timed.front(), context, trial);
    return {};
}

std::optional<Verdict> Supervisor::Private::refusalBeforeTurn(const PreparedCandidate &prepared,
                                                              const std::stop_token &stop, Trial &trial)
{
    const kernel::DeviceKind device = trial.surface->device;
    clock.begin();
    if (trial.surface.device().isHost) {
        const auto worker = WorkerSession::start(workerCommand(device), device, workerStartSeconds, stop);
        if (!worker)
            return std::nullopt;
        (void)clock.enter(&StageSeconds::compile);
        (*worker)->beginTrial(stop, process::Deadline::in(longestLaunchSeconds));
        auto refusal = compileRefusal(prepared, **worker);
        if (!refusal)
            return refusal;
        // A compiler that refuses the gate's own program too says nothing of this one.
        const auto own = (*worker)->load({}, opencl::scrubSource, {}, workerStartSeconds);
        if (!own || !own->module)
            return std::nullopt;
        trial.environment = (*worker)->helloEnvironment();
        return refusal;
    }
    // Another platform's compiler may refuse what this one's takes.
    const auto session = sessions.find(device);
    if (session == sessions.end() || !session->second || !session->second->alive())
        return std::nullopt;
    (void)clock.enter(&StageSeconds::compile);
    const Environment &where = session->second->helloEnvironment();
    auto refusal = compileRefusal(prepared, compiler, trial.surface.device().target(where.platform), stop);
    if (refusal)
        trial.environment = where;
    return refusal;
}

StageResult<void> Supervisor::Private::runTrial(const GateJob &job, const std::stop_token &stop,
                                                const ProgressCallback &progress, Trial &trial)
{
    auto prepared = prepareCandidate("candidate", job.request.candidateText, job.request.candidateName,
                                     job.request.tunables, &job.workload);
    if (!prepared)
        return tl::unexpected(prepared.error());
    trial.surface = prepared->candidate.surface;
    trial.tunables = prepared->tunables;
    if (options.seedPool > 0)
        trial.verdict.evidence.push_back({"seed_pool", std::to_string(options.seedPool)});
    DeviceTurn turn;
    std::function<std::optional<Verdict>()> refusal;
    if (job.request.quick) // somebody waits for it; elsewhere no compiler is to disturb what is timed
        refusal = [&] { return refusalBeforeTurn(*prepared, stop, trial); };
    if (auto awaited = awaitTurn(turn, options.turnDirectory, refusal, stop, progress, trial); !awaited)
        return awaited;
    clock.begin();
    builder.beginTrial();
    const bool keeps = options.seedPool <= 0; // on the device: not for as long as a pool lasts
    oracle.beginTrial(trial.surface->device, job.workload, keeps, stop);
    judge.beginTrial(keeps && trial.surface.device().oracle, stop);
    auto worker = session(trial.surface->device, stop);
    (void)clock.enter(&StageSeconds::compile);
    if (!worker) {
        if (worker.error().kind == FailureKind::Unavailable)
            return endUnavailable(*prepared, worker.error().error, job.request.deadlineSeconds, stop, trial);
        return tl::unexpected(environmentEnd(worker.error()));
    }
    auto done = runStages(**worker, *prepared, job, stop, progress, trial);
    if (trial.surface.device().isHost) {
        sessions.erase(trial.surface->device);
        retired.reset();
        return done;
    }
    WorkerSession *used = sessions[trial.surface->device].get();
    const auto *verdict = done ? nullptr : std::get_if<Verdict>(&done.error());
    python.end();
    // An out-of-bounds store may have hit anything in the worker; a time that cannot be may come of a clock that was changed.
    if (used && verdict
        && (verdict->status == VerdictStatus::Unsafe || verdict->status == VerdictStatus::Suspect))
        used->discard();
    else if (used && used->alive())
        (void)used->clear(); // a failure ends the session, and the next trial starts another
    return done;
}

Supervisor::Supervisor(SupervisorOptions options)
    : m_d(std::make_unique<Private>(std::move(options)))
{}

Supervisor::~Supervisor() = default;

Result<Trial> Supervisor::gate(const GateJob &asked, const std::stop_token &stop,
                               const ProgressCallback &progress)
{
    const GateJob job{withStandingHardness(asked.workload), asked.request};
    const GateRequest &request = job.request;
    if (request.seeds < 1 || request.seeds > mostSeeds || request.minRounds < 1
        || !(request.deadlineSeconds > 0) || !(request.profileSeconds >= 0) || !(request.targetHalfWidth > 0))
        return fail(ErrorCode::InvalidInput, "Cannot gate: seeds must be 1 to " + std::to_string(mostSeeds)
                                                 + ", and rounds, seconds and half-width positive.");
    if (request.replaySeeds.empty() != request.replayOf.empty()
        || request.replaySeeds.size() > job.workload.cases.size() + mostSeeds)
        return fail(ErrorCode::InvalidInput, "Cannot replay: the trial " + request.replayOf + " has "
                                                 + std::to_string(request.replaySeeds.size())
                                                 + " seeds, which are none of this workload's.");
    Trial trial = m_d->newTrial(job);
    const auto done = m_d->runTrial(job, stop, progress, trial);
    trial.stages = m_d->clock.end();
    if (!done) {
        if (const auto *error = std::get_if<Error>(&done.error()))
            return tl::unexpected(*error);
        auto notes = std::move(trial.verdict.evidence);
        trial.verdict = std::get<Verdict>(done.error());
        if (trial.verdict.status == VerdictStatus::Timeout && trial.verdict.stage == Stage::Profile)
            sayWhatWasShown(trial, job.workload.cases.size());
        trial.verdict.evidence.insert(trial.verdict.evidence.end(), notes.begin(), notes.end());
        return trial;
    }
    trial.verdict.status = VerdictStatus::Correct;
    trial.verdict.stage = Stage::Profile;
    trial.verdict.reason = "ok";
    trial.verdict.message = successMessage(trial, job.workload.cases.size());
    return trial;
}

void Supervisor::compileAhead(const GateRequest &request)
{
    auto prepared = prepareCandidate("candidate", request.candidateText, request.candidateName,
                                     request.tunables, nullptr);
    // A compiler that decides about launches is told of the workload's tensors, which are not known yet.
    if (prepared && prepared->candidate.surface->compiledApart
        && !prepared->candidate.surface->compilerDecides)
        m_d->ahead.add({kernel::toString(prepared->candidate.surface), std::move(prepared->candidate.source),
                        std::move(prepared->name), std::move(prepared->tunables)});
}

std::vector<DeviceInfo> Supervisor::devices(const std::stop_token &stop)
{
    std::vector<DeviceInfo> devices;
    for (const kernel::DeviceTraits &traits : kernel::deviceTable()) {
        DeviceInfo info;
        info.kind = traits.kind;
        const auto worker = m_d->session(traits.kind, stop);
        info.available = worker.has_value();
        info.detail = worker ? (*worker)->helloEnvironment().platform : worker.error().error.message;
        if (worker) {
            const Environment &environment = (*worker)->helloEnvironment();
            info.name = environment.device;
            info.platform = environment.platform;
            for (const char *fact : {"compiler", "driver", "cuda_driver"}) {
                if (const auto known = environment.facts.find(fact); known != environment.facts.end())
                    info.detail += ", " + std::string(fact) + " " + known->second;
            }
        }
        devices.push_back(std::move(info));
    }
    return devices;
}

Result<Ceilings> Supervisor::ceilings(kernel::DeviceKind device, bool again, const std::stop_token &stop,
                                      const ProgressCallback &progress)
{
    const auto worker = m_d->session(device, stop);
    if (!worker)
        return tl::unexpected(worker.error().error);
    return m_d->roofline.ceilings(device, (*worker)->helloEnvironment(), again, m_d->compiler, stop,
                                  progress);
}

OperationTimes Supervisor::operations(kernel::DeviceKind device) const
{
    const auto &session = m_d->sessions[device];
    return session ? session->operations() : OperationTimes{};
}

pid_t Supervisor::workerPid(kernel::DeviceKind device) const
{
    const auto &spares = m_d->spares;
    const bool fromSpares = !m_d->sessions[device] && kernel::traitsOf(device).isHost && !spares.empty();
    const auto &next = fromSpares ? spares.back() : m_d->sessions[device];
    return next && next->alive() ? next->pid() : -1;
}

} // namespace klineage::gate
