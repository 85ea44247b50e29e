// SPDX-License-Identifier: GPL-3.0-or-later
//
// OpenCL in the worker process, through the ICD loader. PoCL makes every CPU such a device; kernels then run in this very process,
// so a wild write can hit the worker itself, and the supervisor takes its death for what it is.
#include "core/device/backend.h"
#include "core/device/opencl/program.h"
#include "core/device/opencl/scrub.h"
#include "core/device/opencl/standin.h"
#include "core/device/opencl/subject.h"
#include "core/process/isolation.h"

#include <algorithm>
#include <optional>

namespace klineage::gate {

namespace {

using namespace opencl;

struct Allocation {
    Memory memory;
    std::size_t bytes = 0;
};

struct Entry {
    std::unique_ptr<Subject> subject;
    FillSets fills;
    OutputSets outputs;
};

class OpenClBackend : public Backend
{
public:
    explicit OpenClBackend(Device device)
        : m_device(std::move(device))
        , m_api(*m_device.api)
    {}

    Status open();

    kernel::Bindings deviceFacts() const override
    {
        return {{"sm_count", m_device.computeUnits},
                {"warp_size", m_device.vectorWidth},
                {"max_shared", static_cast<std::int64_t>(m_device.localBytes)}};
    }
    Environment environment() const override { return environmentOf(m_device); }
    std::size_t cacheBytes() const override { return m_device.cacheBytes; }

    Result<ModuleId> load(std::span<const std::byte> binary, const std::string &source,
                          const std::map<std::string, std::int64_t> &tunables,
                          CompileOutput &output) override;
    void unload(ModuleId module) override { m_programs.erase(module); }
    Result<BufferId> allocate(std::size_t bytes) override;
    void release(BufferId buffer) override { m_buffers.erase(buffer); }
    Status upload(BufferId buffer, std::span<const std::byte> image) override;
    Status download(BufferId buffer, std::span<std::byte> image) override;
    Status copy(std::span<const CopyRange> ranges) override;
    Result<SubjectId> addPlan(ModuleId module, const kernel::ResolvedPlan &plan,
                              const std::vector<BufferSet> &sets) override;
    Result<SubjectId> addReference(const ReferenceCall &call, const std::vector<BufferSet> &sets) override;
    void removeSubject(SubjectId subject) override { m_subjects.erase(subject); }
    Status rebind(SubjectId subject, const std::vector<BufferSet> &sets) override;
    Status setFills(SubjectId subject, const FillSets &fills) override;
    Status setOutputs(SubjectId subject, const OutputSets &outputs) override;
    std::string subjectVersion(SubjectId subject) const override;
    std::vector<Metric> subjectMetrics(SubjectId subject) const override;
    Status prime(ModuleId module, const kernel::ResolvedPlan &plan) override;
    Result<bool> seal(bool times) override;
    Status run(SubjectId subject, std::size_t set) override;
    Result<TimedSample> time(const TimedRun &run) override;

private:
    Result<std::vector<RegionSet>> regions(const std::vector<BufferSet> &sets) const;
    Result<cl_mem> memory(BufferId buffer, std::size_t bytes) const;
    Result<Entry *> entry(SubjectId subject);
    Status refill(const std::vector<FillRegion> &regions, std::uint32_t word);
    Status scrub(std::uint32_t word);
    Status addPrints(const OutputSets &outputs, std::size_t set, std::uint32_t word,
                     std::vector<TilePrint> &prints);
    SubjectId add(std::unique_ptr<Subject> subject);

    Device m_device;
    bool m_compilesWithoutRunning = m_device.platformScope == "pocl" && standInsWork();
    const Api &m_api;
    Context m_context;
    Queue m_queue;
    std::optional<Scrub> m_scrub; ///< made when it is first wanted
    std::map<ModuleId, Program> m_programs;
    std::map<BufferId, Allocation> m_buffers;
    std::map<SubjectId, Entry> m_subjects;
    std::uint32_t m_nextId = 1;
};

Status OpenClBackend::open()
{
    cl_int code = CL_SUCCESS;
    const cl_context_properties properties[] = {
        CL_CONTEXT_PLATFORM, reinterpret_cast<cl_context_properties>(m_device.platform), 0};
    m_context = Context(m_api, m_api.clCreateContext(properties, 1, &m_device.id, nullptr, nullptr, &code));
    if (auto made = check(code, "create an OpenCL context on " + m_device.name); !made)
        return made;
    const cl_queue_properties timed[] = {CL_QUEUE_PROPERTIES, CL_QUEUE_PROFILING_ENABLE, 0};
    m_queue =
        Queue(m_api, m_api.clCreateCommandQueueWithProperties(m_context.get(), m_device.id, timed, &code));
    return check(code, "create an OpenCL queue on " + m_device.name);
}

Result<ModuleId> OpenClBackend::load(std::span<const std::byte>, const std::string &source,
                                     const std::map<std::string, std::int64_t> &tunables,
                                     CompileOutput &output)
{
    auto program = buildProgram(m_device, m_context.get(), source, tunables, output);
    if (!program)
        return tl::unexpected(program.error());
    const ModuleId id = m_nextId++;
    m_programs[id] = std::move(*program);
    return id;
}

Result<BufferId> OpenClBackend::allocate(std::size_t bytes)
{
    cl_int code = CL_SUCCESS;
    Memory memory(m_api, m_api.clCreateBuffer(m_context.get(), CL_MEM_READ_WRITE,
                                              std::max<std::size_t>(bytes, 1), nullptr, &code));
    if (auto made = check(code, "allocate " + std::to_string(bytes) + " bytes on the device"); !made)
        return tl::unexpected(made.error());
    const BufferId id = m_nextId++;
    m_buffers[id] = {std::move(memory), bytes};
    return id;
}

Result<cl_mem> OpenClBackend::memory(BufferId buffer, std::size_t bytes) const
{
    const auto found = m_buffers.find(buffer);
    if (found == m_buffers.end() || bytes > found->second.bytes)
        return fail(ErrorCode::Internal,
                    "Cannot copy " + std::to_string(bytes) + " bytes: no such buffer, or it is smaller.");
    return found->second.memory.get();
}

Status OpenClBackend::upload(BufferId buffer, std::span<const std::byte> image)
{
    const auto target = memory(buffer, image.size());
    if (!target)
        return tl::unexpected(target.error());
    return check(m_api.clEnqueueWriteBuffer(m_queue.get(), *target, CL_TRUE, 0, image.size(), image.data(), 0,
                                            nullptr, nullptr),
                 "copy to the device");
}

Status OpenClBackend::download(BufferId buffer, std::span<std::byte> image)
{
    const auto source = memory(buffer, image.size());
    if (!source)
        return tl::unexpected(source.error());
    return check(m_api.clEnqueueReadBuffer(m_queue.get(), *source, CL_TRUE, 0, image.size(), image.data(), 0,
                                           nullptr, nullptr),
                 "copy from the device");
}

Result<std::vector<RegionSet>> OpenClBackend::regions(const std::vector<BufferSet> &sets) const
{
    std::vector<RegionSet> result;
    for (const BufferSet &set : sets) {
        RegionSet regions;
        for (const auto &[name, binding] : set) {
            const auto buffer = memory(binding.buffer, binding.offsetBytes);
            if (!buffer)
                return tl::unexpected(buffer.error());
            regions[name] = {*buffer, m_buffers.at(binding.buffer).bytes, binding.offsetBytes};
        }
        result.push_back(std::move(regions));
    }
    if (result.empty())
        return fail(ErrorCode::Internal, "Cannot prepare a run without a buffer set.");
    return result;
}

SubjectId OpenClBackend::add(std::unique_ptr<Subject> subject)
{
    const SubjectId id = m_nextId++;
    m_subjects[id].subject = std::move(subject);
    return id;
}

Result<SubjectId> OpenClBackend::addPlan(ModuleId module, const kernel::ResolvedPlan &plan,
                                         const std::vector<BufferSet> &sets)
{
    const auto program = m_programs.find(module);
    if (program == m_programs.end())
        return fail(ErrorCode::Internal, "Cannot prepare a plan: its module is not loaded.");
    const auto bound = regions(sets);
    if (!bound)
        return tl::unexpected(bound.error());
    auto subject = makePlanSubject(m_device, m_queue.get(), program->second.get(), plan, *bound);
    if (!subject)
        return tl::unexpected(subject.error());
    return add(std::move(*subject));
}

Status OpenClBackend::prime(ModuleId module, const kernel::ResolvedPlan &plan)
{
    const auto program = m_programs.find(module);
    if (program == m_programs.end())
        return fail(ErrorCode::Internal, "Cannot compile a plan: its module is not loaded.");
    if (!m_compilesWithoutRunning)
        return {};
    // Nothing runs, so one small buffer can stand for all of them.
    constexpr std::size_t bytes = 4096;
    const auto buffer = allocate(bytes);
    const auto memoryOfIt = buffer ? memory(*buffer, bytes) : tl::unexpected(buffer.error());
    if (!memoryOfIt)
        return tl::unexpected(memoryOfIt.error());
    RegionSet regions;
    for (const kernel::ResolvedLaunch &launch : plan.launches) {
        for (const kernel::ResolvedArg &argument : launch.args) {
            if (const auto *pointer = std::get_if<kernel::PointerValue>(&argument))
                regions[pointer->buffer] = {*memoryOfIt, bytes, 0};
        }
    }
    auto primed = [&]() -> Status {
        auto subject = makePlanSubject(m_device, m_queue.get(), program->second.get(), plan, {regions});
        return subject ? (*subject)->prime() : tl::unexpected(subject.error());
    }();
    release(*buffer);
    return primed;
}

Result<bool> OpenClBackend::seal(bool times)
{
    if (!m_compilesWithoutRunning)
        return false;
    if (times) { // the gate's own kernel is compiled when it first runs
        auto compiled = scrub(1);
        if (compiled)
            compiled = check(m_api.clFinish(m_queue.get()), "compile the gate's own kernel");
        if (!compiled)
            return tl::unexpected(compiled.error());
    }
    return process::sealProcess().has_value();
}

Result<SubjectId> OpenClBackend::addReference(const ReferenceCall &call, const std::vector<BufferSet> &sets)
{
    if (!m_device.isCpu)
        return fail(ErrorCode::Unavailable,
                    "Cannot use \"" + call.provider + "\" on " + m_device.name
                        + ": it is a CPU library, and would be measured on another device.");
    auto bound = regions(sets);
    if (!bound)
        return tl::unexpected(bound.error());
    auto reference = makeCpuReference(call, static_cast<int>(m_device.computeUnits));
    if (!reference)
        return tl::unexpected(reference.error());
    return add(makeReferenceSubject(m_device, m_queue.get(), std::move(*reference), call.buffers,
                                    std::move(*bound)));
}

Result<Entry *> OpenClBackend::entry(SubjectId subject)
{
    const auto found = m_subjects.find(subject);
    if (found == m_subjects.end())
        return fail(ErrorCode::Internal,
                    "Cannot run subject " + std::to_string(subject) + ": it does not exist.");
    return &found->second;
}

std::string OpenClBackend::subjectVersion(SubjectId subject) const
{
    const auto found = m_subjects.find(subject);
    return found == m_subjects.end() ? std::string() : found->second.subject->version();
}

std::vector<Metric> OpenClBackend::subjectMetrics(SubjectId subject) const
{
    const auto found = m_subjects.find(subject);
    return found == m_subjects.end() ? std::vector<Metric>() : found->second.subject->metrics();
}

Status OpenClBackend::run(SubjectId subject, std::size_t set)
{
    const auto found = entry(subject);
    if (!found)
        return tl::unexpected(found.error());
    if (set >= (*found)->subject->setCount())
        return fail(ErrorCode::Internal,
                    "Cannot run on buffer set " + std::to_string(set) + ": there is no such set.");
    if (const auto done = (*found)->subject->run({set}); !done)
        return tl::unexpected(done.error());
    return {};
}

Status OpenClBackend::refill(const std::vector<FillRegion> &regions, std::uint32_t word)
{
    for (const FillRegion &region : regions) {
        const auto target = memory(region.buffer, region.offsetBytes + region.bytes);
        if (!target)
            return tl::unexpected(target.error());
        // The longest piece of the word that the size is a multiple of.
        const std::size_t piece = region.bytes % 4 == 0 ? 4 : region.bytes % 2 == 0 ? 2 : 1;
        if (auto filled =
                check(m_api.clEnqueueFillBuffer(m_queue.get(), *target, &word, piece, region.offsetBytes,
                                                region.bytes, 0, nullptr, nullptr),
                      "refill a buffer");
            !filled)
            return filled;
    }
    return {};
}

Status OpenClBackend::scrub(std::uint32_t word)
{
    if (!m_scrub) {
        auto made = Scrub::make(m_device, m_context.get());
        if (!made)
            return tl::unexpected(made.error());
        m_scrub = std::move(*made);
    }
    return m_scrub->run(m_queue.get(), word);
}

Status OpenClBackend::copy(std::span<const CopyRange> ranges)
{
    for (const CopyRange &range : ranges) {
        const auto from = memory(range.from, range.fromOffset + range.bytes);
        const auto to = memory(range.to, range.toOffset + range.bytes);
        if (!from || !to)
            return tl::unexpected(from ? to.error() : from.error());
        if (auto copied = check(m_api.clEnqueueCopyBuffer(m_queue.get(), *from, *to, range.fromOffset,
                                                          range.toOffset, range.bytes, 0, nullptr, nullptr),
                                "copy between buffers");
            !copied)
            return copied;
    }
    return check(m_api.clFinish(m_queue.get()), "copy between buffers");
}

Status OpenClBackend::rebind(SubjectId subject, const std::vector<BufferSet> &sets)
{
    const auto found = entry(subject);
    if (!found)
        return tl::unexpected(found.error());
    auto bound = regions(sets);
    if (!bound)
        return tl::unexpected(bound.error());
    (*found)->subject->rebind(std::move(*bound));
    return {};
}

Status OpenClBackend::setFills(SubjectId subject, const FillSets &fills)
{
    const auto found = entry(subject);
    if (!found)
        return tl::unexpected(found.error());
    if (fills.size() != (*found)->subject->setCount())
        return fail(ErrorCode::Internal, "Cannot refill: there is not one list of regions for each set.");
    (*found)->fills = fills;
    return {};
}

Status OpenClBackend::setOutputs(SubjectId subject, const OutputSets &outputs)
{
    const auto found = entry(subject);
    if (!found)
        return tl::unexpected(found.error());
    if (outputs.sets.size() != (*found)->subject->setCount())
        return fail(ErrorCode::Internal,
                    "Cannot look at outputs: there is not one list of them for each set.");
    (*found)->outputs = outputs;
    return {};
}

Status OpenClBackend::addPrints(const OutputSets &outputs, std::size_t set, std::uint32_t word,
                                std::vector<TilePrint> &prints)
{
    for (std::size_t output = 0; output < outputs.layouts.size(); ++output) {
        const TileLayout &layout = outputs.layouts[output];
        const BufferBinding &binding = outputs.sets[set][output];
        const std::size_t bytes = layout.elements * kernel::sizeOf(layout.dtype);
        const auto buffer = memory(binding.buffer, binding.offsetBytes + bytes);
        if (!buffer)
            return tl::unexpected(buffer.error());
        cl_int code = CL_SUCCESS;
        void *mapped = m_api.clEnqueueMapBuffer(m_queue.get(), *buffer, CL_TRUE, CL_MAP_READ,
                                                binding.offsetBytes, bytes, 0, nullptr, nullptr, &code);
        if (auto done = check(code, "look at an output"); !done)
            return done;
        for (std::size_t first = 0; first < layout.elements; first += layout.tileElements)
            prints.push_back(tilePrintOf(static_cast<const std::byte *>(mapped), layout.dtype, first,
                                         std::min(layout.tileElements, layout.elements - first), outputs.key,
                                         word));
        code = m_api.clEnqueueUnmapMemObject(m_queue.get(), *buffer, mapped, 0, nullptr, nullptr);
        if (auto done = check(code, "look at an output"); !done)
            return done;
    }
    return {};
}

Result<TimedSample> OpenClBackend::time(const TimedRun &run)
{
    const auto found = entry(run.subject);
    if (!found)
        return tl::unexpected(found.error());
    if (run.repeats < 1 || run.repeats > 100'000)
        return fail(ErrorCode::Internal,
                    "Cannot time " + std::to_string(run.repeats) + " repeats: expected 1 to 100000.");
    Entry &subject = **found;
    const std::size_t count = subject.subject->setCount();
    std::vector<std::size_t> sets;
    for (std::size_t i = 0; i < static_cast<std::size_t>(run.repeats); ++i)
        sets.push_back((run.first + i) % count);
    if (run.fillWord != 0 && !subject.fills.empty()) {
        for (std::size_t i = 0; i < std::min(sets.size(), count); ++i) {
            if (auto filled = refill(subject.fills[sets[i]], run.fillWord); !filled)
                return tl::unexpected(filled.error());
        }
        if (auto done = scrub(run.fillWord); !done)
            return tl::unexpected(done.error());
        if (auto done = check(m_api.clFinish(m_queue.get()), "refill a buffer"); !done)
            return tl::unexpected(done.error());
    }
    const auto ns = subject.subject->run(sets);
    if (!ns)
        return tl::unexpected(ns.error());
    TimedSample sample{*ns / run.repeats, 0};
    if (run.fillWord != 0 && !subject.outputs.sets.empty()) {
        for (std::size_t i = 0; i < std::min(sets.size(), count); ++i) {
            if (auto looked = addPrints(subject.outputs, sets[i], run.fillWord, sample.prints); !looked)
                return tl::unexpected(looked.error());
        }
        if (auto done = check(m_api.clFinish(m_queue.get()), "look at an output"); !done)
            return tl::unexpected(done.error());
    }
    return sample;
}

} // namespace

Result<std::unique_ptr<Backend>> openOpenClBackend()
{
    auto device = findDevice();
    if (!device)
        return tl::unexpected(device.error());
    auto backend = std::make_unique<OpenClBackend>(std::move(*device));
    if (auto opened = backend->open(); !opened)
        return tl::unexpected(opened.error());
    return std::unique_ptr<Backend>(std::move(backend));
}

} // namespace klineage::gate
