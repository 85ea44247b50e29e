// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/device/opencl/loader.h"

#include <array>
#include <dlfcn.h>
#include <utility>

namespace klineage::gate::opencl {

namespace {

Result<Api> openLibrary()
{
    // Never closed: implementations keep threads and exit handlers.
    void *library = ::dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return fail(
            ErrorCode::Unavailable,
            "Cannot load the OpenCL loader libOpenCL.so.1: it is not installed. Install ocl-icd-libopencl1 and, for the CPU, "
            "pocl-opencl-icd.");
    Api api;
#define KLINEAGE_OPENCL_RESOLVE(name) \
    api.name = reinterpret_cast<decltype(api.name)>(::dlsym(library, #name)); \
    if (!api.name) \
        return fail(ErrorCode::Unavailable, \
                    "Cannot use libOpenCL.so.1: it lacks " #name " (OpenCL 2.0 is needed).");
    KLINEAGE_OPENCL_SYMBOLS(KLINEAGE_OPENCL_RESOLVE)
#undef KLINEAGE_OPENCL_RESOLVE
    return api;
}

constexpr std::array<std::pair<cl_int, const char *>, 34> names{{
    {CL_DEVICE_NOT_FOUND, "CL_DEVICE_NOT_FOUND"},
    {CL_DEVICE_NOT_AVAILABLE, "CL_DEVICE_NOT_AVAILABLE"},
    {CL_COMPILER_NOT_AVAILABLE, "CL_COMPILER_NOT_AVAILABLE"},
    {CL_MEM_OBJECT_ALLOCATION_FAILURE, "CL_MEM_OBJECT_ALLOCATION_FAILURE"},
    {CL_OUT_OF_RESOURCES, "CL_OUT_OF_RESOURCES"},
    {CL_OUT_OF_HOST_MEMORY, "CL_OUT_OF_HOST_MEMORY"},
    {CL_PROFILING_INFO_NOT_AVAILABLE, "CL_PROFILING_INFO_NOT_AVAILABLE"},
    {CL_BUILD_PROGRAM_FAILURE, "CL_BUILD_PROGRAM_FAILURE"},
    {CL_MISALIGNED_SUB_BUFFER_OFFSET, "CL_MISALIGNED_SUB_BUFFER_OFFSET"},
    {CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST"},
    {CL_INVALID_VALUE, "CL_INVALID_VALUE"},
    {CL_INVALID_DEVICE, "CL_INVALID_DEVICE"},
    {CL_INVALID_CONTEXT, "CL_INVALID_CONTEXT"},
    {CL_INVALID_COMMAND_QUEUE, "CL_INVALID_COMMAND_QUEUE"},
    {CL_INVALID_MEM_OBJECT, "CL_INVALID_MEM_OBJECT"},
    {CL_INVALID_BINARY, "CL_INVALID_BINARY"},
    {CL_INVALID_BUILD_OPTIONS, "CL_INVALID_BUILD_OPTIONS"},
    {CL_INVALID_PROGRAM, "CL_INVALID_PROGRAM"},
    {CL_INVALID_PROGRAM_EXECUTABLE, "CL_INVALID_PROGRAM_EXECUTABLE"},
    {CL_INVALID_KERNEL_NAME, "CL_INVALID_KERNEL_NAME"},
    {CL_INVALID_KERNEL_DEFINITION, "CL_INVALID_KERNEL_DEFINITION"},
    {CL_INVALID_KERNEL, "CL_INVALID_KERNEL"},
    {CL_INVALID_ARG_INDEX, "CL_INVALID_ARG_INDEX"},
    {CL_INVALID_ARG_VALUE, "CL_INVALID_ARG_VALUE"},
    {CL_INVALID_ARG_SIZE, "CL_INVALID_ARG_SIZE"},
    {CL_INVALID_KERNEL_ARGS, "CL_INVALID_KERNEL_ARGS"},
    {CL_INVALID_WORK_DIMENSION, "CL_INVALID_WORK_DIMENSION"},
    {CL_INVALID_WORK_GROUP_SIZE, "CL_INVALID_WORK_GROUP_SIZE"},
    {CL_INVALID_WORK_ITEM_SIZE, "CL_INVALID_WORK_ITEM_SIZE"},
    {CL_INVALID_GLOBAL_OFFSET, "CL_INVALID_GLOBAL_OFFSET"},
    {CL_INVALID_OPERATION, "CL_INVALID_OPERATION"},
    {CL_INVALID_BUFFER_SIZE, "CL_INVALID_BUFFER_SIZE"},
    {CL_INVALID_GLOBAL_WORK_SIZE, "CL_INVALID_GLOBAL_WORK_SIZE"},
    {-1001, "CL_PLATFORM_NOT_FOUND_KHR"},
}};

bool causedByCandidate(cl_int code)
{
    return code == CL_OUT_OF_RESOURCES || code == CL_BUILD_PROGRAM_FAILURE
           || code == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST
           || (code <= CL_INVALID_PROGRAM_EXECUTABLE && code >= CL_INVALID_WORK_ITEM_SIZE);
}

} // namespace

Result<const Api *> loadApi()
{
    static const Result<Api> api = openLibrary();
    if (!api)
        return tl::unexpected(api.error());
    return &*api;
}

std::string errorName(cl_int code)
{
    for (const auto &[known, name] : names) {
        if (known == code)
            return std::string(name) + " (" + std::to_string(code) + ")";
    }
    return "OpenCL error " + std::to_string(code);
}

Error describe(cl_int code, const std::string &what)
{
    return {causedByCandidate(code) ? ErrorCode::InvalidInput : ErrorCode::Internal,
            "Cannot " + what + ": " + errorName(code) + ".",
            {}};
}

Status check(cl_int code, const std::string &what)
{
    if (code == CL_SUCCESS)
        return {};
    return tl::unexpected(describe(code, what));
}

} // namespace klineage::gate::opencl
