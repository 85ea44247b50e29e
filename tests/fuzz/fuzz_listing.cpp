// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trial/listing.h"
#include "tests/fuzz/target.h"

using namespace klineage;
using namespace klineage::gate;

FuzzTarget fuzzTarget()
{
    FuzzTarget target;
    target.seeds = {writeListing({"NVRTC 13.0.48",
                                  {{"gemm", 0, 41, 0, {}, "LDC R1, c[0x0][0x28]"},
                                   {"gemm", 0x10, 42, 17, {{"wait", 12}, {"selected", 5}}, "EXIT"},
                                   {"tail", 0, 0, 1, {{"wait", 1}}, "EXIT"}}})};
    target.words = {"\t", "\n", ".kernel ", "# machine code by ", "ffffffffffffffff", "-1",
                    "=",  " ",  "wait=3"};
    target.runs = 15'000;
    return target;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
    const auto listing = parseListing({reinterpret_cast<const char *>(data), size}, "fuzz.sass");
    if (!listing) {
        requireLocated(listing.error(), "fuzz.sass:");
        return 0;
    }
    const std::string written = writeListing(*listing);
    const auto again = parseListing(written, "written");
    require(again.has_value(), "what is written can be read");
    require(writeListing(*again) == written, "writing and reading keep the listing");
    return 0;
}
