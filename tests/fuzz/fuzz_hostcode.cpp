// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/workload/guess/guess.h"
#include "tests/core/kernel/hostsources.h"
#include "tests/fuzz/target.h"

using namespace klineage;

namespace {

const workload::Workload &anyWorkload()
{
    static const auto read = workload::parseWorkload(R"(
name = "any"
title = "Any"
description = "Any."
axes = ["R", "C"]
flops = "R * C"
bytes = "8 * R * C"
[oracle]
name = "softmax_rows"
args = { in = "x", out = "y" }
[[tensor]]
name = "x"
role = "input"
dtype = "f32"
shape = ["R", "C"]
[[tensor]]
name = "y"
role = "output"
dtype = "f32"
shape = ["R", "C"]
[[case]]
name = "timed"
axes = { R = 64, C = 64 }
)",
                                                     "workload.toml");
    require(read.has_value(), read ? "" : read.error().message.c_str());
    return *read;
}

} // namespace

FuzzTarget fuzzTarget()
{
    FuzzTarget target;
    target.seeds = {tests::programSource, tests::extensionSource, tests::launcherSource,
                    tests::templateSource};
    target.words = {"<<<",       ">>>",        "dim3",         "(",          ")",       "{",
                    "}",         "template <", "extern \"C\"", "namespace ", "static ", "__global__ ",
                    "#include ", "sizeof(",    "x.size(1)",    "cudaMalloc", "ceil(",   "= ",
                    ";",         ",",          "#define N "};
    target.runs = 3'000;
    return target;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
    const std::string_view text(reinterpret_cast<const char *>(data), size);
    const kernel::DeviceSource source = kernel::deviceSourceOf(text, kernel::Surface::Cuda);
    require(source.isChanged() || source.code == text, "what is changed is said");
    require(source.launches.size() <= kernel::maxHostLaunches, "launches are counted");
    const kernel::SourceOutline outline = kernel::outlineSource(source.code, kernel::Surface::Cuda);
    const kernel::KernelFunction *kernel = workload::likelyKernel(outline, source.launches);
    if (!kernel)
        return 0;
    const workload::PlanGuess guess =
        workload::guessPlan(source.code, kernel::Surface::Cuda, *kernel, anyWorkload(), source.launches);
    require(guess.why.size() == kernel->parameters.size(), "each argument has its reason");
    for (const auto &list : {guess.draft.grid, guess.draft.block}) {
        for (const std::string &expression : list)
            require(kernel::Expression::parse(expression).has_value(),
                    "expressions of the host become a plan's");
    }
    return 0;
}
