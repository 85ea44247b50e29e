// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/kernel/candidate.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace klineage::gate {

/// What an OpenCL source asks of its compiler that would reach beyond the source: directives that open or look for files, and new meanings
/// for the names that the worker hands to the compiler in place of inline assembly and of attributes that place or start code, by the source
/// or by a tunable. Found in the text that the compiler gets, plainSource(). A line of a compiler's log
/// ("<candidate>:3:1: error: …"), or nothing.
[[nodiscard]] std::optional<std::string> refusedInOpenCl(std::string_view source,
                                                         std::span<const kernel::Tunable> tunables = {});

/// What a CUDA source says of when it is compiled (__TIME__, __DATE__, __TIMESTAMP__), put together with ## too: beside a device's clock that tells
/// a trial from later. As above.
[[nodiscard]] std::optional<std::string> refusedInCuda(std::string_view source);

} // namespace klineage::gate
