// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace klineage {

enum class ErrorCode {
    InvalidInput, ///< a file or message does not follow its format
    NotFound,     ///< a named thing does not exist
    Io,           ///< the operating system refused
    Unavailable,  ///< a device, driver or library is missing
    Timeout,      ///< a deadline passed
    Cancelled,    ///< the caller asked to stop
    Protocol,     ///< a peer process broke the protocol or died
    Conflict,     ///< the state on disk is newer than the caller's
    Budget,       ///< it could cost more than may be spent
    Internal,     ///< a driver API failed where it should not
};

/// What the environment did wrong. What the user's kernel does wrong is a verdict, never an Error.
struct Error {
    ErrorCode code = ErrorCode::Internal;
    std::string message; ///< one whole sentence: what failed, on what, why
    std::string detail;  ///< optional: a log, a longer explanation, what to do
};

template <typename T>
using Result = tl::expected<T, Error>;
using Status = tl::expected<void, Error>;

[[nodiscard]] inline tl::unexpected<Error> fail(ErrorCode code, std::string message, std::string detail = {})
{
    return tl::unexpected<Error>(Error{code, std::move(message), std::move(detail)});
}

/// Stable lower-case name of a code, for JSON.
[[nodiscard]] const char *toString(ErrorCode code);

} // namespace klineage
