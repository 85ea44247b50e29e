// SPDX-License-Identifier: GPL-3.0-or-later
//
// The gate's compiler process without a compiler in it. Its argument says how it answers: "none" lacks NVRTC, "ptx" makes a short PTX of
// any source, "slow" never ends, "refuse" finds an error.
#include "core/device/worker/worker.h"

#include <atomic>
#include <cstring>

using namespace klineage;
using namespace klineage::gate;

namespace {

std::string mode;

CompileOutput ptxOf(const std::string &name)
{
    const std::string text =
        ".version 8.0\n.target sm_90a\n.visible .entry made(\n)\n{\n.loc 1 40 5\n"
        "ld.global.f32 %f1, [%rd1];\n$L__BB0_1:\n.loc 1 41 5\nfma.rn.f32 %f2, %f1, %f1, %f2;\n"
        "@%p1 bra $L__BB0_1;\nret;\n}\n.file 1 \""
        + name + "\"\n";
    CompileOutput output;
    output.ok = true;
    output.compiler = "fake 1.0";
    output.binary.resize(text.size());
    std::memcpy(output.binary.data(), text.data(), text.size());
    return output;
}

Result<CompileOutput> compileFake(const CompileRequest &request)
{
    const bool isProbe = request.source == "\n";
    if (mode == "none")
        return fail(ErrorCode::Unavailable,
                    "Cannot load libnvrtc.so.13: no such library. It comes with the CUDA Toolkit.");
    if (mode == "refuse" && !isProbe) {
        CompileOutput output;
        output.compiler = "fake 1.0";
        output.log = request.name + "(7): error: no such thing\nand more\n";
        return output;
    }
    std::atomic<bool> ends = mode != "slow" || isProbe;
    while (!ends.load()) // until it is killed
        continue;
    return ptxOf(request.name);
}

constexpr Compiler fake = {"cuda", compileFake};

} // namespace

int main(int argc, char *argv[])
{
    mode = argc > 1 ? argv[1] : "";
    return runCompiler({&fake, 1});
}
