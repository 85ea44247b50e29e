// SPDX-License-Identifier: GPL-3.0-or-later
//
// The C interface of libklineage-cub.so: CUB's device-wide routines over the rows of f32 matrices. CUB is a template library that
// launches its kernels from host code, so nvcc compiles it into a library of its own, which the worker loads at run time like the
// libraries of other vendors.
//
//   sum_rows      in [rows, columns], out [rows]
//   cumsum_rows   out like in
//   sort_rows     out like in, ascending
//   topk_rows     out [rows, k]: the largest, descending; indices [rows, k], i32, may be null
#pragma once

#include <stddef.h>

#define KLINEAGE_CUB_INTERFACE 1

#ifdef __cplusplus
extern "C" {
#endif

typedef struct KlineageCubCall {
    const void *in;
    void *out;
    void *indices;
    void *workspace;
    size_t workspaceBytes;
    int rows; /* rows · columns is below 2^31 */
    int columns;
    int k;
    void *stream; /* a CUstream */
} KlineageCubCall;

/* KLINEAGE_CUB_INTERFACE of the library. */
typedef int KlineageCubInterface(void);
/* CUB_VERSION, 300001 of 3.0.1, and what it was compiled for, "sm_90, compute_80". */
typedef int KlineageCubVersion(void);
typedef const char *KlineageCubTargets(void);
/* The routine that does an operator in a way, "DeviceSegmentedReduce::Sum"; null when there is no such way. Ways count from 0. */
typedef const char *KlineageCubWay(const char *op, int way);
/* Each gives a cudaError_t. Workspace: how many bytes a run of these sizes takes; the pointers are not looked at. Prepare: once for a
   workspace. Run: enqueues only, may be captured, allocates nothing. */
typedef int KlineageCubWorkspace(const char *op, int way, const KlineageCubCall *call, size_t *bytes);
typedef int KlineageCubPrepare(const char *op, int way, const KlineageCubCall *call);
typedef int KlineageCubRun(const char *op, int way, const KlineageCubCall *call);
typedef const char *KlineageCubError(int error);

#ifdef __cplusplus
}
#endif
