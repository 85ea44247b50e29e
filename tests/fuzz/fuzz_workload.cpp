// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/workload/workload.h"
#include "tests/fuzz/target.h"

using namespace klineage;
using namespace klineage::workload;

FuzzTarget fuzzTarget()
{
    FuzzTarget target;
    target.seedFiles = {"workload.toml"};
    target.words = {"[[tensor]]\n",
                    "[[case]]\n",
                    "[[reference]]\n",
                    "[oracle]\n",
                    "[tolerance]\n",
                    "axes = ",
                    "name = ",
                    "shape = ",
                    "distributions = { x = { kind = \"uniform\", low = 0, high = 1 } }\n",
                    "drawn = { M = { from = 1, to = 300, step = 8 } }\n",
                    "exact = true\n",
                    "{ kind = \"integers\", low = -8, high = 8 }",
                    "\"neg_infinity\"",
                    "\"output\"",
                    "\"bf16\"",
                    "reduction = \"M\"\n",
                    "{",
                    "}",
                    "[",
                    "]",
                    "\"",
                    "\n",
                    "'''",
                    "= ",
                    "9223372036854775807",
                    "1e-300"};
    target.runs = 5'000;
    return target;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
    const Result<Workload> workload =
        parseWorkload({reinterpret_cast<const char *>(data), size}, "fuzz.toml");
    if (!workload) {
        requireLocated(workload.error(), "fuzz.toml:");
        return 0;
    }
    const std::string written = writeWorkload(*workload);
    const Result<Workload> again = parseWorkload(written, "written");
    require(again.has_value(), "what is written can be read");
    require(writeWorkload(*again) == written, "writing and reading keep the workload");
    require(!workload->cases.empty(), "there is a timed case");
    require(workload->cases.front().drawn.empty(), "the timed case has one shape");
    for (const Case &c : workload->cases) {
        for (const auto &[axis, range] : c.drawn) {
            require(range.count() >= 1, "there is something to draw from");
            const Case drawn = drawnAt(c, {{axis, size}});
            require(drawn.axes.at(axis) >= range.low && drawn.axes.at(axis) <= range.high,
                    "a draw is in its range");
        }
        require(workload->buffersOf(c).has_value(), "every case has shapes");
        require(workload->toleranceFor(c).has_value(), "every case has limits");
        require(workload->flops.evaluateReal(workload->bindings(c)).value_or(0) > 0, "every case has a cost");
    }
    return 0;
}
