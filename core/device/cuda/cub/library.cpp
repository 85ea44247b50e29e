// SPDX-License-Identifier: GPL-3.0-or-later
//
// The operators and their ways, behind the C interface.
#include "core/device/cuda/cub/rows.h"

#include <cub/version.cuh>

#include <cstring>

using namespace klineage::cub_library;

namespace {

struct Way {
    const char *op;
    const char *name;
    cudaError_t (*run)(const KlineageCubCall &call, void *workspace, size_t &bytes);
    cudaError_t (*prepare)(const KlineageCubCall &call);
};

constexpr Way ways[] = {
    {"sum_rows", "DeviceSegmentedReduce::Sum", sumRows, nullptr},
    {"cumsum_rows", "DeviceScan::InclusiveSumByKey", scanRows, nullptr},
    {"sort_rows", "DeviceSegmentedRadixSort::SortKeys", sortRowsRadix, nullptr},
    {"sort_rows", "DeviceSegmentedSort::SortKeys", sortRowsMerge, nullptr},
    {"topk_rows", "DeviceSegmentedRadixSort::SortPairsDescending", topkRowsRadix, topkPrepare},
    {"topk_rows", "DeviceSegmentedSort::SortPairsDescending", topkRowsMerge, topkPrepare},
};

const Way *find(const char *op, int number)
{
    for (const Way &way : ways) {
        if (std::strcmp(way.op, op) == 0 && number-- == 0)
            return &way;
    }
    return nullptr;
}

} // namespace

#define KLINEAGE_EXPORT extern "C" __attribute__((visibility("default")))

KLINEAGE_EXPORT int klineage_cub_interface()
{
    return KLINEAGE_CUB_INTERFACE;
}

KLINEAGE_EXPORT int klineage_cub_version()
{
    return CUB_VERSION;
}

KLINEAGE_EXPORT const char *klineage_cub_targets()
{
    return KLINEAGE_CUB_TARGETS;
}

KLINEAGE_EXPORT const char *klineage_cub_way(const char *op, int way)
{
    const Way *found = find(op, way);
    return found ? found->name : nullptr;
}

KLINEAGE_EXPORT int klineage_cub_workspace(const char *op, int way, const KlineageCubCall *call,
                                           size_t *bytes)
{
    const Way *found = find(op, way);
    return found ? found->run(*call, nullptr, *bytes) : cudaErrorNotSupported;
}

KLINEAGE_EXPORT int klineage_cub_prepare(const char *op, int way, const KlineageCubCall *call)
{
    const Way *found = find(op, way);
    if (!found)
        return cudaErrorNotSupported;
    return found->prepare ? found->prepare(*call) : cudaSuccess;
}

KLINEAGE_EXPORT int klineage_cub_run(const char *op, int way, const KlineageCubCall *call)
{
    const Way *found = find(op, way);
    size_t bytes = call->workspaceBytes;
    return found ? found->run(*call, call->workspace, bytes) : cudaErrorNotSupported;
}

KLINEAGE_EXPORT const char *klineage_cub_error(int error)
{
    return cudaGetErrorString(static_cast<cudaError_t>(error));
}
