// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/device/references/cpureference.h"

namespace klineage::gate {

Result<std::unique_ptr<CpuReference>> makeCpuReference(const ReferenceCall &call, int threads)
{
    if (call.provider == "openblas")
        return makeOpenBlasReference(call, threads);
    if (call.provider == "onednn")
        return makeOneDnnReference(call, threads);
    return fail(ErrorCode::Unavailable, "Cannot use the reference \"" + call.provider
                                            + "\" on a CPU: expected \"openblas\" or \"onednn\".");
}

Result<std::int64_t> sizeOf(const ReferenceCall &call, const std::string &name)
{
    const auto found = call.sizes.find(name);
    if (found == call.sizes.end() || found->second < 1 || found->second > INT32_MAX)
        return fail(ErrorCode::InvalidInput, "Cannot call " + call.provider + " " + call.op
                                                 + ": it needs the size \"" + name
                                                 + "\", a number from 1 to 2147483647.");
    return found->second;
}

Status requireRoles(const ReferenceCall &call, const std::vector<std::string> &roles)
{
    for (const std::string &role : roles) {
        if (!call.buffers.contains(role))
            return fail(ErrorCode::InvalidInput, "Cannot call " + call.provider + " " + call.op
                                                     + ": it needs a tensor for \"" + role + "\".");
    }
    if (call.buffers.size() != roles.size())
        return fail(ErrorCode::InvalidInput, "Cannot call " + call.provider + " " + call.op + ": it takes "
                                                 + std::to_string(roles.size())
                                                 + " tensors, the workload names "
                                                 + std::to_string(call.buffers.size()) + ".");
    return {};
}

} // namespace klineage::gate
