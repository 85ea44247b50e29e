// SPDX-License-Identifier: GPL-3.0-or-later
//
// The gate's own device code. Every CUDA worker loads it before the first sample.
#pragma once

namespace klineage::gate::cuda {

/// CUDA C++ of three kernels:
///   klineage_fill(const Region *regions, unsigned word)   grid (chunks, regions): fills each region with the word
///   klineage_scrub(unsigned word, unsigned bytes)         one block an SM: overwrites its dynamic shared memory
///   klineage_probe(Mark *marks)                           one thread a block: SM number, its cycle counter, the global timer
/// Region is {address, bytes} and Mark {sm, cycles, nanoseconds}, each of 64-bit unsigned integers.
extern const char *const helperKernels;

} // namespace klineage::gate::cuda
