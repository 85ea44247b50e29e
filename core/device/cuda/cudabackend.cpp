// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/device/cuda/cudabackend.h"

#include "core/device/counters/rangeprofiler.h"
#include "core/device/cuda/nvml.h"
#include "core/device/cuda/vendor.h"

#include <algorithm>
#include <set>

namespace klineage::gate {

namespace cuda {

Status CudaBackend::open()
{
    const std::string hint = " Check that the NVIDIA driver runs: nvidia-smi must list a device.";
    if (const CUresult result = m_driver.init(0); result != CUDA_SUCCESS)
        return fail(ErrorCode::Unavailable,
                    "Cannot start the CUDA driver: " + m_driver.describe(result) + "." + hint);
    int count = 0;
    if (m_driver.deviceGetCount(&count) != CUDA_SUCCESS || count == 0)
        return fail(ErrorCode::Unavailable, "Cannot find a CUDA device." + hint);
    if (auto done = m_driver.check(m_driver.deviceGet(&m_device, 0), "open CUDA device 0"); !done)
        return done;
    // Room for local memory that has been taken once stays: graphs know where it is.
    m_driver.devicePrimaryCtxSetFlags(m_device, CU_CTX_LMEM_RESIZE_TO_MAX);
    if (auto done =
            m_driver.check(m_driver.devicePrimaryCtxRetain(&m_context, m_device), "create a CUDA context");
        !done)
        return done;
    if (auto done = m_driver.check(m_driver.ctxSetCurrent(m_context), "make the CUDA context current"); !done)
        return done;
    if (attribute(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) == 0)
        return fail(ErrorCode::Unavailable,
                    "Cannot time on this device: it does not map memory at chosen addresses.");
    // A kernel that allocates on the device's heap could keep things there from launch to launch, and no part of the L2 may be
    // set aside for it. Both are the least that the driver grants.
    m_driver.ctxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 0);
    m_driver.ctxSetLimit(CU_LIMIT_PERSISTING_L2_CACHE_SIZE, 0);
    char busId[64] = {};
    m_driver.deviceGetPCIBusId(busId, sizeof busId, m_device);
    m_pciBusId = busId;
    auto stream = makeStream(m_driver);
    if (!stream)
        return tl::unexpected(stream.error());
    m_stream = std::move(*stream);
    for (Event *event : {&m_begin, &m_end}) {
        auto made = makeEvent(m_driver);
        if (!made)
            return tl::unexpected(made.error());
        *event = std::move(*made);
    }
    return {};
}

int CudaBackend::attribute(CUdevice_attribute name) const
{
    int value = 0;
    m_driver.deviceGetAttribute(&value, name, m_device);
    return value;
}

kernel::Bindings CudaBackend::deviceFacts() const
{
    return {
        {"sm_count", std::int64_t{attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)}},
        {"warp_size", std::int64_t{attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE)}},
        {"max_shared", std::int64_t{attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)}},
    };
}

Environment CudaBackend::environment() const
{
    Environment environment;
    char name[256] = {};
    m_driver.deviceGetName(name, sizeof name, m_device);
    environment.device = name;
    environment.platform = "sm" + std::to_string(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR))
                           + std::to_string(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
    environment.facts = nvmlFacts(m_pciBusId);
    if (!m_pciBusId.empty())
        environment.facts["pci_bus"] = m_pciBusId;
    int version = 0;
    m_driver.driverGetVersion(&version);
    environment.facts["cuda_driver"] =
        std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
    environment.facts["sm_count"] = std::to_string(attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
    environment.facts["l2_bytes"] = std::to_string(attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE));
    if (std::size_t bytes = 0; m_driver.deviceTotalMem(&bytes, m_device) == CUDA_SUCCESS)
        environment.facts["memory_bytes"] = std::to_string(bytes);
    environment.facts["timing"] = "graph replay between events";
    environment.facts["reaches_host_memory"] =
        attribute(CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS) != 0 ? "yes" : "no";
    return environment;
}

Result<ModuleId> CudaBackend::load(std::span<const std::byte> binary, const std::string &,
                                   const std::map<std::string, std::int64_t> &, CompileOutput &output)
{
    if (binary.empty())
        return fail(ErrorCode::InvalidInput, "Cannot load an empty cubin.");
    auto module = loadModule(m_driver, binary.data(), "load the cubin");
    if (!module)
        return tl::unexpected(module.error());
    output.ok = true;
    return m_held.addModule(std::move(*module));
}

void CudaBackend::unload(ModuleId module)
{
    std::erase_if(m_variables, [&](const Variable &variable) { return variable.which.module == module; });
    m_driverPieces.clear(); // until guards are set again
    m_meetingPieces.clear();
    if (m_held.eraseModule(module))
        m_driver.ctxResetPersistingL2Cache();
}

Result<CUdeviceptr> CudaBackend::addressOf(ModuleId module, const std::string &variable,
                                           std::size_t bytes) const
{
    const auto found = m_held.module(module, "read the variable " + variable);
    if (!found)
        return tl::unexpected(found.error());
    CUdeviceptr address = 0;
    std::size_t size = 0;
    const CUresult result = m_driver.moduleGetGlobal(&address, &size, *found, variable.c_str());
    if (result != CUDA_SUCCESS || size < bytes)
        return fail(ErrorCode::InvalidInput, "Cannot find the variable " + variable
                                                 + " in the module: " + m_driver.describe(result) + ".");
    return address;
}

Status CudaBackend::readGlobal(ModuleId module, const std::string &name, std::span<std::byte> bytes)
{
    const auto address = addressOf(module, name, bytes.size());
    if (!address)
        return tl::unexpected(address.error());
    return m_driver.check(m_driver.memcpyDtoH(bytes.data(), *address, bytes.size()),
                          "read the variable " + name);
}

Result<BufferId> CudaBackend::allocate(std::size_t bytes)
{
    auto memory =
        allocateMemory(m_driver, bytes, "allocate " + std::to_string(bytes) + " bytes of device memory");
    if (!memory)
        return tl::unexpected(memory.error());
    return m_held.addBuffer(BufferMemory(std::move(*memory)), bytes);
}

Result<BufferId> CudaBackend::allocateHidden(std::size_t bytes)
{
    auto memory = ScatteredMemory::hidden(m_driver, m_device, bytes,
                                          "allocate " + std::to_string(bytes) + " bytes of device memory");
    if (!memory)
        return tl::unexpected(memory.error());
    return m_held.addBuffer(BufferMemory(std::move(*memory)), bytes);
}

Result<BufferId> CudaBackend::scatter(std::size_t rangeBytes, std::size_t placeBytes,
                                      const std::vector<std::size_t> &places)
{
    auto memory = ScatteredMemory::make(m_driver, m_device, rangeBytes, placeBytes, places,
                                        "allocate " + std::to_string(places.size()) + " times "
                                            + std::to_string(placeBytes) + " bytes of device memory");
    if (!memory)
        return tl::unexpected(memory.error());
    return m_held.addBuffer(BufferMemory(std::move(*memory)), rangeBytes);
}

Status CudaBackend::upload(BufferId buffer, std::size_t offset, std::span<const std::byte> image)
{
    const auto target = m_held.memory(buffer, offset + image.size());
    if (!target)
        return tl::unexpected(target.error());
    return m_driver.toDevice(*target + offset, image.data(), image.size(), "copy to the device");
}

Status CudaBackend::download(BufferId buffer, std::size_t offset, std::span<std::byte> image)
{
    const auto source = m_held.memory(buffer, offset + image.size());
    if (!source)
        return tl::unexpected(source.error());
    return m_driver.check(m_driver.memcpyDtoH(image.data(), *source + offset, image.size()),
                          "copy from the device");
}

Result<std::string> CudaBackend::share(BufferId buffer)
{
    const auto memory = m_held.memory(buffer, 0);
    if (!memory)
        return tl::unexpected(memory.error());
    return shareMemory(m_driver, *memory);
}

Result<BufferId> CudaBackend::adopt(const std::string &handle, std::size_t bytes)
{
    auto opened = openMemory(m_driver, handle);
    if (!opened)
        return tl::unexpected(opened.error());
    return m_held.addBuffer(BufferMemory(std::move(*opened)), bytes);
}

Result<std::vector<AddressSet>> CudaBackend::addresses(const std::vector<BufferSet> &sets) const
{
    std::vector<AddressSet> result;
    for (const BufferSet &set : sets) {
        AddressSet addresses;
        for (const auto &[name, binding] : set) {
            const auto buffer = m_held.memory(binding.buffer, binding.offsetBytes);
            if (!buffer)
                return tl::unexpected(buffer.error());
            addresses[name] = *buffer + binding.offsetBytes;
        }
        result.push_back(std::move(addresses));
    }
    return result;
}

Result<SubjectId> CudaBackend::addPlan(ModuleId module, const kernel::ResolvedPlan &plan,
                                       const std::vector<BufferSet> &sets)
{
    const auto found = m_held.module(module, "prepare a plan");
    if (!found)
        return tl::unexpected(found.error());
    auto bound = addresses(sets);
    if (!bound)
        return tl::unexpected(bound.error());
    auto subject = makePlanSubject(m_driver, m_device, *found, plan, std::move(*bound));
    if (!subject)
        return tl::unexpected(subject.error());
    return m_held.addSubject(std::move(*subject));
}

Result<SubjectId> CudaBackend::addReference(const ReferenceCall &call, const std::vector<BufferSet> &sets)
{
    auto bound = addresses(sets);
    if (!bound)
        return tl::unexpected(bound.error());
    auto subject = makeVendorSubject({m_driver, m_stream.get()}, call, std::move(*bound));
    if (!subject)
        return tl::unexpected(subject.error());
    return m_held.addSubject(std::move(*subject));
}

Status CudaBackend::rebind(SubjectId subject, const std::vector<BufferSet> &sets)
{
    const auto found = m_held.subject(subject);
    if (!found)
        return tl::unexpected(found.error());
    auto bound = addresses(sets);
    if (!bound)
        return tl::unexpected(bound.error());
    (*found)->replays.clear();
    (*found)->subject->rebind(std::move(*bound));
    return {};
}

Status CudaBackend::setFills(SubjectId subject, const FillSets &fills)
{
    const auto found = m_held.subjectToFill(subject, fills);
    if (!found)
        return tl::unexpected(found.error());
    if (!m_helpers.installed())
        return fail(ErrorCode::Internal, "Cannot refill buffers: the gate's own kernels are not loaded.");
    std::vector<std::vector<Region>> written(fills.size());
    std::vector<std::vector<Region>> others(fills.size());
    for (std::size_t set = 0; set < fills.size(); ++set) {
        const auto placed = regions(fills[set]);
        if (!placed)
            return tl::unexpected(placed.error());
        for (std::size_t i = 0; i < placed->size(); ++i)
            (fills[set][i].written ? written : others)[set].push_back((*placed)[i]);
    }
    (*found)->fills = FillTable(std::move(written), std::move(others));
    (*found)->replays.clear();
    if (auto done = (*found)->subject->usesLocal() ? m_helpers.overwriteStacks(m_stream.get(), 0) : Status();
        !done)
        return done;
    return m_driver.check(m_driver.streamSynchronize(m_stream.get()), "take room for local memory");
}

Result<std::vector<Region>> CudaBackend::regions(const std::vector<FillRegion> &wanted) const
{
    std::vector<Region> placed;
    for (const FillRegion &region : wanted) {
        const auto buffer = m_held.memory(region.buffer, region.offsetBytes + region.bytes);
        if (!buffer)
            return tl::unexpected(buffer.error());
        placed.push_back({*buffer + region.offsetBytes, region.bytes});
    }
    return placed;
}

Status CudaBackend::setGuards(const Guards &guards)
{
    auto slack = regions(guards.slack);
    if (!slack)
        return tl::unexpected(slack.error());
    std::vector<Guard> placed;
    for (const GuardedCopies &wanted : guards.copies) {
        if (wanted.offsetBytes + wanted.bytes > wanted.placeBytes)
            return fail(ErrorCode::InvalidInput, "Cannot guard copies that are larger than their places.");
        const auto zones = m_held.memory(wanted.zones, wanted.placeBytes - wanted.bytes);
        if (!zones)
            return tl::unexpected(zones.error());
        for (const std::size_t place : wanted.places) {
            const auto buffer = m_held.memory(wanted.buffer, place + wanted.placeBytes);
            if (!buffer)
                return tl::unexpected(buffer.error());
            placed.push_back({*buffer + place, wanted.offsetBytes, wanted.bytes,
                              wanted.placeBytes - wanted.offsetBytes - wanted.bytes, *zones});
        }
    }
    m_helpers.setGuards(std::move(placed), std::move(*slack));
    m_variables.clear();
    for (const ModuleVariable &variable : guards.variables) {
        const auto address = addressOf(variable.module, variable.name, variable.bytes);
        if (!address)
            return tl::unexpected(address.error());
        m_variables.push_back({variable, *address, std::vector<std::byte>(variable.bytes)});
        if (auto read = readGlobal(variable.module, variable.name, m_variables.back().held); !read)
            return read;
    }
    m_driverPieces = besideVariables();
    if (m_helpers.installed()) {
        const auto pieces = m_helpers.driverPieces(m_stream.get());
        if (!pieces)
            return tl::unexpected(pieces.error());
        m_driverPieces.insert(m_driverPieces.end(), pieces->parameters.begin(), pieces->parameters.end());
        m_meetingPieces = pieces->meeting;
    }
    return {};
}

/// The driver lays variables of all modules one behind the other, 256 bytes apart at least, in pieces of memory of which it hands out no part
/// to anybody else. What lies between and behind them is nobody's, and lasts from launch to launch.
std::vector<Region> CudaBackend::besideVariables() const
{
    constexpr std::uint64_t pieceBytes = ScatteredMemory::pageBytes;
    std::set<std::uint64_t> pieces;
    for (const Variable &variable : m_variables) {
        pieces.insert(variable.address / pieceBytes);
        pieces.insert((variable.address + variable.held.size() - 1) / pieceBytes);
    }
    std::vector<Region> regions;
    for (const std::uint64_t piece : pieces)
        regions.push_back({piece * pieceBytes, pieceBytes});
    return regions;
}

Status CudaBackend::setContents(const std::vector<std::vector<CopyRange>> &sets)
{
    std::vector<Contents> contents;
    for (const auto &ranges : sets) {
        Contents &set = contents.emplace_back();
        const auto placed = m_held.copyEach(
            ranges, [](CUdeviceptr, CUdeviceptr, const CopyRange &) -> Status { return {}; },
            [&](CUdeviceptr to, CUdeviceptr from, CUdeviceptr with, const CopyRange &range) -> Status {
                set.jobs.push_back(blendJob(range, to, from, with));
                set.inputs.push_back({to + range.toOffset, range.bytes});
                return {};
            });
        if (!placed)
            return placed;
    }
    m_contents = std::move(contents);
    return {};
}

Status CudaBackend::setOutputs(SubjectId subject, const OutputSets &outputs)
{
    const auto found = m_held.subjectToLookAt(subject, outputs);
    if (!found)
        return tl::unexpected(found.error());
    if (!m_helpers.installed())
        return fail(ErrorCode::Internal, "Cannot look at outputs: the gate's own kernels are not loaded.");
    std::vector<std::vector<CUdeviceptr>> addresses;
    for (const auto &set : outputs.sets) {
        auto &out = addresses.emplace_back();
        for (std::size_t i = 0; i < set.size(); ++i) {
            const auto buffer = m_held.memory(set[i].buffer, set[i].offsetBytes + outputs.layouts[i].bytes());
            if (!buffer)
                return tl::unexpected(buffer.error());
            out.push_back(*buffer + set[i].offsetBytes);
        }
    }
    (*found)->outputs = OutputTable(outputs, addresses);
    return {};
}

Status CudaBackend::run(SubjectId subject, std::size_t set)
{
    const auto found = m_held.subjectOn(subject, set);
    if (!found)
        return tl::unexpected(found.error());
    if (auto enqueued = (*found)->subject->enqueueChecked(m_stream.get(), set); !enqueued)
        return enqueued;
    return m_driver.check(m_driver.streamSynchronize(m_stream.get()), "finish the kernel");
}

Result<std::vector<Metric>> CudaBackend::counters(SubjectId subject, const std::vector<std::string> &sets)
{
    const auto found = m_held.subject(subject);
    if (!found)
        return tl::unexpected(found.error());
    const Subject &plan = *(*found)->subject;
    const std::size_t count = plan.setCount();
    counters::ProfiledRun profiled{plan.kernels(),
                                   [&](std::size_t pass) { return run(subject, (pass + 2) % count); }};
    if (profiled.kernels.empty())
        return fail(ErrorCode::Unavailable,
                    "Cannot read hardware counters of a vendor routine: its launches are not known.");
    // The passes find the caches as a run over another set left them.
    for (std::size_t i = 0; i < 2; ++i) {
        if (auto warmed = run(subject, i % count); !warmed)
            return tl::unexpected(warmed.error());
    }
    return counters::readCounters(m_context, m_device, profiled, sets);
}

Status CudaBackend::prepareSampling()
{
    auto sampler = counters::PcSampler::enable(m_context);
    if (!sampler)
        return tl::unexpected(sampler.error());
    m_sampler = std::move(*sampler);
    return {};
}

Result<SampledCode> CudaBackend::sample(SubjectId subject, std::span<const std::byte> binary)
{
    const auto found = m_held.subject(subject);
    if (!found)
        return tl::unexpected(found.error());
    if (!m_sampler)
        return fail(ErrorCode::Internal, "Cannot sample the program counter: sampling was not prepared.");
    const std::size_t count = (*found)->subject->setCount();
    auto samples = m_sampler->sample([&](std::size_t pass) { return run(subject, pass % count); }, binary);
    if (!samples)
        return tl::unexpected(samples.error());
    return SampledCode{std::move(samples->instructions),
                       {{"pc_samples", static_cast<double>(samples->samples), "", ""},
                        {"pc_samples_dropped", static_cast<double>(samples->dropped), "", ""},
                        {"pc_sample_period", static_cast<double>(samples->periodCycles), "cycles", ""}}};
}

Status CudaBackend::enqueueCopies(std::span<const CopyRange> ranges)
{
    std::vector<BlendJob> blends;
    const auto enqueued = m_held.copyEach(
        ranges,
        [this](CUdeviceptr to, CUdeviceptr from, const CopyRange &range) {
            return m_driver.check(m_driver.memcpyDtoDAsync(to + range.toOffset, from + range.fromOffset,
                                                           range.bytes, m_stream.get()),
                                  "copy between buffers");
        },
        [&](CUdeviceptr to, CUdeviceptr from, CUdeviceptr with, const CopyRange &range) -> Status {
            blends.push_back(blendJob(range, to, from, with));
            return {};
        });
    if (!enqueued || blends.empty())
        return enqueued;
    return m_helpers.blend(m_stream.get(), blends);
}

Status CudaBackend::copy(std::span<const CopyRange> ranges)
{
    if (auto enqueued = enqueueCopies(ranges); !enqueued)
        return enqueued;
    return m_driver.check(m_driver.streamSynchronize(m_stream.get()), "copy between buffers");
}

} // namespace cuda

Result<std::unique_ptr<Backend>> openCudaBackend()
{
    auto driver = cuda::Driver::load();
    if (!driver)
        return tl::unexpected(driver.error());
    auto backend = std::make_unique<cuda::CudaBackend>(*driver);
    if (auto opened = backend->open(); !opened)
        return tl::unexpected(opened.error());
    return std::unique_ptr<Backend>(std::move(backend));
}

} // namespace klineage::gate
