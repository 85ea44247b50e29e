// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/device/counters/metricsets.h"

#include "core/trial/metricnames.h"

#include <algorithm>
#include <cmath>

namespace klineage::gate::counters {

namespace {

CounterMetric amount(const char *name, const char *unit, std::vector<const char *> chipMetrics)
{
    return {name, unit, Kind::Amount, std::move(chipMetrics)};
}

CounterMetric rate(const char *name, const char *unit, std::vector<const char *> chipMetrics)
{
    return {name, unit, Kind::Rate, std::move(chipMetrics)};
}

MetricSet essential()
{
    return {"essential",
            {
                amount(metric::kernelTime, "ns", {"gpu__time_duration.sum"}),
                amount(metric::dramBytes, "B", {"dram__bytes.sum"}),
                amount(metric::dramReadBytes, "B", {"dram__bytes_read.sum", "dram__bytes_op_read.sum"}),
                amount(metric::dramWriteBytes, "B", {"dram__bytes_write.sum", "dram__bytes_op_write.sum"}),
                amount(metric::tensorCycles, "", {"sm__pipe_tensor_cycles_active.sum"}),
                rate(metric::tensorActive, "%",
                     {"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed"}),
                rate(metric::warpsActive, "%", {"sm__warps_active.avg.pct_of_peak_sustained_active"}),
                rate(metric::smActive, "%", {"sm__cycles_active.avg.pct_of_peak_sustained_elapsed"}),
                amount(metric::smCycles, "", {"sm__cycles_elapsed.max"}),
            },
            {{"GH100", 1}, {"GB202", 1}}};
}

MetricSet memory()
{
    return {"memory",
            {
                rate(metric::dramThroughput, "%", {"dram__throughput.avg.pct_of_peak_sustained_elapsed"}),
                rate(metric::l2HitRate, "%", {"lts__t_sector_hit_rate.pct"}),
                rate(metric::l1HitRate, "%", {"l1tex__t_sector_hit_rate.pct"}),
                rate(metric::issueActive, "%", {"smsp__issue_active.avg.pct_of_peak_sustained_active"}),
                amount(metric::instExecuted, "", {"smsp__inst_executed.sum"}),
            },
            {{"GH100", 2}, {"GB202", 2}}};
}

MetricSet access()
{
    return {"access",
            {
                rate(metric::sectorsPerLoad, "",
                     {"l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio"}),
                rate(metric::sectorsPerStore, "",
                     {"l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_st.ratio"}),
                amount(metric::localLoads, "", {"smsp__inst_executed_op_local_ld.sum"}),
                amount(metric::localStores, "", {"smsp__inst_executed_op_local_st.sum"}),
                amount(metric::bankConflicts, "", {"l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum"}),
                amount(metric::sharedWavefronts, "", {"l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"}),
            },
            {{"GH100", 4}, {"GB202", 4}}};
}

MetricSet operations()
{
    return {"operations",
            {
                amount(metric::ffma, "", {"smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"}),
                amount(metric::fadd, "", {"smsp__sass_thread_inst_executed_op_fadd_pred_on.sum"}),
                amount(metric::fmul, "", {"smsp__sass_thread_inst_executed_op_fmul_pred_on.sum"}),
                amount(metric::tensorInstructions, "", {"sm__inst_executed_pipe_tensor.sum"}),
                amount(metric::tensorOpsBf16, "", {"sm__ops_path_tensor_src_bf16_dst_fp32.sum"}),
                amount(metric::tensorOpsFp16, "",
                       {"sm__ops_path_tensor_src_fp16.sum", "sm__ops_path_tensor_src_fp16_dst_fp32.sum"}),
                amount(metric::tensorOpsTf32, "", {"sm__ops_path_tensor_src_tf32_dst_fp32.sum"}),
                amount(metric::tensorOpsFp8, "",
                       {"sm__ops_path_tensor_src_fp8.sum", "sm__ops_path_tensor_src_fp8_dst_fp32.sum"}),
            },
            {{"GH100", 6}, {"GB202", 6}}};
}

/// Of the cycles of resident warps, the share spent in one reason: the reasons of a kernel add up to about 100 %.
MetricSet stalls()
{
    return {
        "stalls",
        {
            rate(metric::stallLongScoreboard, "%",
                 {"smsp__warp_issue_stalled_long_scoreboard_per_warp_active.pct"}),
            rate(metric::stallShortScoreboard, "%",
                 {"smsp__warp_issue_stalled_short_scoreboard_per_warp_active.pct"}),
            rate(metric::stallBarrier, "%", {"smsp__warp_issue_stalled_barrier_per_warp_active.pct"}),
            rate(metric::stallMembar, "%", {"smsp__warp_issue_stalled_membar_per_warp_active.pct"}),
            rate(metric::stallMathPipe, "%",
                 {"smsp__warp_issue_stalled_math_pipe_throttle_per_warp_active.pct"}),
            rate(metric::stallMioThrottle, "%",
                 {"smsp__warp_issue_stalled_mio_throttle_per_warp_active.pct"}),
            rate(metric::stallLgThrottle, "%", {"smsp__warp_issue_stalled_lg_throttle_per_warp_active.pct"}),
            rate(metric::stallWait, "%", {"smsp__warp_issue_stalled_wait_per_warp_active.pct"}),
            rate(metric::stallNotSelected, "%",
                 {"smsp__warp_issue_stalled_not_selected_per_warp_active.pct"}),
            rate(metric::stallSelected, "%", {"smsp__warp_issue_stalled_selected_per_warp_active.pct"}),
            rate(metric::stallNoInstruction, "%",
                 {"smsp__warp_issue_stalled_no_instruction_per_warp_active.pct"}),
            rate(metric::stallSleeping, "%", {"smsp__warp_issue_stalled_sleeping_per_warp_active.pct"}),
            rate(metric::stallGmma, "%", {"smsp__warp_issue_stalled_gmma_per_warp_active.pct"}),
        },
        {{"GH100", 5}, {"GB202", 5}}};
}

} // namespace

const std::vector<MetricSet> &metricSets()
{
    static const std::vector<MetricSet> sets = {essential(), memory(), access(), operations(), stalls()};
    return sets;
}

const MetricSet *findMetricSet(std::string_view name)
{
    const auto &sets = metricSets();
    const auto found =
        std::find_if(sets.begin(), sets.end(), [&](const MetricSet &set) { return set.name == name; });
    return found == sets.end() ? nullptr : &*found;
}

std::vector<Metric> combineLaunches(std::span<const LaunchMetrics> launches)
{
    struct Sum {
        std::string kernel;
        const CounterMetric *metric;
        double value;
        double weight;
    };
    std::vector<Sum> sums;
    for (const LaunchMetrics &launch : launches) {
        const double weight = launch.weightNs > 0 ? launch.weightNs : 1;
        for (const auto &[metric, value] : launch.values) {
            if (!std::isfinite(value))
                continue;
            auto sum = std::find_if(sums.begin(), sums.end(), [&, metric = metric](const Sum &s) {
                return s.kernel == launch.kernel && s.metric == metric;
            });
            if (sum == sums.end())
                sum = sums.insert(sums.end(), Sum{launch.kernel, metric, 0, 0});
            sum->value += metric->kind == Kind::Rate ? value * weight : value;
            sum->weight += weight;
        }
    }
    std::vector<Metric> metrics;
    for (const Sum &sum : sums)
        metrics.push_back({sum.metric->name,
                           sum.metric->kind == Kind::Rate ? sum.value / sum.weight : sum.value,
                           sum.metric->unit, sum.kernel});
    return metrics;
}

} // namespace klineage::gate::counters
