// SPDX-License-Identifier: GPL-3.0-or-later
//
// Nothing can be taken back from a host object once metrics are added, so every set is configured on an object of its own.
#include "core/device/counters/metrichost.h"

#include "core/device/counters/cupti.h"

namespace klineage::gate::counters {

namespace {

class HostObject
{
public:
    explicit HostObject(const Cupti &cupti)
        : m_cupti(cupti)
    {}
    HostObject(const HostObject &) = delete;
    HostObject &operator=(const HostObject &) = delete;
    ~HostObject()
    {
        if (!m_object)
            return;
        KLINEAGE_CUPTI_PARAMS(CUpti_Profiler_Host_Deinitialize, parameters);
        parameters.pHostObject = m_object;
        m_cupti.hostDeinitialize(&parameters);
    }

    [[nodiscard]] Status open(const std::string &chip, std::span<const std::uint8_t> availability)
    {
        KLINEAGE_CUPTI_PARAMS(CUpti_Profiler_Host_Initialize, parameters);
        parameters.profilerType = CUPTI_PROFILER_TYPE_RANGE_PROFILER;
        parameters.pChipName = chip.c_str();
        parameters.pCounterAvailabilityImage = availability.empty() ? nullptr : availability.data();
        auto opened = m_cupti.check(m_cupti.hostInitialize(&parameters), "describe the counters of " + chip);
        m_object = parameters.pHostObject;
        return opened;
    }
    [[nodiscard]] CUpti_Profiler_Host_Object *get() const { return m_object; }

private:
    const Cupti &m_cupti;
    CUpti_Profiler_Host_Object *m_object = nullptr;
};

} // namespace

struct MetricHost::Private {
    Private(Cupti library, std::string chipName, std::span<const std::uint8_t> available)
        : cupti(library)
        , chip(std::move(chipName))
        , availability(available.begin(), available.end())
        , object(cupti)
    {}
    Cupti cupti;
    std::string chip;
    std::vector<std::uint8_t> availability;
    HostObject object; ///< to ask; gets no metrics
};

MetricHost::MetricHost(std::unique_ptr<Private> d)
    : m_d(std::move(d))
{}
MetricHost::MetricHost(MetricHost &&) noexcept = default;
MetricHost &MetricHost::operator=(MetricHost &&) noexcept = default;
MetricHost::~MetricHost() = default;

Result<MetricHost> MetricHost::open(const std::string &chip, std::span<const std::uint8_t> availability)
{
    auto cupti = Cupti::load();
    if (!cupti)
        return tl::unexpected(cupti.error());
    auto d = std::make_unique<Private>(*cupti, chip, availability);
    if (auto opened = d->object.open(chip, d->availability); !opened)
        return tl::unexpected(opened.error());
    return MetricHost(std::move(d));
}

bool MetricHost::has(const char *chipMetric) const
{
    KLINEAGE_CUPTI_PARAMS(CUpti_Profiler_Host_GetMetricProperties, parameters);
    parameters.pHostObject = m_d->object.get();
    parameters.pMetricName = chipMetric;
    return m_d->cupti.hostGetMetricProperties(&parameters) == CUPTI_SUCCESS;
}

Result<SetConfiguration> MetricHost::configure(const MetricSet &set) const
{
    SetConfiguration configuration;
    for (const CounterMetric &metric : set.metrics) {
        for (const char *chipMetric : metric.chipMetrics) {
            if (has(chipMetric)) {
                configuration.metrics.push_back(&metric);
                configuration.chipMetrics.push_back(chipMetric);
                break;
            }
        }
    }
    const Cupti &cupti = m_d->cupti;
    const std::string what = "the counter set \"" + std::string(set.name) + "\" of " + m_d->chip;
    HostObject object(cupti);
    if (auto opened = object.open(m_d->chip, m_d->availability); !opened)
        return tl::unexpected(opened.error());
    KLINEAGE_CUPTI_PARAMS(CUpti_Profiler_Host_ConfigAddMetrics, add);
    add.pHostObject = object.get();
    add.ppMetricNames = configuration.chipMetrics.data();
    add.numMetrics = configuration.chipMetrics.size();
    if (auto done = cupti.check(cupti.hostConfigAddMetrics(&add), "choose " + what); !done)
        return tl::unexpected(done.error());
    KLINEAGE_CUPTI_PARAMS(CUpti_Profiler_Host_GetConfigImageSize, size);
    size.pHostObject = object.get();
    if (auto done = cupti.check(cupti.hostGetConfigImageSize(&size), "schedule " + what); !done)
        return tl::unexpected(done.error());
    configuration.image.resize(size.configImageSize);
    KLINEAGE_CUPTI_PARAMS(CUpti_Profiler_Host_GetConfigImage, image);
    image.pHostObject = object.get();
    image.configImageSize = configuration.image.size();
    image.pConfigImage = configuration.image.data();
    if (auto done = cupti.check(cupti.hostGetConfigImage(&image), "schedule " + what); !done)
        return tl::unexpected(done.error());
    KLINEAGE_CUPTI_PARAMS(CUpti_Profiler_Host_GetNumOfPasses, passes);
    passes.configImageSize = configuration.image.size();
    passes.pConfigImage = configuration.image.data();
    if (auto done = cupti.check(cupti.hostGetNumOfPasses(&passes), "count the passes of " + what); !done)
        return tl::unexpected(done.error());
    configuration.passes = passes.numOfPasses;
    return configuration;
}

Result<std::vector<double>> MetricHost::evaluate(const SetConfiguration &configuration,
                                                 std::span<const std::uint8_t> counterData,
                                                 std::size_t range) const
{
    std::vector<double> values(configuration.chipMetrics.size());
    std::vector<const char *> names = configuration.chipMetrics; // CUPTI wants it writable
    KLINEAGE_CUPTI_PARAMS(CUpti_Profiler_Host_EvaluateToGpuValues, parameters);
    parameters.pHostObject = m_d->object.get();
    parameters.pCounterDataImage = counterData.data();
    parameters.counterDataImageSize = counterData.size();
    parameters.rangeIndex = range;
    parameters.ppMetricNames = names.data();
    parameters.numMetrics = names.size();
    parameters.pMetricValues = values.data();
    if (auto done = m_d->cupti.check(m_d->cupti.hostEvaluateToGpuValues(&parameters),
                                     "work out the counters of launch " + std::to_string(range));
        !done)
        return tl::unexpected(done.error());
    return values;
}

Result<std::uint32_t> cuptiVersion()
{
    const auto cupti = Cupti::load();
    if (!cupti)
        return tl::unexpected(cupti.error());
    std::uint32_t version = 0;
    if (auto done = cupti->check(cupti->getVersion(&version), "ask for CUPTI's version"); !done)
        return tl::unexpected(done.error());
    return version;
}

} // namespace klineage::gate::counters
