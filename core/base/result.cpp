// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/result.h"

namespace klineage {

const char *toString(ErrorCode code)
{
    switch (code) {
    case ErrorCode::InvalidInput:
        return "invalid_input";
    case ErrorCode::NotFound:
        return "not_found";
    case ErrorCode::Io:
        return "io";
    case ErrorCode::Unavailable:
        return "unavailable";
    case ErrorCode::Timeout:
        return "timeout";
    case ErrorCode::Cancelled:
        return "cancelled";
    case ErrorCode::Protocol:
        return "protocol";
    case ErrorCode::Conflict:
        return "conflict";
    case ErrorCode::Budget:
        return "budget";
    case ErrorCode::Internal:
        return "internal";
    }
    return "internal";
}

} // namespace klineage
