// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/device/compilers.h"

#include <algorithm>
#include <array>

namespace klineage::gate {

namespace {

constexpr std::array<Compiler, 1> all{{
    {"cuda",
     [](const CompileRequest &request) {
         return compileCuda(request.source, request.name, request.tunables, request.target, request.headers);
     }},
}};

} // namespace

std::span<const Compiler> compilers()
{
    return all;
}

Result<CompileOutput> compileBy(std::span<const Compiler> known, const CompileRequest &request)
{
    const auto compiler = std::find_if(known.begin(), known.end(), [&](const Compiler &candidate) {
        return candidate.language == request.language;
    });
    if (compiler == known.end())
        return fail(ErrorCode::Unavailable, "There is no compiler for '" + request.language + "' here.");
    return compiler->compile(request);
}

} // namespace klineage::gate
