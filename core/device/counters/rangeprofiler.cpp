// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/device/counters/rangeprofiler.h"

#include "core/device/counters/cupti.h"
#include "core/device/counters/metrichost.h"
#include "core/trial/metricnames.h"

namespace klineage::gate::counters {

namespace {

constexpr std::size_t spareRanges = 8; ///< so that a launch too many is seen, and not dropped

/// The counters enabled on a context, for one set.
class RangeProfiler
{
public:
    explicit RangeProfiler(const Cupti &cupti)
        : m_cupti(cupti)
    {}
    RangeProfiler(const RangeProfiler &) = delete;
    RangeProfiler &operator=(const RangeProfiler &) = delete;
    ~RangeProfiler() { disable(); }

    [[nodiscard]] Status enable(CUctx_st *context);
    [[nodiscard]] Status configure(const SetConfiguration &configuration, std::size_t ranges);
    [[nodiscard]] Status collect(const ProfiledRun &profiled, std::size_t passes);
    /// Number of ranges that were counted.
    [[nodiscard]] Result<std::size_t> decode();
    [[nodiscard]] std::span<const std::uint8_t> counterData() const { return m_counterData; }

private:
    void disable();

    const Cupti &m_cupti;
    CUpti_RangeProfiler_Object *m_object = nullptr;
    std::vector<std::uint8_t> m_counterData;
};

Status RangeProfiler::enable(CUctx_st *context)
{
    KLINEAGE_CUPTI_PARAMS(CUpti_RangeProfiler_Enable, parameters);
    parameters.ctx = context;
    auto enabled = m_cupti.check(m_cupti.rangeEnable(&parameters), "enable the hardware counters");
    m_object = parameters.pRangeProfilerObject;
    return enabled;
}

void RangeProfiler::disable()
{
    if (!m_object)
        return;
    KLINEAGE_CUPTI_PARAMS(CUpti_RangeProfiler_Disable, parameters);
    parameters.pRangeProfilerObject = m_object;
    m_cupti.rangeDisable(&parameters);
    m_object = nullptr;
}

Status RangeProfiler::configure(const SetConfiguration &configuration, std::size_t ranges)
{
    std::vector<const char *> names = configuration.chipMetrics;
    KLINEAGE_CUPTI_PARAMS(CUpti_RangeProfiler_GetCounterDataSize, size);
    size.pRangeProfilerObject = m_object;
    size.pMetricNames = names.data();
    size.numMetrics = names.size();
    size.maxNumOfRanges = ranges;
    size.maxNumRangeTreeNodes = static_cast<std::uint32_t>(ranges);
    if (auto done = m_cupti.check(m_cupti.rangeGetCounterDataSize(&size), "size the counter data"); !done)
        return done;
    m_counterData.assign(size.counterDataSize, 0);
    KLINEAGE_CUPTI_PARAMS(CUpti_RangeProfiler_CounterDataImage_Initialize, image);
    image.pRangeProfilerObject = m_object;
    image.counterDataSize = m_counterData.size();
    image.pCounterData = m_counterData.data();
    if (auto done =
            m_cupti.check(m_cupti.rangeCounterDataImageInitialize(&image), "prepare the counter data");
        !done)
        return done;
    KLINEAGE_CUPTI_PARAMS(CUpti_RangeProfiler_SetConfig, config);
    config.pRangeProfilerObject = m_object;
    config.configSize = configuration.image.size();
    config.pConfig = configuration.image.data();
    config.counterDataImageSize = m_counterData.size();
    config.pCounterDataImage = m_counterData.data();
    config.range = CUPTI_AutoRange;
    config.replayMode = CUPTI_UserReplay;
    config.maxRangesPerPass = ranges;
    config.numNestingLevels = 1;
    config.minNestingLevel = 1;
    config.passIndex = 0;
    config.targetNestingLevel = 1;
    return m_cupti.check(m_cupti.rangeSetConfig(&config), "set the hardware counters up");
}

Status RangeProfiler::collect(const ProfiledRun &profiled, std::size_t passes)
{
    const std::size_t mostPasses = 2 * passes + 2; // so that a library that never says "enough" ends too
    for (std::size_t pass = 0; pass < mostPasses; ++pass) {
        KLINEAGE_CUPTI_PARAMS(CUpti_RangeProfiler_Start, start);
        start.pRangeProfilerObject = m_object;
        if (auto done = m_cupti.check(m_cupti.rangeStart(&start), "start the hardware counters"); !done)
            return done;
        const Status ran = profiled.run(pass);
        KLINEAGE_CUPTI_PARAMS(CUpti_RangeProfiler_Stop, stop);
        stop.pRangeProfilerObject = m_object;
        const Status stopped = m_cupti.check(m_cupti.rangeStop(&stop), "stop the hardware counters");
        if (!ran)
            return ran;
        if (!stopped)
            return stopped;
        if (stop.isAllPassSubmitted)
            return {};
    }
    return fail(ErrorCode::Unavailable, "Cannot read the hardware counters: CUPTI wants more than "
                                            + std::to_string(mostPasses) + " passes.");
}

Result<std::size_t> RangeProfiler::decode()
{
    KLINEAGE_CUPTI_PARAMS(CUpti_RangeProfiler_DecodeData, decode);
    decode.pRangeProfilerObject = m_object;
    if (auto done = m_cupti.check(m_cupti.rangeDecodeData(&decode), "decode the counter data"); !done)
        return tl::unexpected(done.error());
    KLINEAGE_CUPTI_PARAMS(CUpti_RangeProfiler_GetCounterDataInfo, info);
    info.pCounterDataImage = m_counterData.data();
    info.counterDataImageSize = m_counterData.size();
    if (auto done = m_cupti.check(m_cupti.rangeGetCounterDataInfo(&info), "look at the counter data"); !done)
        return tl::unexpected(done.error());
    if (decode.numOfRangeDropped > 0)
        return fail(ErrorCode::Unavailable,
                    "Cannot read the hardware counters: " + std::to_string(decode.numOfRangeDropped)
                        + " launches were dropped.");
    return info.numTotalRanges;
}

Result<std::vector<std::uint8_t>> availability(const Cupti &cupti, CUctx_st *context)
{
    KLINEAGE_CUPTI_PARAMS(CUpti_Profiler_GetCounterAvailability, parameters);
    parameters.ctx = context;
    const std::string action = "ask which hardware counters may be read";
    if (auto done = cupti.check(cupti.getCounterAvailability(&parameters), action); !done)
        return tl::unexpected(done.error());
    std::vector<std::uint8_t> image(parameters.counterAvailabilityImageSize);
    parameters.pCounterAvailabilityImage = image.data();
    if (auto done = cupti.check(cupti.getCounterAvailability(&parameters), action); !done)
        return tl::unexpected(done.error());
    return image;
}

Result<MetricHost> hostOf(const Cupti &cupti, CUctx_st *context, int device)
{
    KLINEAGE_CUPTI_PARAMS(CUpti_Profiler_Initialize, initialize);
    if (auto done = cupti.check(cupti.profilerInitialize(&initialize), "start CUPTI"); !done)
        return tl::unexpected(done.error());
    KLINEAGE_CUPTI_PARAMS(CUpti_Device_GetChipName, chip);
    chip.deviceIndex = static_cast<std::size_t>(device);
    if (auto done = cupti.check(cupti.deviceGetChipName(&chip), "ask for the chip's name"); !done)
        return tl::unexpected(done.error());
    const auto available = availability(cupti, context);
    if (!available)
        return tl::unexpected(available.error());
    return MetricHost::open(chip.pChipName ? chip.pChipName : "", *available);
}

/// Adds the values of one set to each launch.
Status readSet(const Cupti &cupti, const MetricHost &host, CUctx_st *context, const ProfiledRun &profiled,
               const MetricSet &set, std::vector<LaunchMetrics> &launches)
{
    const auto configuration = host.configure(set);
    if (!configuration)
        return tl::unexpected(configuration.error());
    RangeProfiler profiler(cupti);
    if (auto enabled = profiler.enable(context); !enabled)
        return enabled;
    if (auto configured = profiler.configure(*configuration, launches.size() + spareRanges); !configured)
        return configured;
    if (auto collected = profiler.collect(profiled, configuration->passes); !collected)
        return collected;
    const auto ranges = profiler.decode();
    if (!ranges)
        return tl::unexpected(ranges.error());
    if (*ranges != launches.size())
        return fail(ErrorCode::Unavailable, "Cannot tell the launches apart: the plan has "
                                                + std::to_string(launches.size()) + ", CUPTI counted "
                                                + std::to_string(*ranges) + ".");
    for (std::size_t launch = 0; launch < launches.size(); ++launch) {
        const auto values = host.evaluate(*configuration, profiler.counterData(), launch);
        if (!values)
            return tl::unexpected(values.error());
        for (std::size_t i = 0; i < values->size(); ++i) {
            launches[launch].values.emplace_back(configuration->metrics[i], (*values)[i]);
            if (configuration->metrics[i]->name == std::string_view(metric::kernelTime))
                launches[launch].weightNs = (*values)[i];
        }
    }
    return {};
}

} // namespace

Result<std::vector<Metric>> readCounters(CUctx_st *context, int device, const ProfiledRun &profiled,
                                         const std::vector<std::string> &sets)
{
    const auto cupti = Cupti::load();
    if (!cupti)
        return tl::unexpected(cupti.error());
    const auto host = hostOf(*cupti, context, device);
    if (!host)
        return tl::unexpected(host.error());
    std::vector<LaunchMetrics> launches;
    for (const std::string &kernel : profiled.kernels)
        launches.push_back({kernel, 0, {}});
    for (const std::string &name : sets) {
        const MetricSet *set = findMetricSet(name);
        if (!set)
            return fail(ErrorCode::Internal,
                        "Cannot read the counter set \"" + name + "\": it is not known.");
        if (auto read = readSet(*cupti, *host, context, profiled, *set, launches); !read)
            return tl::unexpected(read.error());
    }
    return combineLaunches(launches);
}

} // namespace klineage::gate::counters
