// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/device/cuda/subject.h"
#include "core/device/cuda/tensormap.h"

#include <algorithm>
#include <cstring>

namespace klineage::gate::cuda {

namespace {

/// One launch, ready for one buffer set: the parameter values and the pointers the driver wants to them.
struct BoundLaunch {
    std::vector<std::vector<std::byte>> values;
    std::vector<void *> pointers;
};

struct PreparedLaunch {
    kernel::ResolvedLaunch launch;
    CUfunction function = nullptr;
    std::vector<BoundLaunch> bound; ///< one a set
    bool overlapsPrevious = false; ///< programmatic dependent launch on the launch before it, of the same run
    CUevent ended =
        nullptr; ///< while a graph is captured: a later run begins after it; nullptr: it would anyway
};

struct ZeroFill {
    std::string buffer;
    std::size_t bytes = 0;
};

template <typename T>
std::vector<std::byte> bytesOf(const T &value)
{
    std::vector<std::byte> bytes(sizeof(T));
    std::memcpy(bytes.data(), &value, sizeof(T));
    return bytes;
}

class PlanSubject : public Subject
{
public:
    PlanSubject(const Driver &driver, CUdevice device, std::vector<AddressSet> sets)
        : m_driver(driver)
        , m_device(device)
        , m_sets(std::move(sets))
    {}
    ~PlanSubject() override
    {
        for (const PreparedLaunch &prepared : m_launches) {
            if (prepared.ended)
                m_driver.eventDestroy(prepared.ended);
        }
    }

    Status prepare(CUmodule module, const kernel::ResolvedPlan &plan);
    Status enqueue(CUstream stream, std::size_t set) override;
    std::size_t setCount() const override { return m_sets.size(); }
    std::vector<std::string> kernels() const override;
    bool usesLocal() const override { return m_usesLocal; }
    bool meets() const override;
    std::vector<Metric> metrics() const override;

private:
    Status encodeMaps(const kernel::ResolvedPlan &plan);
    Result<PreparedLaunch> prepareLaunch(CUmodule module, const kernel::ResolvedLaunch &launch);
    Result<BoundLaunch> bind(const kernel::ResolvedLaunch &launch, std::size_t set) const;
    Status checkParameters(const PreparedLaunch &prepared) const;
    Status checkCooperative(const PreparedLaunch &prepared) const;
    Status checkLocal(const PreparedLaunch &prepared) const;
    std::size_t localBytesOf(const PreparedLaunch &prepared) const;
    Status prepareOverlap();
    Status launch(CUstream stream, PreparedLaunch &prepared, std::size_t set) const;
    Status joinAll(CUstream stream) const;
    Result<CUdeviceptr> addressOf(const std::string &name, std::size_t set) const;

    const Driver &m_driver;
    CUdevice m_device;
    std::vector<AddressSet> m_sets;
    std::vector<std::vector<CUtensorMap>> m_maps; ///< [set][map]
    std::vector<PreparedLaunch> m_launches;
    std::vector<ZeroFill> m_zeroFills;
    bool m_usesLocal = true;
};

Result<CUdeviceptr> PlanSubject::addressOf(const std::string &name, std::size_t set) const
{
    const auto found = m_sets[set].find(name);
    if (found == m_sets[set].end())
        return fail(ErrorCode::InvalidInput, "Cannot bind the plan: there is no buffer named " + name + ".");
    return found->second;
}

Status PlanSubject::encodeMaps(const kernel::ResolvedPlan &plan)
{
    for (std::size_t set = 0; set < m_sets.size(); ++set) {
        std::vector<CUtensorMap> maps;
        for (const kernel::ResolvedTensorMap &map : plan.tensorMaps) {
            const auto address = addressOf(map.buffer, set);
            if (!address)
                return tl::unexpected(address.error());
            auto encoded = encodeTensorMap(m_driver, map, *address);
            if (!encoded)
                return tl::unexpected(encoded.error());
            maps.push_back(*encoded);
        }
        m_maps.push_back(std::move(maps));
    }
    return {};
}

Result<BoundLaunch> PlanSubject::bind(const kernel::ResolvedLaunch &launch, std::size_t set) const
{
    BoundLaunch bound;
    for (const kernel::ResolvedArg &arg : launch.args) {
        if (const auto *pointer = std::get_if<kernel::PointerValue>(&arg)) {
            const auto address = addressOf(pointer->buffer, set);
            if (!address)
                return tl::unexpected(address.error());
            bound.values.push_back(bytesOf(*address));
        } else if (const auto *map = std::get_if<kernel::TensorMapValue>(&arg)) {
            bound.values.push_back(bytesOf(m_maps[set].at(map->index)));
        } else if (const auto *scalar = std::get_if<kernel::ScalarValue>(&arg)) {
            bound.values.emplace_back(scalar->bytes.begin(),
                                      scalar->bytes.begin() + static_cast<std::ptrdiff_t>(scalar->size));
        } else {
            return fail(ErrorCode::InvalidInput,
                        "Cannot launch " + launch.kernel + ": `local` arguments are for OpenCL only.");
        }
    }
    for (auto &value : bound.values)
        bound.pointers.push_back(value.data());
    return bound;
}

/// A wrong argument list would make the driver read past the values, so it is compared with the compiled kernel first.
Status PlanSubject::checkParameters(const PreparedLaunch &prepared) const
{
    const auto &values = prepared.bound.front().values;
    for (std::size_t i = 0; i <= values.size(); ++i) {
        std::size_t offset = 0;
        std::size_t size = 0;
        const bool exists = m_driver.funcGetParamInfo(prepared.function, i, &offset, &size) == CUDA_SUCCESS;
        if (exists != (i < values.size()))
            return fail(ErrorCode::InvalidInput, "Cannot launch " + prepared.launch.kernel
                                                     + ": the plan passes " + std::to_string(values.size())
                                                     + " arguments, the kernel takes "
                                                     + (exists ? "more." : "fewer."));
        if (exists && size != values[i].size())
            return fail(ErrorCode::InvalidInput,
                        "Cannot launch " + prepared.launch.kernel + ": argument " + std::to_string(i + 1)
                            + " is " + std::to_string(values[i].size()) + " bytes in the plan and "
                            + std::to_string(size) + " bytes in the kernel.");
    }
    return {};
}

/// All blocks of a cooperative launch must be resident at once, or they would wait for each other forever.
Status PlanSubject::checkCooperative(const PreparedLaunch &prepared) const
{
    const kernel::ResolvedLaunch &launch = prepared.launch;
    if (!launch.cooperative || launch.cluster[0] * launch.cluster[1] * launch.cluster[2] > 1)
        return {}; // of clusters the driver knows better
    int multiprocessors = 0;
    int resident = 0;
    if (m_driver.deviceGetAttribute(&multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, m_device)
            != CUDA_SUCCESS
        || m_driver.occupancyBlocks(&resident, prepared.function,
                                    static_cast<int>(launch.block[0] * launch.block[1] * launch.block[2]),
                                    static_cast<std::size_t>(launch.sharedBytes))
               != CUDA_SUCCESS)
        return {};
    const std::int64_t blocks = launch.grid[0] * launch.grid[1] * launch.grid[2];
    const std::int64_t most = static_cast<std::int64_t>(resident) * multiprocessors;
    if (blocks <= most)
        return {};
    return fail(ErrorCode::InvalidInput,
                "Cannot launch " + launch.kernel + " cooperatively: of its " + std::to_string(blocks)
                    + " blocks " + std::to_string(most) + " fit on the device at once ("
                    + std::to_string(resident) + " on each of " + std::to_string(multiprocessors)
                    + " multiprocessors). Loop over the work in a grid of at most that many.");
}

Result<PreparedLaunch> PlanSubject::prepareLaunch(CUmodule module, const kernel::ResolvedLaunch &launch)
{
    PreparedLaunch prepared;
    prepared.launch = launch;
    if (const CUresult result = m_driver.moduleGetFunction(&prepared.function, module, launch.kernel.c_str());
        result != CUDA_SUCCESS)
        return tl::unexpected(m_driver.error(result, "find kernel " + launch.kernel
                                                         + " in the compiled module (is it extern \"C\"?)"));
    for (std::size_t set = 0; set < m_sets.size(); ++set) {
        auto bound = bind(launch, set);
        if (!bound)
            return tl::unexpected(bound.error());
        prepared.bound.push_back(std::move(*bound));
    }
    if (auto checked = checkParameters(prepared); !checked)
        return tl::unexpected(checked.error());
    const auto shared = static_cast<int>(launch.sharedBytes);
    if (shared > 0) {
        if (auto set = m_driver.check(
                m_driver.funcSetAttribute(prepared.function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                          shared),
                "give kernel " + launch.kernel + " " + std::to_string(shared)
                    + " bytes of dynamic shared memory");
            !set)
            return tl::unexpected(set.error());
    }
    if (auto fits = checkCooperative(prepared); !fits)
        return tl::unexpected(fits.error());
    if (auto fits = checkLocal(prepared); !fits)
        return tl::unexpected(fits.error());
    if (launch.cluster[0] * launch.cluster[1] * launch.cluster[2] > 8)
        m_driver.funcSetAttribute(prepared.function, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1);
    return prepared;
}

Status PlanSubject::prepare(CUmodule module, const kernel::ResolvedPlan &plan)
{
    if (m_sets.empty())
        return fail(ErrorCode::Internal, "Cannot prepare a plan without a buffer set.");
    if (auto encoded = encodeMaps(plan); !encoded)
        return encoded;
    m_usesLocal = plan.usesLocal; // frames, and what is written at an address, no attribute says
    for (const kernel::ResolvedBuffer &workspace : plan.workspaces) {
        if (workspace.init == kernel::WorkspaceInit::Zero)
            m_zeroFills.push_back({workspace.name, static_cast<std::size_t>(workspace.bytes())});
    }
    for (const kernel::ResolvedLaunch &launch : plan.launches) {
        auto prepared = prepareLaunch(module, launch);
        if (!prepared)
            return tl::unexpected(prepared.error());
        m_usesLocal = m_usesLocal || localBytesOf(*prepared) > 0;
        m_launches.push_back(std::move(*prepared));
    }
    // Moving a BoundLaunch keeps its heap blocks, so the pointers taken in bind() stay valid.
    return prepareOverlap();
}

/// Launches of one run may overlap where the plan says so, runs may not: the first launch never begins before the run before it has ended,
/// whatever the plan says, and in a graph the launches that another one overlaps are waited for too, not only the last.
Status PlanSubject::prepareOverlap()
{
    for (std::size_t i = 1; i < m_launches.size(); ++i) {
        m_launches[i].overlapsPrevious = m_launches[i].launch.programmaticDependent;
        if (!m_launches[i].overlapsPrevious)
            continue;
        if (auto made =
                m_driver.check(m_driver.eventCreate(&m_launches[i - 1].ended, CU_EVENT_DISABLE_TIMING),
                               "create a CUDA event");
            !made)
            return made;
    }
    return {};
}

Status PlanSubject::enqueue(CUstream stream, std::size_t set)
{
    for (const ZeroFill &fill : m_zeroFills) {
        const auto address = addressOf(fill.buffer, set);
        if (!address)
            return tl::unexpected(address.error());
        if (auto done = m_driver.check(m_driver.memsetD8Async(*address, 0, fill.bytes, stream),
                                       "clear workspace " + fill.buffer);
            !done)
            return done;
    }
    // An event between two launches would keep them from overlapping, except in a graph, where it only names a dependency.
    CUstreamCaptureStatus capturing = CU_STREAM_CAPTURE_STATUS_NONE;
    m_driver.streamIsCapturing(stream, &capturing);
    for (PreparedLaunch &prepared : m_launches) {
        if (auto launched = launch(stream, prepared, set); !launched)
            return launched;
        if (prepared.ended && capturing == CU_STREAM_CAPTURE_STATUS_ACTIVE)
            m_driver.eventRecord(prepared.ended, stream);
    }
    return capturing == CU_STREAM_CAPTURE_STATUS_ACTIVE ? joinAll(stream) : Status();
}

Status PlanSubject::joinAll(CUstream stream) const
{
    for (const PreparedLaunch &prepared : m_launches) {
        if (!prepared.ended)
            continue;
        if (auto waits = m_driver.check(m_driver.streamWaitEvent(stream, prepared.ended, 0),
                                        "let the next run wait for this one");
            !waits)
            return waits;
    }
    return {};
}

Status PlanSubject::launch(CUstream stream, PreparedLaunch &prepared, std::size_t set) const
{
    const kernel::ResolvedLaunch &launch = prepared.launch;
    CUlaunchAttribute attributes[3] = {};
    CUlaunchConfig config{};
    config.gridDimX = static_cast<unsigned>(launch.grid[0]);
    config.gridDimY = static_cast<unsigned>(launch.grid[1]);
    config.gridDimZ = static_cast<unsigned>(launch.grid[2]);
    config.blockDimX = static_cast<unsigned>(launch.block[0]);
    config.blockDimY = static_cast<unsigned>(launch.block[1]);
    config.blockDimZ = static_cast<unsigned>(launch.block[2]);
    config.sharedMemBytes = static_cast<unsigned>(launch.sharedBytes);
    config.hStream = stream;
    config.attrs = attributes;
    if (launch.cluster[0] * launch.cluster[1] * launch.cluster[2] > 1) {
        CUlaunchAttribute &cluster = attributes[config.numAttrs++];
        cluster.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
        cluster.value.clusterDim.x = static_cast<unsigned>(launch.cluster[0]);
        cluster.value.clusterDim.y = static_cast<unsigned>(launch.cluster[1]);
        cluster.value.clusterDim.z = static_cast<unsigned>(launch.cluster[2]);
    }
    if (launch.cooperative) {
        CUlaunchAttribute &cooperative = attributes[config.numAttrs++];
        cooperative.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
        cooperative.value.cooperative = 1;
    }
    if (prepared.overlapsPrevious) {
        CUlaunchAttribute &dependent = attributes[config.numAttrs++];
        dependent.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
        dependent.value.programmaticStreamSerializationAllowed = 1;
    }
    return m_driver.check(
        m_driver.launchKernelEx(&config, prepared.function, prepared.bound[set].pointers.data(), nullptr),
        "launch kernel " + launch.kernel);
}

std::vector<std::string> PlanSubject::kernels() const
{
    std::vector<std::string> names;
    for (const PreparedLaunch &prepared : m_launches)
        names.push_back(prepared.launch.kernel);
    return names;
}

std::size_t PlanSubject::localBytesOf(const PreparedLaunch &prepared) const
{
    int bytes = 0;
    m_driver.funcGetAttribute(&bytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, prepared.function);
    return static_cast<std::size_t>(std::max(bytes, 0));
}

/// What lies deeper is not overwritten between samples, and could be read by the next one.
Status PlanSubject::checkLocal(const PreparedLaunch &prepared) const
{
    const std::size_t bytes = localBytesOf(prepared);
    if (bytes <= mostLocalBytes)
        return {};
    return fail(ErrorCode::InvalidInput,
                "Cannot launch " + prepared.launch.kernel + ": a thread of it takes " + std::to_string(bytes)
                    + " bytes of local memory, and no more than " + std::to_string(mostLocalBytes)
                    + " are overwritten between samples.");
}

bool PlanSubject::meets() const
{
    return std::any_of(m_launches.begin(), m_launches.end(),
                       [](const PreparedLaunch &prepared) { return prepared.launch.cooperative; });
}

std::vector<Metric> PlanSubject::metrics() const
{
    int multiprocessors = 0;
    int threadsPerMultiprocessor = 0;
    m_driver.deviceGetAttribute(&multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, m_device);
    m_driver.deviceGetAttribute(&threadsPerMultiprocessor, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR,
                                m_device);
    std::vector<Metric> metrics;
    for (const PreparedLaunch &prepared : m_launches) {
        const kernel::ResolvedLaunch &launch = prepared.launch;
        const auto threads = static_cast<double>(launch.block[0] * launch.block[1] * launch.block[2]);
        const auto blocks = static_cast<double>(launch.grid[0] * launch.grid[1] * launch.grid[2]);
        metrics.push_back({"blocks", blocks, "", launch.kernel});
        metrics.push_back({"threads_per_block", threads, "", launch.kernel});
        metrics.push_back({"dynamic_shared", static_cast<double>(launch.sharedBytes), "B", launch.kernel});
        int resident = 0;
        if (m_driver.occupancyBlocks(&resident, prepared.function, static_cast<int>(threads),
                                     static_cast<std::size_t>(launch.sharedBytes))
                != CUDA_SUCCESS
            || resident == 0 || multiprocessors == 0 || threadsPerMultiprocessor == 0)
            continue;
        metrics.push_back({"blocks_per_sm", static_cast<double>(resident), "", launch.kernel});
        metrics.push_back({"theoretical_occupancy", 100.0 * resident * threads / threadsPerMultiprocessor,
                           "%", launch.kernel});
        metrics.push_back(
            {"waves", blocks / (static_cast<double>(resident) * multiprocessors), "", launch.kernel});
    }
    return metrics;
}

} // namespace

Result<std::unique_ptr<Subject>> makePlanSubject(const Driver &driver, CUdevice device, CUmodule module,
                                                 const kernel::ResolvedPlan &plan,
                                                 std::vector<AddressSet> sets)
{
    auto subject = std::make_unique<PlanSubject>(driver, device, std::move(sets));
    if (auto prepared = subject->prepare(module, plan); !prepared)
        return tl::unexpected(prepared.error());
    return std::unique_ptr<Subject>(std::move(subject));
}

} // namespace klineage::gate::cuda
