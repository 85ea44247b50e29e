// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"

#include <cuda.h>

#include <cstddef>
#include <string>
#include <utility>

namespace klineage::gate::cuda {

// member, driver entry point, CUDA version whose signature is asked for (cuGetProcAddress)
#define KLINEAGE_CUDA_SYMBOLS(X) \
    X(init, cuInit, 2000) \
    X(driverGetVersion, cuDriverGetVersion, 2020) \
    X(getErrorName, cuGetErrorName, 6000) \
    X(getErrorString, cuGetErrorString, 6000) \
    X(deviceGetCount, cuDeviceGetCount, 2000) \
    X(deviceGet, cuDeviceGet, 2000) \
    X(deviceGetName, cuDeviceGetName, 2000) \
    X(deviceGetAttribute, cuDeviceGetAttribute, 2000) \
    X(deviceTotalMem, cuDeviceTotalMem, 3020) \
    X(deviceGetPCIBusId, cuDeviceGetPCIBusId, 4010) \
    X(devicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, 7000) \
    X(devicePrimaryCtxSetFlags, cuDevicePrimaryCtxSetFlags, 7000) \
    X(ctxSetCurrent, cuCtxSetCurrent, 4000) \
    X(ctxSynchronize, cuCtxSynchronize, 2000) \
    X(moduleLoadData, cuModuleLoadData, 2000) \
    X(moduleUnload, cuModuleUnload, 2000) \
    X(moduleGetFunction, cuModuleGetFunction, 2000) \
    X(moduleGetGlobal, cuModuleGetGlobal, 3020) \
    X(funcGetAttribute, cuFuncGetAttribute, 2020) \
    X(funcSetAttribute, cuFuncSetAttribute, 9000) \
    X(funcGetParamInfo, cuFuncGetParamInfo, 12040) \
    X(occupancyBlocks, cuOccupancyMaxActiveBlocksPerMultiprocessor, 6050) \
    X(memAlloc, cuMemAlloc, 3020) \
    X(memFree, cuMemFree, 3020) \
    X(memAddressReserve, cuMemAddressReserve, 10020) \
    X(memAddressFree, cuMemAddressFree, 10020) \
    X(memCreate, cuMemCreate, 10020) \
    X(memRelease, cuMemRelease, 10020) \
    X(memMap, cuMemMap, 10020) \
    X(memUnmap, cuMemUnmap, 10020) \
    X(memSetAccess, cuMemSetAccess, 10020) \
    X(ipcGetMemHandle, cuIpcGetMemHandle, 4010) \
    X(ipcOpenMemHandle, cuIpcOpenMemHandle, 11000) \
    X(ipcCloseMemHandle, cuIpcCloseMemHandle, 4010) \
    X(memcpyHtoD, cuMemcpyHtoD, 3020) \
    X(memcpyDtoH, cuMemcpyDtoH, 3020) \
    X(memcpyDtoDAsync, cuMemcpyDtoDAsync, 3020) \
    X(memsetD8Async, cuMemsetD8Async, 3020) \
    X(ctxSetLimit, cuCtxSetLimit, 3010) \
    X(ctxResetPersistingL2Cache, cuCtxResetPersistingL2Cache, 11000) \
    X(streamCreate, cuStreamCreate, 2000) \
    X(streamDestroy, cuStreamDestroy, 4000) \
    X(streamSynchronize, cuStreamSynchronize, 2000) \
    X(streamBeginCapture, cuStreamBeginCapture, 10010) \
    X(streamEndCapture, cuStreamEndCapture, 10000) \
    X(streamIsCapturing, cuStreamIsCapturing, 10000) \
    X(streamWaitEvent, cuStreamWaitEvent, 3020) \
    X(graphInstantiate, cuGraphInstantiateWithFlags, 11040) \
    X(graphUpload, cuGraphUpload, 11010) \
    X(graphLaunch, cuGraphLaunch, 10000) \
    X(graphDestroy, cuGraphDestroy, 10000) \
    X(graphExecDestroy, cuGraphExecDestroy, 10000) \
    X(eventCreate, cuEventCreate, 2000) \
    X(eventRecord, cuEventRecord, 2000) \
    X(eventSynchronize, cuEventSynchronize, 2000) \
    X(eventElapsedTime, cuEventElapsedTime, 2000) \
    X(eventDestroy, cuEventDestroy, 4000) \
    X(launchKernelEx, cuLaunchKernelEx, 11060) \
    X(tensorMapEncodeTiled, cuTensorMapEncodeTiled, 12000)

/// The CUDA driver's entry points, loaded from libcuda.so.1. All of them are there, or load() fails with the missing one.
struct Driver {
#define KLINEAGE_MEMBER(member, symbol, version) decltype(&::symbol) member = nullptr;
    KLINEAGE_CUDA_SYMBOLS(KLINEAGE_MEMBER)
#undef KLINEAGE_MEMBER

    /// Loads the library; does not touch a device.
    [[nodiscard]] static Result<Driver> load();

    /// "CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered)"
    [[nodiscard]] std::string describe(CUresult result) const;
    /// An error sentence "Cannot <action>: <driver's words>."; candidate-caused results become ErrorCode::InvalidInput.
    [[nodiscard]] Error error(CUresult result, const std::string &action) const;
    [[nodiscard]] Status check(CUresult result, const std::string &action) const;
    /// Copies from ordinary memory, and waits until the bytes are there. cuMemcpyHtoD alone may return when they are only on their way,
    /// and streams that wait for no other would not wait for them.
    [[nodiscard]] Status toDevice(CUdeviceptr to, const void *from, std::size_t bytes,
                                  const std::string &action) const;
};

} // namespace klineage::gate::cuda
