// SPDX-License-Identifier: GPL-3.0-or-later
//
// Included only where the CUPTI headers are (KLINEAGE_HAVE_CUPTI).
#pragma once

#include "core/base/result.h"
#include "core/device/cuda/library.h"

#include <cuda.h>
#include <cupti_pcsampling.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_result.h>
#include <cupti_target.h>
#include <cupti_version.h>

#include <string>

namespace klineage::gate::counters {

#define KLINEAGE_CUPTI_SYMBOLS(X) \
    X(getResultString, cuptiGetResultString) \
    X(getVersion, cuptiGetVersion) \
    X(deviceGetChipName, cuptiDeviceGetChipName) \
    X(profilerInitialize, cuptiProfilerInitialize) \
    X(getCounterAvailability, cuptiProfilerGetCounterAvailability) \
    X(hostGetSupportedChips, cuptiProfilerHostGetSupportedChips) \
    X(hostInitialize, cuptiProfilerHostInitialize) \
    X(hostDeinitialize, cuptiProfilerHostDeinitialize) \
    X(hostGetMetricProperties, cuptiProfilerHostGetMetricProperties) \
    X(hostConfigAddMetrics, cuptiProfilerHostConfigAddMetrics) \
    X(hostGetConfigImageSize, cuptiProfilerHostGetConfigImageSize) \
    X(hostGetConfigImage, cuptiProfilerHostGetConfigImage) \
    X(hostGetNumOfPasses, cuptiProfilerHostGetNumOfPasses) \
    X(hostEvaluateToGpuValues, cuptiProfilerHostEvaluateToGpuValues) \
    X(rangeEnable, cuptiRangeProfilerEnable) \
    X(rangeDisable, cuptiRangeProfilerDisable) \
    X(rangeSetConfig, cuptiRangeProfilerSetConfig) \
    X(rangeStart, cuptiRangeProfilerStart) \
    X(rangeStop, cuptiRangeProfilerStop) \
    X(rangeDecodeData, cuptiRangeProfilerDecodeData) \
    X(rangeGetCounterDataSize, cuptiRangeProfilerGetCounterDataSize) \
    X(rangeCounterDataImageInitialize, cuptiRangeProfilerCounterDataImageInitialize) \
    X(rangeGetCounterDataInfo, cuptiRangeProfilerGetCounterDataInfo) \
    X(pcSamplingEnable, cuptiPCSamplingEnable) \
    X(pcSamplingDisable, cuptiPCSamplingDisable) \
    X(pcSamplingStart, cuptiPCSamplingStart) \
    X(pcSamplingStop, cuptiPCSamplingStop) \
    X(pcSamplingGetData, cuptiPCSamplingGetData) \
    X(pcSamplingGetNumStallReasons, cuptiPCSamplingGetNumStallReasons) \
    X(pcSamplingGetStallReasons, cuptiPCSamplingGetStallReasons) \
    X(pcSamplingSetConfigurationAttribute, cuptiPCSamplingSetConfigurationAttribute) \
    X(getSassToSourceCorrelation, cuptiGetSassToSourceCorrelation)

/// CUPTI's entry points, loaded from libcupti at run time. All of them are there, or load() fails with the missing one.
struct Cupti {
#define KLINEAGE_MEMBER(member, symbol) decltype(&::symbol) member = nullptr;
    KLINEAGE_CUPTI_SYMBOLS(KLINEAGE_MEMBER)
#undef KLINEAGE_MEMBER

    [[nodiscard]] static Result<Cupti> load();

    /// "Cannot <action>: CUPTI_ERROR_… (number)." Unavailable where the reader can change that: the sentence says how.
    [[nodiscard]] Status check(CUptiResult result, const std::string &action) const;
};

/// A parameter struct of CUPTI with its size set.
#define KLINEAGE_CUPTI_PARAMS(type, variable) \
    type##_Params variable = {}; \
    variable.structSize = type##_Params_STRUCT_SIZE

} // namespace klineage::gate::counters
