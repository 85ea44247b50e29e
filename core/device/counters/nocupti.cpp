// SPDX-License-Identifier: GPL-3.0-or-later
// Stands in for CUPTI in a build without its headers.
#include "core/device/counters/metrichost.h"
#include "core/device/counters/pcsampler.h"
#include "core/device/counters/rangeprofiler.h"

namespace klineage::gate::counters {

namespace {

tl::unexpected<Error> notBuilt()
{
    return fail(
        ErrorCode::Unavailable,
        "Cannot read hardware counters: this build was made without the CUPTI headers. Set CUDA_PATH to a "
        "CUDA toolkit that has them and build again.");
}

} // namespace

struct MetricHost::Private {};
MetricHost::MetricHost(MetricHost &&) noexcept = default;
MetricHost &MetricHost::operator=(MetricHost &&) noexcept = default;
MetricHost::~MetricHost() = default;
Result<MetricHost> MetricHost::open(const std::string &, std::span<const std::uint8_t>)
{
    return notBuilt();
}
bool MetricHost::has(const char *) const
{
    return false;
}
Result<SetConfiguration> MetricHost::configure(const MetricSet &) const
{
    return notBuilt();
}
Result<std::vector<double>> MetricHost::evaluate(const SetConfiguration &, std::span<const std::uint8_t>,
                                                 std::size_t) const
{
    return notBuilt();
}

Result<std::uint32_t> cuptiVersion()
{
    return notBuilt();
}

Result<std::vector<Metric>> readCounters(CUctx_st *, int, const ProfiledRun &,
                                         const std::vector<std::string> &)
{
    return notBuilt();
}

Result<std::unique_ptr<PcSampler>> PcSampler::enable(CUctx_st *)
{
    return notBuilt();
}

Result<int> sourceLine(std::span<const std::byte>, const std::string &, std::uint64_t)
{
    return notBuilt();
}

} // namespace klineage::gate::counters
