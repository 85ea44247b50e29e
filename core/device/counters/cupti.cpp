// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/device/counters/cupti.h"

namespace klineage::gate::counters {

Result<Cupti> Cupti::load()
{
    // CUPTI looks for this one by name, and only in the loader's folders; once it is loaded the name is known.
    (void)cuda::Library::open({"libnvperf_host.so"}, "CUPTI");
    auto library = cuda::Library::open({"libcupti.so.13", "libcupti.so"}, "the CUDA Toolkit 13 (CUPTI)");
    if (!library)
        return tl::unexpected(library.error());
    Cupti cupti;
#define KLINEAGE_RESOLVE(member, symbol) \
    if (!library->resolve(cupti.member, #symbol)) \
        return fail(ErrorCode::Unavailable, \
                    "Cannot use " + library->name() + ": it has no " #symbol ". CUDA Toolkit 13 has.");
    KLINEAGE_CUPTI_SYMBOLS(KLINEAGE_RESOLVE)
#undef KLINEAGE_RESOLVE
    return cupti;
}

Status Cupti::check(CUptiResult result, const std::string &action) const
{
    switch (result) {
    case CUPTI_SUCCESS:
        return {};
    case CUPTI_ERROR_INSUFFICIENT_PRIVILEGES:
    case CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES:
        return fail(
            ErrorCode::Unavailable,
            "Cannot read the hardware counters: the driver lets only administrators do so. Load the "
            "nvidia module with NVreg_RestrictProfilingToAdminUsers=0, or give the gate CAP_SYS_ADMIN "
            "(in a container: --cap-add=SYS_ADMIN). Verdicts do without counters.");
    default:
        break;
    }
    const char *text = nullptr;
    getResultString(result, &text);
    return fail(ErrorCode::Unavailable, "Cannot " + action + ": " + (text ? text : "unknown CUPTI error")
                                            + " (" + std::to_string(static_cast<int>(result)) + ").");
}

} // namespace klineage::gate::counters
