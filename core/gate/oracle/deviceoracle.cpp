// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/oracle/deviceoracle.h"

#include "core/gate/check/oracle.h"
#include "core/gate/check/parallel.h"
#include "core/gate/oracle/smallcases.h"
#include "core/gate/supervisor/trialcontext.h"

namespace klineage::gate {

namespace {

constexpr double oracleStartSeconds = 60;
constexpr double oracleCompileSeconds = 60;
constexpr double oracleRunSeconds = 60;
constexpr double oracleTotalSeconds = 120;

/// One compiled kernel.
std::string kernelKeyOf(const OracleJob &job)
{
    std::string key = job.name;
    for (const auto &[name, value] : job.tunables)
        key += " " + name + "=" + std::to_string(value);
    return key;
}

/// What the small cases are like.
std::string checkKeyOf(const OracleJob &job)
{
    std::string key = kernelKeyOf(job);
    for (const char *size : {"WINDOW", "GROUPS", "DIM", "HEADS", "KV_HEADS"}) {
        if (const auto found = job.sizes.find(size); found != job.sizes.end())
            key += " " + std::string(size) + "=" + std::to_string(std::get<std::int64_t>(found->second));
    }
    return key;
}

tl::unexpected<Error> because(const WorkerFailure &failure)
{
    if (failure.kind == FailureKind::Cancelled)
        return fail(ErrorCode::Cancelled, "The trial was cancelled.");
    return fail(ErrorCode::Unavailable, "its process failed: " + failure.error.message);
}

template <typename T>
std::vector<T> copiedAs(std::span<const std::byte> bytes)
{
    std::vector<T> values(bytes.size() / sizeof(T));
    parallelCopy(reinterpret_cast<std::byte *>(values.data()), bytes);
    return values;
}

} // namespace

DeviceOracle::DeviceOracle(std::vector<std::string> workerCommand, std::vector<std::string> compilerCommand,
                           CompileCache cache)
    : m_workerCommand(std::move(workerCommand))
    , m_compiler(std::move(compilerCommand), std::move(cache))
{}

void DeviceOracle::launch()
{
    if (m_session && m_session->alive())
        return;
    m_session.reset();
    m_modules.clear();
    m_verdicts.clear();
    if (auto launched = WorkerSession::launch(m_workerCommand, kernel::DeviceKind::Cuda))
        m_session = std::move(*launched);
}

Result<WorkerSession *> DeviceOracle::session(const std::stop_token &stop)
{
    if (!m_broken.empty())
        return fail(ErrorCode::Unavailable, m_broken);
    launch();
    WorkerResult<void> ready;
    if (m_session)
        ready = m_session->await(oracleStartSeconds, stop);
    if (!m_session || !ready) {
        m_session.reset();
        if (!ready && ready.error().kind == FailureKind::Cancelled)
            return because(ready.error());
        // A driver that wants more files than the sandbox knows gets them where the kernel offers nothing else, as for a candidate.
        auto again =
            WorkerSession::start(m_workerCommand, kernel::DeviceKind::Cuda, oracleStartSeconds, stop);
        if (!again) {
            if (again.error().kind == FailureKind::Unavailable)
                m_broken = "its process found no device: " + again.error().error.message;
            return because(again.error());
        }
        m_session = std::move(*again);
    }
    m_session->beginTrial(stop, process::Deadline::in(oracleTotalSeconds));
    return m_session.get();
}

Result<DeviceOracle::Loaded *> DeviceOracle::load(const OracleJob &job, const std::stop_token &stop)
{
    const std::string key = kernelKeyOf(job);
    if (const auto known = m_modules.find(key); known != m_modules.end())
        return &known->second;
    auto candidate = kernel::parseCandidate(job.text, job.name);
    if (!candidate)
        return tl::unexpected(candidate.error());
    const auto target = compileTarget(m_session->helloEnvironment().platform);
    const auto compiled = m_compiler.compile(
        {kernel::toString(candidate->surface), job.source(), job.name, job.tunables, target},
        oracleCompileSeconds, stop);
    if (!compiled)
        return because(compiled.error());
    if (!compiled->ok)
        return fail(ErrorCode::Unavailable,
                    std::string(job.name) + " does not compile for " + target + ": " + compiled->log);
    const auto loaded = m_session->load(compiled->binary, {}, job.tunables, oracleCompileSeconds);
    if (!loaded)
        return because(loaded.error());
    if (!loaded->module)
        return fail(ErrorCode::Unavailable,
                    std::string(job.name) + " cannot be loaded: " + loaded->error.message);
    return &(m_modules[key] = {*loaded->module, std::move(*candidate)});
}

WorkerResult<ExpectedOutputs> DeviceOracle::performOn(WorkerSession &session, const Loaded &loaded,
                                                      const kernel::ResolvedPlan &plan, const OracleJob &job)
{
    BufferSet set;
    for (const OracleJob::Buffer &input : job.inputs) {
        const auto id = session.allocate(input.bytes.size());
        if (!id)
            return tl::unexpected(id.error());
        set[input.name] = {*id, 0};
        const auto room = session.staging(input.bytes.size());
        if (!room)
            return tl::unexpected(room.error());
        parallelCopy(room->data(), input.bytes);
        if (auto uploaded = session.uploadStaged(*id, input.bytes.size()); !uploaded)
            return tl::unexpected(uploaded.error());
    }
    const std::size_t bytes = job.elements * (job.wide ? sizeof(double) : sizeof(float));
    const auto out = session.allocate(bytes);
    if (!out)
        return tl::unexpected(out.error());
    set["out"] = {*out, 0};
    const auto subject = session.addPlan(loaded.module, plan, {set});
    if (!subject)
        return tl::unexpected(subject.error());
    if (auto ran = session.run(*subject, 0, oracleRunSeconds); !ran)
        return tl::unexpected(ran.error());
    const auto image = session.download(*out, bytes);
    if (!image)
        return tl::unexpected(image.error());
    ExpectedOutputs expected;
    if (job.wide)
        expected[job.output] = copiedAs<double>(*image);
    else
        expected[job.output] = copiedAs<float>(*image);
    if (auto removed = session.removeSubject(*subject); !removed)
        return tl::unexpected(removed.error());
    for (const auto &[name, binding] : set) {
        if (auto released = session.release(binding.buffer); !released)
            return tl::unexpected(released.error());
    }
    return expected;
}

Result<ExpectedOutputs> DeviceOracle::perform(const OracleJob &job, const std::stop_token &stop)
{
    const auto loaded = load(job, stop);
    if (!loaded)
        return tl::unexpected(loaded.error());
    kernel::Bindings bindings = job.sizes;
    for (const auto &[name, value] : job.tunables)
        bindings[name] = value;
    std::vector<kernel::ResolvedBuffer> tensors;
    for (const OracleJob::Buffer &input : job.inputs) // the kernel knows the shapes
        tensors.push_back({input.name, kernel::DType::U8, {1}});
    tensors.push_back({"out", job.wide ? kernel::DType::F64 : kernel::DType::F32, {1}});
    const auto plan = kernel::resolvePlan((*loaded)->candidate, tensors, bindings);
    if (!plan)
        return fail(ErrorCode::Unavailable, plan.error().message);
    auto expected = performOn(*m_session, **loaded, *plan, job);
    if (expected)
        return std::move(*expected);
    // Out of memory, say: what was allocated for it must not stay.
    if (m_session->alive())
        m_session->discard();
    return because(expected.error());
}

Status DeviceOracle::check(const workload::Workload &workload, const std::vector<HostTensor> &tensors,
                           bool wide, const OracleJob &job, const std::stop_token &stop)
{
    const std::string key = checkKeyOf(job);
    if (const auto known = m_verdicts.find(key); known != m_verdicts.end())
        return known->second.empty() ? Status() : fail(ErrorCode::Unavailable, known->second);
    for (const std::vector<HostTensor> &small : smallCasesOf(workload, tensors)) {
        const auto cpu = computeOracle(workload, small);
        if (!cpu)
            return tl::unexpected(cpu.error());
        const auto smallJob = oracleJobOf(workload, small, wide);
        if (!smallJob)
            return tl::unexpected(smallJob.error());
        const auto device = perform(*smallJob, stop);
        if (!device)
            return tl::unexpected(device.error());
        if (const auto wrong = disagreement(device->at(job.output), cpu->at(job.output), wide)) {
            m_verdicts[key] = "on a small case it disagrees with the CPU's: " + *wrong;
            return fail(ErrorCode::Unavailable, m_verdicts[key]);
        }
    }
    m_verdicts[key] = {};
    return {};
}

Result<ExpectedOutputs> DeviceOracle::compute(const workload::Workload &workload,
                                              const std::vector<HostTensor> &tensors, bool wide,
                                              const std::stop_token &stop)
{
    const auto job = oracleJobOf(workload, tensors, wide);
    if (!job)
        return tl::unexpected(job.error());
    if (const auto worker = session(stop); !worker)
        return tl::unexpected(worker.error());
    if (auto checked = check(workload, tensors, wide, *job, stop); !checked)
        return tl::unexpected(checked.error());
    return perform(*job, stop);
}

} // namespace klineage::gate
