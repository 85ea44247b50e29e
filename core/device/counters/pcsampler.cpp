// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/device/counters/pcsampler.h"

#include "core/device/counters/cupti.h"
#include "core/device/counters/hotspots.h"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstdlib>
#include <map>

namespace klineage::gate::counters {

namespace {

constexpr std::size_t mostPcs = 16384;
constexpr std::size_t scratchBytes = std::size_t{16} << 20;
constexpr std::size_t hardwareBytes = std::size_t{256} << 20;
constexpr double sampledNs = 4e6; ///< short kernels are run until this long is sampled
constexpr std::size_t mostRuns = 64;
constexpr double cyclesPerNs = 1.5;   ///< roughly, to choose the period
constexpr double samplesPerSm = 2000; ///< wanted
constexpr unsigned shortestPeriod = 7;
constexpr unsigned longestPeriod = 20;

/// Room for the records of mostPcs instructions.
class SampleBuffer
{
public:
    explicit SampleBuffer(std::size_t reasons)
        : m_stalls(mostPcs * reasons)
        , m_records(mostPcs)
    {
        for (std::size_t i = 0; i < mostPcs; ++i) {
            m_records[i].size = sizeof(CUpti_PCSamplingPCData);
            m_records[i].stallReason = m_stalls.data() + i * reasons;
        }
        m_data.size = sizeof(CUpti_PCSamplingData);
        m_data.collectNumPcs = mostPcs;
        m_data.pPcData = m_records.data();
    }
    [[nodiscard]] CUpti_PCSamplingData &data() { return m_data; }
    [[nodiscard]] std::span<CUpti_PCSamplingPCData> records()
    {
        return std::span(m_records).first(std::min<std::size_t>(m_data.totalNumPcs, mostPcs));
    }

private:
    std::vector<CUpti_PCSamplingStallReason> m_stalls;
    std::vector<CUpti_PCSamplingPCData> m_records;
    CUpti_PCSamplingData m_data{};
};

int lineOf(const Cupti &cupti, std::span<const std::byte> cubin, const std::string &kernel,
           std::uint64_t pcOffset)
{
    CUpti_GetSassToSourceCorrelationParams parameters{};
    parameters.size = CUpti_GetSassToSourceCorrelationParamsSize;
    parameters.cubin = cubin.data();
    parameters.cubinSize = cubin.size();
    parameters.functionName = kernel.c_str();
    parameters.pcOffset = pcOffset;
    const CUptiResult result = cupti.getSassToSourceCorrelation(&parameters);
    // Headers have the path that they were found at; the candidate has the name that the compiler was given.
    const std::string file = parameters.fileName ? parameters.fileName : "";
    std::free(parameters.fileName);
    std::free(parameters.dirName);
    const bool own = !file.empty() && file.front() != '/';
    return result == CUPTI_SUCCESS && own ? static_cast<int>(parameters.lineNumber) : 0;
}

class CuptiPcSampler : public PcSampler
{
public:
    CuptiPcSampler(Cupti cupti, CUctx_st *context)
        : m_cupti(cupti)
        , m_context(context)
    {}
    ~CuptiPcSampler() override { disable(); }

    Status enable();
    Result<PcSamples> sample(const std::function<Status(std::size_t)> &run,
                             std::span<const std::byte> cubin) override;

private:
    Status readReasons();
    Status configure(unsigned period);
    Status collect(const std::function<Status(std::size_t)> &run, std::size_t runs);
    Status drain();
    void take(SampleBuffer &buffer);
    void disable();

    Cupti m_cupti;
    CUctx_st *m_context;
    bool m_enabled = false;
    std::map<std::uint32_t, std::string> m_reasons; ///< by CUPTI's index; those that count
    std::size_t m_reasonCount = 0;
    std::unique_ptr<SampleBuffer> m_rest; ///< what CUPTI still has when it is disabled
    std::unique_ptr<SampleBuffer> m_buffer;
    std::map<std::pair<std::string, std::uint64_t>, ListedInstruction> m_samples; ///< by kernel and offset
    std::uint64_t m_dropped = 0;
};

Status CuptiPcSampler::enable()
{
    CUpti_PCSamplingEnableParams parameters{};
    parameters.size = CUpti_PCSamplingEnableParamsSize;
    parameters.ctx = m_context;
    auto enabled = m_cupti.check(m_cupti.pcSamplingEnable(&parameters), "enable PC sampling");
    m_enabled = enabled.has_value();
    return enabled ? readReasons() : enabled;
}

void CuptiPcSampler::disable()
{
    if (!m_enabled)
        return;
    CUpti_PCSamplingDisableParams parameters{};
    parameters.size = CUpti_PCSamplingDisableParamsSize;
    parameters.ctx = m_context;
    m_cupti.pcSamplingDisable(&parameters);
    m_enabled = false;
}

Status CuptiPcSampler::readReasons()
{
    CUpti_PCSamplingGetNumStallReasonsParams number{};
    number.size = CUpti_PCSamplingGetNumStallReasonsParamsSize;
    number.ctx = m_context;
    number.numStallReasons = &m_reasonCount;
    if (auto done = m_cupti.check(m_cupti.pcSamplingGetNumStallReasons(&number), "count the stall reasons");
        !done)
        return done;
    std::vector<std::uint32_t> indices(m_reasonCount);
    std::vector<std::array<char, CUPTI_STALL_REASON_STRING_SIZE>> texts(m_reasonCount);
    std::vector<char *> names;
    for (auto &text : texts)
        names.push_back(text.data());
    CUpti_PCSamplingGetStallReasonsParams list{};
    list.size = CUpti_PCSamplingGetStallReasonsParamsSize;
    list.ctx = m_context;
    list.numStallReasons = m_reasonCount;
    list.stallReasonIndex = indices.data();
    list.stallReasons = names.data();
    if (auto done = m_cupti.check(m_cupti.pcSamplingGetStallReasons(&list), "list the stall reasons"); !done)
        return done;
    for (std::size_t i = 0; i < m_reasonCount; ++i) {
        texts[i].back() = '\0';
        if (auto reason = stallReason(texts[i].data()); !reason.empty())
            m_reasons[indices[i]] = std::move(reason);
    }
    return {};
}

Status CuptiPcSampler::configure(unsigned period)
{
    m_rest = std::make_unique<SampleBuffer>(m_reasonCount);
    m_buffer = std::make_unique<SampleBuffer>(m_reasonCount);
    std::array<CUpti_PCSamplingConfigurationInfo, 6> attributes{};
    attributes[0].attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_PERIOD;
    attributes[0].attributeData.samplingPeriodData.samplingPeriod = period;
    attributes[1].attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_COLLECTION_MODE;
    attributes[1].attributeData.collectionModeData.collectionMode =
        CUPTI_PC_SAMPLING_COLLECTION_MODE_CONTINUOUS;
    attributes[2].attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_ENABLE_START_STOP_CONTROL;
    attributes[2].attributeData.enableStartStopControlData.enableStartStopControl = 1;
    attributes[3].attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SCRATCH_BUFFER_SIZE;
    attributes[3].attributeData.scratchBufferSizeData.scratchBufferSize = scratchBytes;
    attributes[4].attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_HARDWARE_BUFFER_SIZE;
    attributes[4].attributeData.hardwareBufferSizeData.hardwareBufferSize = hardwareBytes;
    attributes[5].attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_DATA_BUFFER;
    attributes[5].attributeData.samplingDataBufferData.samplingDataBuffer = &m_rest->data();
    CUpti_PCSamplingConfigurationInfoParams parameters{};
    parameters.size = CUpti_PCSamplingConfigurationInfoParamsSize;
    parameters.ctx = m_context;
    parameters.numAttributes = attributes.size();
    parameters.pPCSamplingConfigurationInfo = attributes.data();
    std::string action = "set PC sampling up";
    const CUptiResult result = m_cupti.pcSamplingSetConfigurationAttribute(&parameters);
    for (const auto &attribute : attributes) {
        if (result != CUPTI_SUCCESS && attribute.attributeStatus != CUPTI_SUCCESS)
            action += ", attribute " + std::to_string(static_cast<int>(attribute.attributeType));
    }
    return m_cupti.check(result, action);
}

Status CuptiPcSampler::collect(const std::function<Status(std::size_t)> &run, std::size_t runs)
{
    CUpti_PCSamplingStartParams start{};
    start.size = CUpti_PCSamplingStartParamsSize;
    start.ctx = m_context;
    if (auto done = m_cupti.check(m_cupti.pcSamplingStart(&start), "start PC sampling"); !done)
        return done;
    Status ran;
    for (std::size_t i = 0; i < runs && ran; ++i)
        ran = run(i);
    CUpti_PCSamplingStopParams stop{};
    stop.size = CUpti_PCSamplingStopParamsSize;
    stop.ctx = m_context;
    auto stopped = m_cupti.check(m_cupti.pcSamplingStop(&stop), "stop PC sampling");
    return ran ? stopped : ran;
}

void CuptiPcSampler::take(SampleBuffer &buffer)
{
    m_dropped += buffer.data().droppedSamples;
    for (CUpti_PCSamplingPCData &record : buffer.records()) {
        const std::string kernel = record.functionName ? record.functionName : "";
        // The name is shared by the records of a function, and freed with the process.
        const std::uint64_t place = record.pcOffset; // CUPTI packs its structures
        ListedInstruction &spot = m_samples[{kernel, place}];
        spot.kernel = kernel;
        spot.offset = place;
        for (std::size_t i = 0; i < record.stallReasonCount && i < m_reasonCount; ++i) {
            const auto reason = m_reasons.find(record.stallReason[i].pcSamplingStallReasonIndex);
            if (reason == m_reasons.end() || record.stallReason[i].samples == 0)
                continue;
            spot.stalls[reason->second] += record.stallReason[i].samples;
            spot.samples += record.stallReason[i].samples;
        }
    }
    buffer.data().totalNumPcs = 0;
    buffer.data().droppedSamples = 0;
}

Status CuptiPcSampler::drain()
{
    constexpr int mostReads = 64;
    for (int i = 0; i < mostReads; ++i) {
        CUpti_PCSamplingGetDataParams parameters{};
        parameters.size = CUpti_PCSamplingGetDataParamsSize;
        parameters.ctx = m_context;
        parameters.pcSamplingData = &m_buffer->data();
        if (auto done = m_cupti.check(m_cupti.pcSamplingGetData(&parameters), "read the PC samples"); !done)
            return done;
        const bool more = m_buffer->data().remainingNumPcs > 0;
        take(*m_buffer);
        if (!more)
            break;
    }
    return {};
}

Result<PcSamples> CuptiPcSampler::sample(const std::function<Status(std::size_t)> &run,
                                         std::span<const std::byte> cubin)
{
    // The second run tells how long one takes: the first also loads code and wakes the device.
    double runNs = 0;
    for (std::size_t i = 0; i < 2; ++i) {
        const auto begin = std::chrono::steady_clock::now();
        if (auto ran = run(i); !ran)
            return tl::unexpected(ran.error());
        runNs = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count();
    }
    const std::size_t runs =
        std::clamp<std::size_t>(static_cast<std::size_t>(sampledNs / runNs), 1, mostRuns);
    const double cycles = runNs * cyclesPerNs * static_cast<double>(runs) / samplesPerSm;
    const unsigned period =
        std::clamp(static_cast<unsigned>(std::bit_width(static_cast<std::uint64_t>(cycles))), shortestPeriod,
                   longestPeriod);
    if (auto configured = configure(period); !configured)
        return tl::unexpected(configured.error());
    if (auto collected = collect(run, runs); !collected)
        return tl::unexpected(collected.error());
    if (auto drained = drain(); !drained)
        return tl::unexpected(drained.error());
    disable();
    take(*m_rest);
    PcSamples result;
    result.dropped = m_dropped;
    result.periodCycles = 1U << period;
    for (auto &[place, spot] : m_samples) {
        spot.line = lineOf(m_cupti, cubin, place.first, place.second);
        result.samples += static_cast<std::uint64_t>(spot.samples);
        if (spot.samples > 0)
            result.instructions.push_back(std::move(spot));
    }
    return result;
}

} // namespace

Result<std::unique_ptr<PcSampler>> PcSampler::enable(CUctx_st *context)
{
    const auto cupti = Cupti::load();
    if (!cupti)
        return tl::unexpected(cupti.error());
    auto sampler = std::make_unique<CuptiPcSampler>(*cupti, context);
    if (auto enabled = sampler->enable(); !enabled)
        return tl::unexpected(enabled.error());
    return std::unique_ptr<PcSampler>(std::move(sampler));
}

Result<int> sourceLine(std::span<const std::byte> cubin, const std::string &kernel, std::uint64_t pcOffset)
{
    const auto cupti = Cupti::load();
    if (!cupti)
        return tl::unexpected(cupti.error());
    return lineOf(*cupti, cubin, kernel, pcOffset);
}

} // namespace klineage::gate::counters
