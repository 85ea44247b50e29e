// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

namespace klineage::gate::opencl {

/// OpenCL C of Scrub, for whoever builds it before a worker asks for it. Its private array is 256 KiB: more than work-items of a candidate
/// are given at once on any device that runs them one after another.
inline constexpr const char *scrubSource = R"cl(
__kernel void klineage_scrub(__global volatile int *arrived, __local volatile uint *cells, uint count, uint word,
                             __global ulong *places, int until)
{
    atomic_inc(arrived);
    for (int i = 0; i < 20000 && *arrived - until < 0; ++i)
        ;
    for (uint i = 0; i < count; ++i)
        cells[i] = word;
    volatile uint stack[65536];
    for (uint i = 0; i < 65536; ++i)
        stack[i] = word;
    places[get_group_id(0)] = (ulong)(uintptr_t)(&stack[0]);
    if (cells[word % count] != word || stack[word % 65536] != word)
        atomic_inc(arrived);
}
)cl";

} // namespace klineage::gate::opencl
