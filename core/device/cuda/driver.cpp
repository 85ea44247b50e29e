// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/device/cuda/driver.h"

#include "core/device/cuda/library.h"

namespace klineage::gate::cuda {

namespace {

using GetProcAddress = CUresult (*)(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *);

/// Results that a kernel or its launch plan brings about, as opposed to the machine.
bool isCandidateFault(CUresult result)
{
    switch (result) {
    case CUDA_ERROR_INVALID_VALUE:
    case CUDA_ERROR_NOT_FOUND:
    case CUDA_ERROR_INVALID_IMAGE:
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES:
    case CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING:
    case CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE:
    case CUDA_ERROR_INVALID_CLUSTER_SIZE:
    case CUDA_ERROR_ASSERT:
        return true;
    default:
        return false;
    }
}

} // namespace

Result<Driver> Driver::load()
{
    auto library = Library::open({"libcuda.so.1"}, "the NVIDIA driver");
    if (!library)
        return tl::unexpected(library.error());
    GetProcAddress getProcAddress = nullptr;
    if (!library->resolve(getProcAddress, "cuGetProcAddress_v2"))
        return fail(ErrorCode::Unavailable,
                    "Cannot use libcuda.so.1: the NVIDIA driver is older than CUDA 12. Update the driver.");

    Driver driver;
    const char *missing = nullptr;
    auto resolve = [&](auto &member, const char *symbol, int version) {
        void *address = nullptr;
        CUdriverProcAddressQueryResult status{};
        if (getProcAddress(symbol, &address, version, CU_GET_PROC_ADDRESS_DEFAULT, &status) != CUDA_SUCCESS
            || !address)
            missing = missing ? missing : symbol;
        member = reinterpret_cast<std::remove_reference_t<decltype(member)>>(address);
    };
#define KLINEAGE_RESOLVE(member, symbol, version) resolve(driver.member, #symbol, version);
    KLINEAGE_CUDA_SYMBOLS(KLINEAGE_RESOLVE)
#undef KLINEAGE_RESOLVE
    if (missing)
        return fail(ErrorCode::Unavailable, std::string("Cannot use libcuda.so.1: it has no ") + missing
                                                + ". Update the NVIDIA driver to 550 or later.");
    return driver;
}

std::string Driver::describe(CUresult result) const
{
    const char *name = nullptr;
    const char *text = nullptr;
    getErrorName(result, &name);
    getErrorString(result, &text);
    return std::string(name ? name : "unknown error") + " (" + (text ? text : "no description") + ")";
}

Error Driver::error(CUresult result, const std::string &action) const
{
    const ErrorCode code = isCandidateFault(result) ? ErrorCode::InvalidInput : ErrorCode::Internal;
    return Error{code, "Cannot " + action + ": " + describe(result) + ".", {}};
}

Status Driver::check(CUresult result, const std::string &action) const
{
    if (result == CUDA_SUCCESS)
        return {};
    return tl::unexpected(error(result, action));
}

Status Driver::toDevice(CUdeviceptr to, const void *from, std::size_t bytes, const std::string &action) const
{
    if (auto copied = check(memcpyHtoD(to, from, bytes), action); !copied)
        return copied;
    return check(streamSynchronize(nullptr), action);
}

} // namespace klineage::gate::cuda
