// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/device/cuda/cubinglobals.h"
#include "tests/core/device/elffixture.h"
#include "tests/fuzz/target.h"

using namespace klineage;
using namespace klineage::gate;

FuzzTarget fuzzTarget()
{
    FuzzTarget target;
    target.seeds = {test::smallElf()};
    target.words = {std::string(8, '\xff'), std::string(8, '\0'), std::string("\x01\0\0\0\0\0\0\0", 8),
                    ".nv.global",           ".nv.global.init",    std::string("\x08\0\0\0", 4)};
    target.runs = 20'000;
    return target;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
    const auto globals = cuda::globalsOf({reinterpret_cast<const std::byte *>(data), size});
    if (!globals) {
        require(globals.error().code == ErrorCode::InvalidInput, "bad input is InvalidInput");
        return 0;
    }
    std::size_t total = 0;
    for (const cuda::DeviceGlobal &global : *globals) {
        require(!global.initial.empty(), "a variable has bytes");
        require(global.name.find('\0') == std::string::npos, "a name ends at its zero");
        total += global.initial.size();
    }
    require(total <= (std::size_t{64} << 20), "there is a limit");
    return 0;
}
