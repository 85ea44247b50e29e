// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/lineage/lineage.h"
#include "tests/fuzz/target.h"

#include <algorithm>
#include <filesystem>

using namespace klineage;
using namespace klineage::lineage;

FuzzTarget fuzzTarget()
{
    FuzzTarget target;
    target.seeds = {R"(workload = "w"
platform = "pocl"
surface = "opencl"
title = "t"
origin = "o"
termination = "complete"
reason = "r"
[[state]]
id = "K00"
file = "K00.cl"
title = "naive"
trial = "0123456789abcdef"
[[state]]
id = "K01"
file = "K01..u"
title = "tiles"
[[transition]]
from = "K00"
to = "K01"
category = "tiling"
locus = "loop"
summary = "s"
[[attempt]]
id = "R00a"
parent = "K00"
file = "R00a.cl"
title = "t"
category = "c"
locus = "l"
reason = "r"
)"};
    target.seedFiles = {"lineage.toml"};
    target.words = {"[[state]]\n",
                    "[[transition]]\n",
                    "[[attempt]]\n",
                    "id = ",
                    "\"K00\"",
                    "\"K01\"",
                    "from = ",
                    "to = ",
                    "../../etc/passwd",
                    "trial = \"0123456789abcdef\"\n",
                    "surface = \"cuda\"\n",
                    "'''",
                    "\"",
                    "\n",
                    "=",
                    "[",
                    "{"};
    target.runs = 5'000;
    return target;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
    const Result<Lineage> lineage = parseLineage({reinterpret_cast<const char *>(data), size}, "fuzz.toml");
    if (!lineage) {
        requireLocated(lineage.error(), "fuzz.toml:");
        return 0;
    }
    const std::string written = writeLineage(*lineage);
    const Result<Lineage> again = parseLineage(written, "written");
    require(again.has_value(), "what is written can be read");
    require(writeLineage(*again) == written, "writing and reading keep the lineage");
    for (const State &state : lineage->states) {
        require(lineage->findState(state.id) == &state, "ids are unique");
        const std::filesystem::path file(state.file); // ".." in a name, as in "K02..u", is a name
        require(!file.is_absolute() && std::find(file.begin(), file.end(), "..") == file.end(),
                "files stay in the folder");
    }
    return 0;
}
