// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/oracle/deviceoracle.h"

#include "core/gate/check/comparison.h"
#include "core/gate/check/oracle.h"
#include "core/gate/check/parallel.h"
#include "core/gate/oracle/devicecontent.h"
#include "core/gate/oracle/smallcases.h"

#include <cstdlib>

namespace klineage::gate {

namespace {

constexpr std::size_t shareOfMemory = 16; ///< of the device, which a case that stays there may take

TrustedDevice::Kernel kernelOf(const OracleJob &job)
{
    return {job.text, job.name, job.tunables};
}

/// What the small cases are like.
std::string checkKeyOf(const OracleJob &job)
{
    std::string key = kernelOf(job).key();
    for (const char *size : {"WINDOW", "GROUPS", "DIM", "HEADS", "KV_HEADS"}) {
        if (const auto found = job.sizes.find(size); found != job.sizes.end())
            key += " " + std::string(size) + "=" + std::to_string(std::get<std::int64_t>(found->second));
    }
    return key;
}

template <typename Values>
Values copiedAs(std::span<const std::byte> bytes)
{
    Values values(bytes.size() / sizeof(typename Values::value_type));
    parallelCopy(reinterpret_cast<std::byte *>(values.data()), bytes);
    return values;
}

/// The input tensor whose own bytes these are.
const HostTensor *ownerOf(std::span<const std::byte> bytes, const std::vector<HostTensor> &tensors)
{
    for (const HostTensor &tensor : tensors) {
        if (!bytes.empty() && tensor.bytes.data() == bytes.data() && tensor.bytes.size() == bytes.size())
            return &tensor;
    }
    return nullptr;
}

bool hasRoomFor(const OracleJob &job, const WorkerSession &session)
{
    const auto &facts = session.helloEnvironment().facts;
    const auto memory = facts.find("memory_bytes");
    std::size_t bytes = job.elements * (job.wide ? sizeof(double) : sizeof(float));
    for (const OracleJob::Buffer &input : job.inputs)
        bytes += input.bytes.size();
    return memory != facts.end()
           && bytes < std::strtoull(memory->second.c_str(), nullptr, 10) / shareOfMemory;
}

WorkerResult<BufferId> uploaded(WorkerSession &session, std::span<const std::byte> bytes)
{
    const auto id = session.allocate(bytes.size());
    if (!id)
        return id;
    const auto room = session.staging(bytes.size());
    if (!room)
        return tl::unexpected(room.error());
    parallelCopy(room->data(), bytes);
    if (auto done = session.uploadStaged(*id, bytes.size()); !done)
        return tl::unexpected(done.error());
    return id;
}

} // namespace

DeviceContent::~DeviceContent()
{
    const auto lock = m_device->lock();
    for (const auto &[name, id] : inputs)
        m_device->release(id, m_generation);
    if (expected)
        m_device->release(*expected, m_generation);
}

DeviceOracle::DeviceOracle(std::vector<std::string> workerCommand, std::vector<std::string> compilerCommand,
                           CompileCache cache)
    : m_device(std::make_shared<TrustedDevice>(std::move(workerCommand), std::move(compilerCommand),
                                               std::move(cache)))
{}

Result<ExpectedOutputs> DeviceOracle::computeOn(WorkerSession &session, const OracleJob &job,
                                                const std::shared_ptr<DeviceContent> &kept,
                                                const std::stop_token &stop)
{
    // What is in `content` goes with it, whether it is kept or not.
    const auto content = kept ? kept : std::make_shared<DeviceContent>(m_device);
    BufferSet set;
    for (const OracleJob::Buffer &input : job.inputs) {
        const auto id = uploaded(session, input.bytes);
        if (!id)
            return trustedFailure(id.error());
        content->inputs[input.name] = *id;
        set[input.name] = {*id, 0};
    }
    const std::size_t bytes = job.elements * (job.wide ? sizeof(double) : sizeof(float));
    const auto out = session.allocate(bytes);
    if (!out)
        return trustedFailure(out.error());
    content->expected = *out;
    content->output = job.output;
    content->wide = job.wide;
    set["out"] = {*out, 0};
    if (auto ran = m_device->run(kernelOf(job), set, job.sizes, stop); !ran)
        return tl::unexpected(ran.error());
    const auto image = session.download(*out, bytes);
    if (!image)
        return trustedFailure(image.error());
    ExpectedOutputs expected;
    if (job.wide)
        expected[job.output] = copiedAs<std::vector<double>>(*image);
    else
        expected[job.output] = copiedAs<RawVector<float>>(*image);
    return expected;
}

Status DeviceOracle::check(const workload::Workload &workload, const std::vector<HostTensor> &tensors,
                           bool wide, const OracleJob &job, const std::stop_token &stop)
{
    if (m_checkedOn != m_device->generation())
        m_verdicts.clear();
    m_checkedOn = m_device->generation();
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
        const auto worker = m_device->session(stop);
        if (!worker)
            return tl::unexpected(worker.error());
        const auto device = computeOn(**worker, *smallJob, nullptr, stop);
        if (!device) {
            m_device->discard();
            return tl::unexpected(device.error());
        }
        if (const auto wrong = disagreement(device->at(job.output), cpu->at(job.output), wide)) {
            m_verdicts[key] = "on a small case it disagrees with the CPU's: " + *wrong;
            return fail(ErrorCode::Unavailable, m_verdicts[key]);
        }
    }
    m_verdicts[key] = {};
    return {};
}

Result<ExpectedOutputs> DeviceOracle::compute(const workload::Workload &workload,
                                              const std::vector<HostTensor> &tensors, bool wide, bool keeps,
                                              const std::stop_token &stop)
{
    const auto job = oracleJobOf(workload, tensors, wide);
    if (!job)
        return tl::unexpected(job.error());
    const auto lock = m_device->lock();
    if (const auto ready = m_device->session(stop); !ready)
        return tl::unexpected(ready.error());
    if (auto checked = check(workload, tensors, wide, *job, stop); !checked)
        return tl::unexpected(checked.error());
    const auto worker = m_device->session(stop); // another one, where the one that checked has died
    if (!worker)
        return tl::unexpected(worker.error());
    const auto kept =
        keeps && hasRoomFor(*job, **worker) ? std::make_shared<DeviceContent>(m_device) : nullptr;
    auto expected = computeOn(**worker, *job, kept, stop);
    if (!expected) {
        m_device->discard(); // out of memory, say: what was allocated for it must not stay
        return expected;
    }
    if (kept) {
        // Under the tensors' names: the kernel has its own, and inputs besides.
        std::map<std::string, BufferId> own;
        for (const OracleJob::Buffer &input : job->inputs) {
            if (const HostTensor *tensor = ownerOf(input.bytes, tensors))
                own[tensor->name] = kept->inputs.at(input.name);
            else
                m_device->release(kept->inputs.at(input.name), m_device->generation());
        }
        kept->inputs = std::move(own);
        kept->rms = rootMeanSquare(expected->at(job->output));
        expected->onDevice = kept;
    }
    return expected;
}

} // namespace klineage::gate
