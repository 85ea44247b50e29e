// SPDX-License-Identifier: GPL-3.0-or-later
// Stands in for cuda/ in a build without the CUDA headers.
#include "core/device/backend.h"

namespace klineage::gate {

namespace {

tl::unexpected<Error> notBuilt()
{
    return fail(
        ErrorCode::Unavailable,
        "Cannot use CUDA: this build was made without the CUDA headers. Set CUDA_PATH to a CUDA toolkit and build again.");
}

} // namespace

Result<std::unique_ptr<Backend>> openCudaBackend()
{
    return notBuilt();
}

Result<CompileOutput> compileCuda(const std::string &, const std::string &,
                                  const std::map<std::string, std::int64_t> &, const std::string &,
                                  const HeaderTexts &)
{
    return notBuilt();
}

} // namespace klineage::gate
