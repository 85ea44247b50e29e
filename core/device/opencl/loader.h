// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"

#include <CL/cl.h>

#include <string>

namespace klineage::gate::opencl {

// The one list of what is taken from libOpenCL.so.1; it makes the table below and its loader.
// It would indent each line of the list further than the last.
// clang-format off
#define KLINEAGE_OPENCL_SYMBOLS(X) \
    X(clGetPlatformIDs) X(clGetPlatformInfo) X(clGetDeviceIDs) X(clGetDeviceInfo) X(clCreateContext) \
    X(clReleaseContext) X(clCreateCommandQueueWithProperties) X(clReleaseCommandQueue) X(clCreateBuffer) \
    X(clCreateSubBuffer) X(clReleaseMemObject) X(clCreateProgramWithSource) X(clBuildProgram) \
    X(clGetProgramBuildInfo) X(clGetProgramInfo) X(clReleaseProgram) X(clCreateKernel) \
    X(clReleaseKernel) X(clGetKernelInfo) X(clGetKernelArgInfo) X(clSetKernelArg) \
    X(clGetKernelWorkGroupInfo) X(clEnqueueNDRangeKernel) X(clEnqueueFillBuffer) X(clEnqueueCopyBuffer) X(clEnqueueReadBuffer) \
    X(clEnqueueWriteBuffer) X(clEnqueueMapBuffer) X(clEnqueueUnmapMemObject) X(clFinish) \
    X(clWaitForEvents) X(clGetEventProfilingInfo) X(clReleaseEvent)
// clang-format on

/// The OpenCL ICD loader's functions under their own names.
struct Api {
#define KLINEAGE_OPENCL_MEMBER(name) decltype(&::name) name = nullptr;
    KLINEAGE_OPENCL_SYMBOLS(KLINEAGE_OPENCL_MEMBER)
#undef KLINEAGE_OPENCL_MEMBER
};

/// Opens libOpenCL.so.1 once for the life of the process; ErrorCode::Unavailable names the package that provides it.
[[nodiscard]] Result<const Api *> loadApi();

/// "CL_INVALID_KERNEL_ARGS (-52)".
[[nodiscard]] std::string errorName(cl_int code);

/// "Cannot <what>: CL_… (-n)." The candidate's fault (InvalidInput) when the code is about kernels, arguments or resources of a
/// launch; the machine's (Internal) otherwise.
[[nodiscard]] Error describe(cl_int code, const std::string &what);

/// Success, or describe().
[[nodiscard]] Status check(cl_int code, const std::string &what);

} // namespace klineage::gate::opencl
