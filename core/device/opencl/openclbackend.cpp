// SPDX-License-Identifier: GPL-3.0-or-later
//
// OpenCL in the worker process, through the ICD loader. PoCL makes every CPU such a device; kernels then run in this very process,
// so a wild write can hit the worker itself, and the supervisor takes its death for what it is.
#include "core/base/random.h"
#include "core/device/holdings.h"
#include "core/device/opencl/cachelines.h"
#include "core/device/opencl/fills.h"
#include "core/device/opencl/guardedmemory.h"
#include "core/device/opencl/hostview.h"
#include "core/device/opencl/inputs.h"
#include "core/device/opencl/program.h"
#include "core/device/opencl/scrub.h"
#include "core/device/opencl/standin.h"
#include "core/device/opencl/subject.h"
#include "core/process/isolation.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

namespace klineage::gate {

namespace {

using namespace opencl;

struct Entry {
    std::unique_ptr<Subject> subject;
    Fills fills;
    OutputSets outputs;
};

/// Where a buffer's pages are.
struct Places {
    std::span<std::byte> pages;
    std::span<std::byte> slack; ///< in front of it

    [[nodiscard]] std::span<std::byte> room() const { return pages.subspan(slack.size()); }
};

/// A NaN in every floating-point type, as what outputs are filled with.
std::uint32_t scrubWord()
{
    return static_cast<std::uint32_t>(entropy()) | 0x7ff07ff0u;
}

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
    void unload(ModuleId module) override { m_held.eraseModule(module); }
    Result<BufferId> allocate(std::size_t bytes) override;
    void release(BufferId buffer) override;
    Status upload(BufferId buffer, std::size_t offset, std::span<const std::byte> image) override;
    Status download(BufferId buffer, std::size_t offset, std::span<std::byte> image) override;
    Status copy(std::span<const CopyRange> ranges) override;
    Result<SubjectId> addPlan(ModuleId module, const kernel::ResolvedPlan &plan,
                              const std::vector<BufferSet> &sets) override;
    Result<SubjectId> addReference(const ReferenceCall &call, const std::vector<BufferSet> &sets) override;
    void removeSubject(SubjectId subject) override { m_held.eraseSubject(subject); }
    Status rebind(SubjectId subject, const std::vector<BufferSet> &sets) override;
    Status setFills(SubjectId subject, const FillSets &fills) override;
    Status setContents(const std::vector<std::vector<CopyRange>> &sets) override;
    Status setOutputs(SubjectId subject, const OutputSets &outputs) override;
    std::string subjectVersion(SubjectId subject) const override { return m_held.version(subject); }
    std::vector<Metric> subjectMetrics(SubjectId subject) const override { return m_held.metrics(subject); }
    Status prime(ModuleId module, const kernel::ResolvedPlan &plan) override;
    Result<bool> seal(bool times) override;
    Status run(SubjectId subject, std::size_t set) override;
    Result<TimedSample> time(const TimedRun &run) override;

private:
    Result<std::vector<RegionSet>> regions(const std::vector<BufferSet> &sets) const;
    Status refill(const std::vector<FillRegion> &regions, std::uint32_t word);
    void clearSlack(BufferId buffer, const Places &places) const;
    Status scrub(std::size_t localBytes = 0);
    Status scrubBetween(const Subject &subject);
    Status putKnown(std::span<const CopyRange> ranges);
    Status makeContents(const TimedRun &run);
    Status coolInputs(const TimedRun &run);
    Status takeOutOfCaches(const CopyRange &range);
    Result<HostView> view(BufferId buffer, std::size_t offset, std::size_t bytes, cl_map_flags access) const;
    Status copyOne(cl_mem to, cl_mem from, const CopyRange &range);
    Status blend(const CopyRange &range) const;
    Status addPrints(const OutputSets &outputs, std::size_t set, std::uint32_t word,
                     std::vector<TilePrint> &prints);

    Device m_device;
    bool m_compilesWithoutRunning = m_device.platformScope == "pocl" && standInsWork();
    const Api &m_api;
    Context m_context;
    Queue m_queue;
    std::optional<Scrub> m_scrub; ///< made when it is first wanted
    bool m_scrubbed = false;      ///< since the last run
    Inputs m_inputs;
    std::map<BufferId, Places> m_places; ///< of each buffer that has pages of its own
    Holdings<Program, DeviceMemory, Entry> m_held;
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
    return m_held.addModule(std::move(*program));
}

/// On a processor in pages of its own: who writes beyond them is stopped, and nothing lasts there.
Result<BufferId> OpenClBackend::allocate(std::size_t bytes)
{
    GuardedPages pages;
    if (m_device.isCpu) {
        auto made = GuardedPages::make(bytes);
        if (!made)
            return tl::unexpected(made.error());
        pages = std::move(*made);
    }
    const std::span<std::byte> room = pages.room();
    const cl_mem_flags flags = room.empty() ? CL_MEM_READ_WRITE : CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR;
    cl_int code = CL_SUCCESS;
    Memory memory(m_api, m_api.clCreateBuffer(m_context.get(), flags,
                                              room.empty() ? std::max<std::size_t>(bytes, 1) : room.size(),
                                              room.data(), &code));
    if (auto made = check(code, "allocate " + std::to_string(bytes) + " bytes on the device"); !made)
        return tl::unexpected(made.error());
    const Places places{pages.pages(), pages.slack()};
    const BufferId buffer = m_held.addBuffer(DeviceMemory(std::move(pages), std::move(memory)), bytes);
    if (!places.pages.empty())
        m_places[buffer] = places;
    return buffer;
}

void OpenClBackend::release(BufferId buffer)
{
    m_inputs.forget(buffer);
    m_places.erase(buffer);
    m_held.eraseBuffer(buffer);
}

Status OpenClBackend::upload(BufferId buffer, std::size_t offset, std::span<const std::byte> image)
{
    const auto target = m_held.memory(buffer, offset + image.size());
    if (!target)
        return tl::unexpected(target.error());
    if (m_scrub && !m_scrubbed) { // here rather than within a run, which is timed roughly
        if (auto done = scrub(); !done)
            return done;
    }
    const CopyRange written{buffer, offset, 0, 0, image.size()};
    if (auto let = m_inputs.letWrite({&written, 1}, true); !let)
        return let;
    if (auto done = check(m_api.clEnqueueWriteBuffer(m_queue.get(), *target, CL_TRUE, offset, image.size(),
                                                     image.data(), 0, nullptr, nullptr),
                          "copy to the device");
        !done)
        return done;
    return m_inputs.letWrite({&written, 1}, false);
}

Status OpenClBackend::download(BufferId buffer, std::size_t offset, std::span<std::byte> image)
{
    const auto source = m_held.memory(buffer, offset + image.size());
    if (!source)
        return tl::unexpected(source.error());
    return check(m_api.clEnqueueReadBuffer(m_queue.get(), *source, CL_TRUE, offset, image.size(),
                                           image.data(), 0, nullptr, nullptr),
                 "copy from the device");
}

Result<std::vector<RegionSet>> OpenClBackend::regions(const std::vector<BufferSet> &sets) const
{
    std::vector<RegionSet> result;
    for (const BufferSet &set : sets) {
        RegionSet regions;
        for (const auto &[name, binding] : set) {
            const auto buffer = m_held.memory(binding.buffer, binding.offsetBytes);
            if (!buffer)
                return tl::unexpected(buffer.error());
            regions[name] = {*buffer, m_held.bytesOf(binding.buffer), binding.offsetBytes};
        }
        result.push_back(std::move(regions));
    }
    if (result.empty())
        return fail(ErrorCode::Internal, "Cannot prepare a run without a buffer set.");
    return result;
}

Result<SubjectId> OpenClBackend::addPlan(ModuleId module, const kernel::ResolvedPlan &plan,
                                         const std::vector<BufferSet> &sets)
{
    const auto program = m_held.module(module, "prepare a plan");
    if (!program)
        return tl::unexpected(program.error());
    const auto bound = regions(sets);
    if (!bound)
        return tl::unexpected(bound.error());
    auto subject = makePlanSubject(m_device, m_queue.get(), *program, plan, *bound);
    if (!subject)
        return tl::unexpected(subject.error());
    return m_held.addSubject(std::move(*subject));
}

Status OpenClBackend::prime(ModuleId module, const kernel::ResolvedPlan &plan)
{
    const auto program = m_held.module(module, "compile a plan");
    if (!program)
        return tl::unexpected(program.error());
    if (!m_compilesWithoutRunning)
        return {};
    // Nothing runs, so one small buffer can stand for all of them.
    constexpr std::size_t bytes = 4096;
    const auto buffer = allocate(bytes);
    const auto memoryOfIt = buffer ? m_held.memory(*buffer, bytes) : tl::unexpected(buffer.error());
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
        auto subject = makePlanSubject(m_device, m_queue.get(), *program, plan, {regions});
        return subject ? (*subject)->prime() : tl::unexpected(subject.error());
    }();
    release(*buffer);
    return primed;
}

Result<bool> OpenClBackend::seal(bool)
{
    if (!m_compilesWithoutRunning)
        return false;
    if (auto compiled = scrub(); !compiled) // the gate's own kernel is compiled when it first runs
        return tl::unexpected(compiled.error());
    sealStandIns();
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
    return m_held.addSubject(makeReferenceSubject(m_device, m_queue.get(), std::move(*reference),
                                                  call.buffers, std::move(*bound)));
}

/// As time() does it, so that nothing tells the two apart.
Status OpenClBackend::run(SubjectId subject, std::size_t set)
{
    const auto found = m_held.subjectOn(subject, set);
    if (!found)
        return tl::unexpected(found.error());
    if (auto done = m_scrubbed ? Status() : scrub(); !done)
        return done;
    m_scrubbed = false;
    const std::optional<std::uint64_t> order =
        m_compilesWithoutRunning && entropy() % 2 == 0 ? std::optional(entropy()) : std::nullopt;
    return order ? (*found)->subject->runInOrder(set, *order)
                 : (*found)->subject->run({set}, {}).map([](double) {});
}

/// Little of it is left in a processor's caches, so that no side chooses how cold another's outputs are by what is filled behind them; of what
/// is large most has left them by itself.
Status OpenClBackend::refill(const std::vector<FillRegion> &regions, std::uint32_t word)
{
    constexpr std::size_t large = std::size_t{32} << 20;
    for (const FillRegion &region : regions) {
        const auto target = m_held.memory(region.buffer, region.offsetBytes + region.bytes);
        if (!target)
            return tl::unexpected(target.error());
        Status done;
        if (const auto places = m_places.find(region.buffer); places != m_places.end()) {
            const auto bytes = places->second.room().subspan(region.offsetBytes, region.bytes);
            fill(bytes, word);
            if (bytes.size() <= large)
                leaveCaches(bytes);
        } else {
            done = check(m_api.clEnqueueFillBuffer(m_queue.get(), *target, &word, fillPiece(region.bytes),
                                                   region.offsetBytes, region.bytes, 0, nullptr, nullptr),
                         "refill a buffer");
        }
        if (!done)
            return done;
    }
    return {};
}

/// In front of inputs it was cleared when nobody could write there any more.
void OpenClBackend::clearSlack(BufferId buffer, const Places &places) const
{
    if (!m_inputs.protects(buffer))
        std::fill(places.slack.begin(), places.slack.end(), std::byte{0});
}

/// Overwrites, and waits for it, what earlier launches may have left outside of what the gate knows.
Status OpenClBackend::scrub(std::size_t localBytes)
{
    if (!m_scrub) {
        auto made = Scrub::make(m_device, m_context.get());
        if (!made)
            return tl::unexpected(made.error());
        m_scrub = std::move(*made);
    }
    for (const auto &[buffer, places] : m_places)
        clearSlack(buffer, places);
    if (auto done = m_scrub->run(m_queue.get(), scrubWord(), std::max(localBytes, Scrub::wholeLocal)); !done)
        return done;
    if (auto done = check(m_api.clFinish(m_queue.get()), "overwrite local memory"); !done)
        return done;
    m_scrubbed = true;
    return m_scrub->forgetDeepStacks(m_queue.get());
}

/// Enqueues what overwrites the local memory that a subject has, and the upper part of the stacks: what one run of a sample leaves there is
/// gone when the next one begins.
Status OpenClBackend::scrubBetween(const Subject &subject)
{
    constexpr std::size_t behind = 4096; ///< each local array is aligned
    return m_scrub->run(m_queue.get(), scrubWord(), subject.localBytes() + behind);
}

/// Puts contents into sets, as near to the processor as what is made for a sample.
Status OpenClBackend::putKnown(std::span<const CopyRange> ranges)
{
    if (auto copied = copy(ranges); !copied)
        return copied;
    for (const CopyRange &range : ranges) {
        if (auto taken = takeOutOfCaches(range); !taken)
            return taken;
    }
    return {};
}

/// When nothing is enqueued that could still write there.
Result<HostView> OpenClBackend::view(BufferId buffer, std::size_t offset, std::size_t bytes,
                                     cl_map_flags access) const
{
    const auto memory = m_held.memory(buffer, offset + bytes);
    if (!memory)
        return tl::unexpected(memory.error());
    const auto places = m_places.find(buffer);
    return places != m_places.end() ? HostView(places->second.room().subspan(offset, bytes))
                                    : HostView::mapped(m_api, m_queue.get(), *memory, offset, bytes, access);
}

/// What the range fills.
Status OpenClBackend::takeOutOfCaches(const CopyRange &range)
{
    const auto filled = view(range.to, range.toOffset, range.bytes, CL_MAP_READ);
    if (!filled)
        return tl::unexpected(filled.error());
    leaveCaches(filled->bytes());
    return {};
}

Status OpenClBackend::copy(std::span<const CopyRange> ranges)
{
    // What was enqueued before finds the inputs as protected as they were.
    if (auto done = check(m_api.clFinish(m_queue.get()), "copy between buffers"); !done)
        return done;
    if (auto let = m_inputs.letWrite(ranges, true); !let)
        return let;
    const auto enqueued = m_held.copyEach(
        ranges, [this](cl_mem to, cl_mem from, const CopyRange &range) { return copyOne(to, from, range); },
        [this](cl_mem, cl_mem, cl_mem, const CopyRange &range) { return blend(range); });
    if (!enqueued)
        return enqueued;
    if (auto done = check(m_api.clFinish(m_queue.get()), "copy between buffers"); !done)
        return done;
    return m_inputs.letWrite(ranges, false);
}

Status OpenClBackend::copyOne(cl_mem to, cl_mem from, const CopyRange &range)
{
    const auto source = m_places.find(range.from);
    const auto target = m_places.find(range.to);
    if (source == m_places.end() || target == m_places.end())
        return check(m_api.clEnqueueCopyBuffer(m_queue.get(), from, to, range.fromOffset, range.toOffset,
                                               range.bytes, 0, nullptr, nullptr),
                     "copy between buffers");
    std::memmove(target->second.room().data() + range.toOffset,
                 source->second.room().data() + range.fromOffset, range.bytes);
    return {};
}

Status OpenClBackend::blend(const CopyRange &range) const
{
    const auto first = view(range.from, range.fromOffset, range.bytes, CL_MAP_READ);
    const auto second = view(range.with, range.fromOffset, range.bytes, CL_MAP_READ);
    const auto made = view(range.to, range.toOffset, range.bytes, CL_MAP_WRITE_INVALIDATE_REGION);
    if (!first || !second || !made)
        return tl::unexpected(!first ? first.error() : !second ? second.error() : made.error());
    const std::size_t elements = range.bytes / kernel::sizeOf(range.blend.dtype);
    blendPieces(range.blend, first->bytes(), second->bytes(), made->bytes(), 0,
                pieceCount(range.blend, elements));
    leaveCaches(made->bytes());
    return {};
}

Status OpenClBackend::rebind(SubjectId subject, const std::vector<BufferSet> &sets)
{
    const auto found = m_held.subject(subject);
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
    const auto found = m_held.subjectToFill(subject, fills);
    if (!found)
        return tl::unexpected(found.error());
    (*found)->fills.set(fills);
    return {};
}

Status OpenClBackend::setContents(const std::vector<std::vector<CopyRange>> &sets)
{
    return m_inputs.set(sets, [this](BufferId buffer) {
        const auto places = m_places.find(buffer);
        if (places == m_places.end())
            return std::span<std::byte>();
        clearSlack(buffer, places->second);
        return places->second.pages;
    });
}

/// Where a set does not hold what the run wants to find in it.
Status OpenClBackend::makeContents(const TimedRun &run)
{
    const auto ranges = m_inputs.missing(run);
    if (!ranges)
        return tl::unexpected(ranges.error());
    return ranges->empty() ? Status() : copy(*ranges);
}

/// Whoever runs second on a content would find some of it in the cache, and know by that that it is no decoy's: each finds none.
Status OpenClBackend::coolInputs(const TimedRun &run)
{
    if (!m_device.isCpu)
        return {};
    // What comes first of more than that leaves the cache by itself.
    for (const CopyRange &input : m_inputs.concernedBy(run, 4 * m_device.cacheBytes)) {
        if (auto taken = takeOutOfCaches(input); !taken)
            return taken;
    }
    return {};
}

Status OpenClBackend::setOutputs(SubjectId subject, const OutputSets &outputs)
{
    const auto found = m_held.subjectToLookAt(subject, outputs);
    if (!found)
        return tl::unexpected(found.error());
    (*found)->outputs = outputs;
    return {};
}

Status OpenClBackend::addPrints(const OutputSets &outputs, std::size_t set, std::uint32_t word,
                                std::vector<TilePrint> &prints)
{
    for (std::size_t i = 0; i < outputs.layouts.size(); ++i) {
        const TileLayout &layout = outputs.layouts[i];
        const BufferBinding &binding = outputs.sets[set][i];
        const std::size_t bytes = layout.bytes();
        const auto output = view(binding.buffer, binding.offsetBytes, bytes, CL_MAP_READ);
        if (!output)
            return tl::unexpected(output.error());
        for (std::size_t first = 0; first < layout.elements; first += layout.tileElements)
            prints.push_back(tilePrintOf(output->bytes().data(), layout.dtype, first,
                                         std::min(layout.tileElements, layout.elements - first), outputs.key,
                                         word));
    }
    return {};
}

Result<TimedSample> OpenClBackend::time(const TimedRun &run)
{
    const auto found = m_held.subjectToTime(run);
    if (!found)
        return tl::unexpected(found.error());
    Entry &subject = **found;
    const std::size_t count = subject.subject->setCount();
    const std::size_t concerned = run.setsConcerned(count);
    std::vector<std::size_t> sets;
    for (std::size_t i = 0; i < static_cast<std::size_t>(run.repeats); ++i)
        sets.push_back((run.first + i) % count);
    if (auto made = makeContents(run); !made)
        return tl::unexpected(made.error());
    if (auto put = run.known.empty() ? Status() : putKnown(run.known); !put)
        return tl::unexpected(put.error());
    if (run.fillWord != 0 && !subject.fills.empty()) {
        if (auto filled = refill(subject.fills.before(run), run.fillWord); !filled)
            return tl::unexpected(filled.error());
    }
    if (auto cooled = run.fillWord != 0 ? coolInputs(run) : Status(); !cooled)
        return tl::unexpected(cooled.error());
    // Not where the gate's own clock is held against the device's: it would count this too.
    if (auto done = run.fillWord != 0 ? scrub(subject.subject->localBytes()) : Status(); !done)
        return tl::unexpected(done.error());
    m_scrubbed = false;
    int finished = 0;
    const Subject::Between between = [&]() -> Status {
        if (++finished == run.midway && run.isSplit()) {
            if (auto put = putKnown(run.then); !put)
                return put;
        }
        if (subject.fills.areShared()) {
            if (auto done = check(m_api.clFinish(m_queue.get()), "finish the kernel"); !done)
                return done;
            const auto used = subject.fills.between(run, static_cast<std::size_t>(finished));
            if (auto filled = refill(used, run.fillWord); !filled)
                return filled;
        }
        return scrubBetween(*subject.subject);
    };
    const auto ns = subject.subject->run(sets, run.fillWord != 0 ? between : Subject::Between());
    if (!ns)
        return tl::unexpected(ns.error());
    TimedSample sample{*ns, 0};
    if (run.fillWord != 0 && !subject.outputs.sets.empty()) {
        for (std::size_t i = 0; i < concerned; ++i) {
            if (auto looked =
                    addPrints(subject.outputs, (run.first + i) % count, run.fillWord, sample.prints);
                !looked)
                return tl::unexpected(looked.error());
        }
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
