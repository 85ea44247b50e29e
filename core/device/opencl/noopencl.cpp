// SPDX-License-Identifier: GPL-3.0-or-later
// Stands in for the OpenCL backend in a build without the OpenCL headers.
#include "core/device/backend.h"

namespace klineage::gate {

Result<std::unique_ptr<Backend>> openOpenClBackend()
{
    return fail(
        ErrorCode::Unavailable,
        "Cannot use OpenCL: this build was made without the OpenCL headers. Install opencl-c-headers and build again.");
}

} // namespace klineage::gate
