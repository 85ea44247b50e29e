// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/device/backend.h"

#include <map>
#include <span>
#include <string>
#include <string_view>

namespace klineage::gate {

/// What the compiler process is asked for.
struct CompileRequest {
    std::string language; ///< its word in kernel/surfaces
    std::string source;   ///< the whole text, plan comment included
    std::string name;     ///< of the file, for messages
    std::map<std::string, std::int64_t> tunables;
    std::string target; ///< what the device's backend loads: "sm_90a"
    std::string
        launches{}; ///< of the plan, for a compiler that decides about them: JSON of the language's own
    HeaderTexts headers{}; ///< that a source includes which a language's own compiler wrote, by name
};

/// Who turns a language into binaries. The function runs in the compiler process, needs no device and never throws; a source that
/// does not compile is a value, a compiler that is missing ErrorCode::Unavailable. It also compiles a line break, to say its version.
struct Compiler {
    std::string_view language;
    Result<CompileOutput> (*compile)(const CompileRequest &request);
};

/// One entry a language that surfaces compile apart from the worker.
[[nodiscard]] std::span<const Compiler> compilers();

/// By the one of them that knows the language; ErrorCode::Unavailable when none does.
[[nodiscard]] Result<CompileOutput> compileBy(std::span<const Compiler> known, const CompileRequest &request);

} // namespace klineage::gate
