// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/device/backend.h"

#include <map>
#include <memory>
#include <string>

namespace klineage::gate {

/// Role in the operation ("a", "out") -> first element in host memory.
using HostBuffers = std::map<std::string, std::byte *>;

/// A routine of a CPU library, loaded at run time and bound to sizes. One thread calls it; it uses `threads` of its own.
class CpuReference
{
public:
    virtual ~CpuReference() = default;
    [[nodiscard]] virtual Status run(const HostBuffers &buffers) = 0;
    [[nodiscard]] virtual std::string version() const = 0; ///< "openblas 0.3.21 (2 threads)"
};

/// Providers: "openblas" with op sgemm_nn (roles a [m, k], b [k, n], out [m, n]) or sgemm_nt (b [n, k]), sizes m, n, k;
/// "onednn" with op softmax (roles in, out [rows, cols]), sizes rows, cols; layernorm (also gamma, beta [cols]; ε = 1e-5); conv2d_nhwc
/// (roles data [n, h, w, c], weight [3, 3, c, f], out [n, h, w, f]; stride 1, zeros around), sizes n, h, w, c, f; all f32, row-major.
/// ErrorCode::Unavailable names the missing package; InvalidInput says what the call lacks.
[[nodiscard]] Result<std::unique_ptr<CpuReference>> makeCpuReference(const ReferenceCall &call, int threads);

[[nodiscard]] Result<std::unique_ptr<CpuReference>> makeOpenBlasReference(const ReferenceCall &call,
                                                                          int threads);
[[nodiscard]] Result<std::unique_ptr<CpuReference>> makeOneDnnReference(const ReferenceCall &call,
                                                                        int threads);

/// A size that the call must name.
[[nodiscard]] Result<std::int64_t> sizeOf(const ReferenceCall &call, const std::string &name);
/// Fails unless the call binds exactly these roles.
[[nodiscard]] Status requireRoles(const ReferenceCall &call, const std::vector<std::string> &roles);

} // namespace klineage::gate
