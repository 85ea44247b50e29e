// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/device/cuda/gemmcall.h"

#include <limits>

namespace klineage::gate::cuda {

Result<GemmCall> gemmCallOf(const ReferenceCall &call)
{
    const auto refused = [&](const std::string &why) {
        return fail(ErrorCode::InvalidInput,
                    "Cannot use " + call.provider + " " + call.op + ": " + why + ".");
    };
    const auto size = [&](const char *name) -> std::int64_t {
        const auto found = call.sizes.find(name);
        return found == call.sizes.end() ? 0 : found->second;
    };
    const std::int64_t batch = call.sizes.contains("batch") ? size("batch") : 1;
    const std::int64_t rows = size("t");
    if (batch < 1 || size("n") < 1 || size("k") < 1 || (rows < 1 && size("m") < 1))
        return refused("it needs sizes n and k, and m or t");
    if (rows % batch != 0)
        return refused("its " + std::to_string(rows) + " rows are not " + std::to_string(batch)
                       + " groups of one size");
    const std::int64_t m = rows > 0 ? rows / batch : size("m");
    for (const std::int64_t extent : {batch, m, size("n"), size("k")}) {
        if (extent > std::numeric_limits<int>::max())
            return refused("a size of it is too large");
    }
    return GemmCall{static_cast<int>(batch), static_cast<int>(m), static_cast<int>(size("n")),
                    static_cast<int>(size("k")), call.op.starts_with("gemm_nt")};
}

} // namespace klineage::gate::cuda
