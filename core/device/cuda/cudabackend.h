// SPDX-License-Identifier: GPL-3.0-or-later
//
// The CUDA device in the worker process. Driver API only; the primary context is used because cuBLAS shares it.
#pragma once

#include "core/device/counters/pcsampler.h"
#include "core/device/cuda/handle.h"
#include "core/device/cuda/helpers.h"
#include "core/device/cuda/subject.h"
#include "core/device/holdings.h"

namespace klineage::gate::cuda {

/// A captured sequence of `repeats` runs over the sets from `first` on.
struct Replay {
    std::size_t first = 0;
    int repeats = 0;
    Graph captured;
};

struct Entry {
    std::unique_ptr<Subject> subject;
    std::vector<Replay> replays;
    FillTable fills;
    OutputTable outputs;
};

class CudaBackend : public Backend
{
public:
    explicit CudaBackend(Driver driver)
        : m_driver(driver)
        , m_helpers(m_driver)
    {}

    Status open();

    kernel::Bindings deviceFacts() const override;
    Environment environment() const override;
    std::size_t cacheBytes() const override
    {
        return static_cast<std::size_t>(attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE));
    }

    Result<ModuleId> load(std::span<const std::byte> binary, const std::string &source,
                          const std::map<std::string, std::int64_t> &tunables,
                          CompileOutput &output) override;
    void unload(ModuleId module) override;
    Status readGlobal(ModuleId module, const std::string &name, std::span<std::byte> bytes) override;
    Result<BufferId> allocate(std::size_t bytes) override;
    Result<BufferId> allocateHidden(std::size_t bytes) override;
    Result<BufferId> scatter(std::size_t rangeBytes, std::size_t placeBytes,
                             const std::vector<std::size_t> &places) override;
    void release(BufferId buffer) override
    {
        m_contents.clear();
        m_driver.streamSynchronize(m_stream.get()); // unmapping memory does not wait for who uses it
        m_held.eraseBuffer(buffer);
    }
    Status upload(BufferId buffer, std::size_t offset, std::span<const std::byte> image) override;
    Status download(BufferId buffer, std::size_t offset, std::span<std::byte> image) override;
    Result<std::string> share(BufferId buffer) override;
    Result<BufferId> adopt(const std::string &handle, std::size_t bytes) override;
    Status copy(std::span<const CopyRange> ranges) override;
    Status installHelpers(std::span<const std::byte> binary) override
    {
        return m_helpers.install(m_device, binary);
    }
    Result<SubjectId> addPlan(ModuleId module, const kernel::ResolvedPlan &plan,
                              const std::vector<BufferSet> &sets) override;
    Result<SubjectId> addReference(const ReferenceCall &call, const std::vector<BufferSet> &sets) override;
    void removeSubject(SubjectId subject) override { m_held.eraseSubject(subject); }
    Status rebind(SubjectId subject, const std::vector<BufferSet> &sets) override;
    Status setFills(SubjectId subject, const FillSets &fills) override;
    Status setGuards(const Guards &guards) override;
    Status setContents(const std::vector<std::vector<CopyRange>> &sets) override;
    Status setOutputs(SubjectId subject, const OutputSets &outputs) override;
    std::string subjectVersion(SubjectId subject) const override { return m_held.version(subject); }
    std::vector<Metric> subjectMetrics(SubjectId subject) const override { return m_held.metrics(subject); }
    Status run(SubjectId subject, std::size_t set) override;
    Result<TimedSample> time(const TimedRun &run) override;
    Result<EnergyReading> energy(const TimedRun &run, double seconds) override;
    Result<std::vector<Metric>> counters(SubjectId subject, const std::vector<std::string> &sets) override;
    Status prepareSampling() override;
    Result<SampledCode> sample(SubjectId subject, std::span<const std::byte> binary) override;

private:
    int attribute(CUdevice_attribute name) const;
    Result<CUdeviceptr> addressOf(ModuleId module, const std::string &variable, std::size_t bytes) const;
    Result<std::vector<Region>> regions(const std::vector<FillRegion> &wanted) const;
    Result<std::vector<AddressSet>> addresses(const std::vector<BufferSet> &sets) const;
    Status enqueueRuns(Entry &entry, const TimedRun &run);
    Result<CUgraphExec> replay(Entry &entry, const TimedRun &run);
    Result<CUgraphExec> launchable(const Graph &captured);
    /// Of a sample, enqueued at once.
    struct Part {
        TimedRun run;
        CUgraphExec graph = nullptr; ///< nothing: its runs are launched one by one
    };
    Result<std::vector<Part>> partsOf(Entry &entry, const TimedRun &run);
    Result<CUgraphExec> splitGraph(Entry &entry, const std::vector<Part> &parts, const TimedRun &run);
    Status enqueueCopies(std::span<const CopyRange> ranges);
    Status makeContents(const TimedRun &run);
    /// What the inputs of all sets add up to, and what there is of the driver's.
    struct InputSums {
        std::uint64_t key = 0;
        std::vector<Region> regions;
        std::vector<std::uint64_t> values;
        std::vector<Region>
            metRegions; ///< of a cooperative launch: m_meetingPieces, but for the highest bits
        std::vector<std::uint64_t> met;
    };
    Result<InputSums> inputSums(std::uint64_t key, bool meets);
    Result<std::optional<BufferBinding>> changedInput(const InputSums &before, const TimedRun &run);
    /// What a sample changed that it may not.
    Result<std::optional<BufferBinding>> touched(const Entry &entry, const TimedRun &run);

    Driver m_driver;
    Helpers m_helpers;
    CUdevice m_device = 0;
    CUcontext m_context = nullptr;
    std::unique_ptr<counters::PcSampler> m_sampler;
    // Those further down use those further up, and are let go first.
    Stream m_stream;
    Event m_begin;
    Event m_end;
    std::string m_pciBusId;
    Holdings<Module, BufferMemory, Entry> m_held;
    ExecutableGraph m_launched; ///< of the last sample
    /// How the inputs of a set are made, and what they hold now.
    struct Contents {
        std::vector<BlendJob> jobs;
        std::vector<Region> inputs; ///< that the jobs make
        std::uint64_t held = 0;
    };
    std::vector<Contents> m_contents; ///< by set
    /// A variable that no run may change, and what it holds.
    struct Variable {
        ModuleVariable which;
        CUdeviceptr address = 0;
        std::vector<std::byte> held;
    };
    std::vector<Variable> m_variables;
    /// Of the driver's memory what kernels can find, and no run may change: around variables, parameters and what blocks meet at.
    std::vector<Region> m_driverPieces;
    std::vector<Region> m_meetingPieces;
    [[nodiscard]] std::vector<Region> besideVariables() const;
};

} // namespace klineage::gate::cuda
