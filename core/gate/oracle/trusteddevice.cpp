// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/oracle/trusteddevice.h"

#include "core/gate/oracle/kernels.h"
#include "core/gate/supervisor/trialcontext.h"

namespace klineage::gate {

namespace {

constexpr double startSeconds = 60;
constexpr double compileSeconds = 60;
constexpr double runSeconds = 60;
constexpr double totalSeconds = 120;

kernel::DeviceKind ownDevice()
{
    return kernel::deviceThat(&kernel::DeviceTraits::oracle);
}

} // namespace

tl::unexpected<Error> trustedFailure(const WorkerFailure &failure)
{
    if (failure.kind == FailureKind::Cancelled)
        return fail(ErrorCode::Cancelled, "The trial was cancelled.");
    return fail(ErrorCode::Unavailable, "its process failed: " + failure.error.message);
}

std::string TrustedDevice::Kernel::source() const
{
    return std::string(oracle::elementsCu) + text;
}

std::string TrustedDevice::Kernel::key() const
{
    std::string key = name;
    for (const auto &[tunable, value] : tunables)
        key += " " + tunable + "=" + std::to_string(value);
    return key;
}

TrustedDevice::TrustedDevice(std::vector<std::string> workerCommand, std::vector<std::string> compilerCommand,
                             CompileCache cache)
    : m_workerCommand(std::move(workerCommand))
    , m_compiler(std::move(compilerCommand), std::move(cache))
{}

void TrustedDevice::launch()
{
    const Lock mine = lock();
    if (m_session && m_session->alive())
        return;
    m_session.reset();
    m_modules.clear();
    ++m_generation;
    if (auto launched = WorkerSession::launch(m_workerCommand, ownDevice()))
        m_session = std::move(*launched);
}

void TrustedDevice::release(BufferId buffer, std::uint64_t generation)
{
    const Lock mine = lock();
    if (m_session && m_session->alive() && generation == m_generation)
        (void)m_session->release(buffer);
}

void TrustedDevice::discard()
{
    const Lock mine = lock();
    if (m_session && m_session->alive())
        m_session->discard();
}

Result<WorkerSession *> TrustedDevice::session(const std::stop_token &stop)
{
    if (!m_broken.empty())
        return fail(ErrorCode::Unavailable, m_broken);
    launch();
    WorkerResult<void> ready;
    if (m_session)
        ready = m_session->await(startSeconds, stop);
    if (!m_session || !ready) {
        m_session.reset();
        if (!ready && ready.error().kind == FailureKind::Cancelled)
            return trustedFailure(ready.error());
        // A driver that wants more files than the sandbox knows gets them where the kernel offers nothing else, as for a candidate.
        auto again = WorkerSession::start(m_workerCommand, ownDevice(), startSeconds, stop);
        if (!again) {
            if (again.error().kind == FailureKind::Unavailable)
                m_broken = "its process found no device: " + again.error().error.message;
            return trustedFailure(again.error());
        }
        m_session = std::move(*again);
    }
    m_session->beginTrial(stop, process::Deadline::in(totalSeconds));
    return m_session.get();
}

Result<TrustedDevice::Loaded *> TrustedDevice::load(const Kernel &kernel, const std::stop_token &stop)
{
    const std::string key = kernel.key();
    if (const auto known = m_modules.find(key); known != m_modules.end())
        return &known->second;
    auto candidate = kernel::parseCandidate(kernel.text, kernel.name);
    if (!candidate)
        return tl::unexpected(candidate.error());
    const auto target = candidate->surface.device().target(m_session->helloEnvironment().platform);
    const auto compiled = m_compiler.compile(
        {kernel::toString(candidate->surface), kernel.source(), kernel.name, kernel.tunables, target},
        compileSeconds, stop);
    if (!compiled)
        return trustedFailure(compiled.error());
    const std::string name = kernel.name;
    if (!compiled->ok)
        return fail(ErrorCode::Unavailable, name + " does not compile for " + target + ": " + compiled->log);
    const auto loaded = m_session->load(compiled->binary, {}, kernel.tunables, compileSeconds);
    if (!loaded)
        return trustedFailure(loaded.error());
    if (!loaded->module)
        return fail(ErrorCode::Unavailable, name + " cannot be loaded: " + loaded->error.message);
    return &(m_modules[key] = {*loaded->module, std::move(*candidate)});
}

Status TrustedDevice::run(const Kernel &kernel, const BufferSet &bindings, kernel::Bindings sizes,
                          const std::stop_token &stop)
{
    const auto loaded = load(kernel, stop);
    if (!loaded)
        return tl::unexpected(loaded.error());
    for (const auto &[name, value] : kernel.tunables)
        sizes[name] = value;
    std::vector<kernel::ResolvedBuffer> tensors;
    for (const auto &[name, binding] : bindings) // the kernel knows the shapes
        tensors.push_back({name, kernel::DType::U8, {1}});
    const auto plan = kernel::resolvePlan((*loaded)->candidate, tensors, sizes);
    if (!plan)
        return fail(ErrorCode::Unavailable, plan.error().message);
    const auto subject = m_session->addPlan((*loaded)->module, *plan, {bindings});
    if (!subject)
        return trustedFailure(subject.error());
    if (auto ran = m_session->run(*subject, 0, runSeconds); !ran)
        return trustedFailure(ran.error());
    if (auto removed = m_session->removeSubject(*subject); !removed)
        return trustedFailure(removed.error());
    return {};
}

} // namespace klineage::gate
