// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernel/plan.h"
#include "tests/fuzz/target.h"

using namespace klineage;
using namespace klineage::kernel;

FuzzTarget fuzzTarget()
{
    FuzzTarget target;
    target.seeds = {R"KL(/*klineage
surface = "cuda"
[[tunable]]
name = "BM"
default = 64
values = [64, 128]
[[workspace]]
name = "w"
dtype = "f32"
shape = [2, "M"]
init = "zero"
[[tensormap]]
name = "t"
tensor = "x"
dims = ["M", "K"]
strides = ["K"]
box = ["BM", 8]
swizzle = "64B"
l2_promotion = "128B"
fill = "nan"
[[launch]]
kernel = "k"
when = "K % 8 == 0"
grid = ["ceil_div(M, BM)", 4]
block = [128]
cluster = [2]
shared = "BM * 64"
pdl = true
args = ["t", "x", "w", "int M", "float rsqrt(K)"]
*/
code)KL"};
    target.seedFiles = {".cu", ".cl"};
    // The plan is what is parsed; thousands of bytes of code would only soak up mutations.
    target.cut = [](const std::string &text) {
        return std::vector<std::string>{text.substr(0, text.find("*/")) + "*/\ncode"};
    };
    target.words = {"[[launch]]\n",
                    "[[tunable]]\n",
                    "[[tensormap]]\n",
                    "[[workspace]]\n",
                    "grid = ",
                    "block = ",
                    "args = [",
                    "name = ",
                    "\"int M\"",
                    "\"local 64\"",
                    "*/",
                    "/*klineage\n",
                    "\"opencl\"",
                    "\"cuda\"",
                    "'''",
                    "\"\"\"",
                    "[",
                    "{",
                    "= ",
                    "\n",
                    "\\u0000",
                    "a.b.c.d.e.f.g",
                    "1e400",
                    "2001-01-01"};
    target.runs = 8'000;
    return target;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
    std::string_view text(reinterpret_cast<const char *>(data), size);
    const Result<Candidate> candidate = parseCandidate(text, "fuzz.cu");
    if (!candidate) {
        requireLocated(candidate.error(), "fuzz.cu:");
        return 0;
    }
    if (constexpr std::string_view byteOrderMark = "\xef\xbb\xbf"; text.starts_with(byteOrderMark))
        text.remove_prefix(byteOrderMark.size());
    require(candidate->source == text, "the source is kept, but for a byte-order mark");
    require(text.ends_with(codeOf(*candidate)), "the code is the end of the file");
    const std::string written = joinCandidate(candidate->surface, writePlan(*candidate), codeOf(*candidate));
    const Result<Candidate> again = parseCandidate(written, "written");
    require(again.has_value(), "what is written can be read");
    require(writePlan(*again) == writePlan(*candidate), "writing and reading keep the plan");
    require(codeOf(*again) == codeOf(*candidate), "writing and reading keep the code");

    Bindings bindings = candidate->defaultTunables();
    for (const char *name : {"M", "N", "K", "R", "C"})
        bindings.emplace(name, std::int64_t{4096});
    for (const char *name : {"sm_count", "warp_size", "max_shared"})
        bindings.emplace(name, std::int64_t{65536});
    const std::vector<ResolvedBuffer> tensors = {{"x", DType::BF16, {4096, 4096}}, {"y", DType::F32, {16}}};
    if (const Result<ResolvedPlan> plan = resolvePlan(*candidate, tensors, bindings))
        require(!plan->launches.empty(), "a plan launches something");
    else
        requireLocated(plan.error(), "Cannot resolve ");
    return 0;
}
