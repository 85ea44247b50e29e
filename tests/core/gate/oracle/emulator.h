// SPDX-License-Identifier: GPL-3.0-or-later
//
// As much of CUDA as the oracle's kernels use, on a CPU: a block's threads are threads, blocks run one after the other, and shared
// memory is static. To be included before a kernel's source, inside of a namespace of its own.
#pragma once

#include <barrier>
#include <bit>
#include <cmath>
#include <cstdint>
#include <thread>
#include <vector>

namespace klineage::test {

struct Index {
    int x = 0, y = 0, z = 0;
};

inline thread_local Index emulatedThread;
inline Index emulatedBlock; ///< only one runs at a time
inline std::barrier<> *emulatedBarrier = nullptr;

/// Runs a kernel of blocks of 256 threads; kernel() is called in each thread.
template <typename Kernel>
void launchEmulated(int blocksX, int blocksY, int blocksZ, const Kernel &kernel)
{
    constexpr int threads = 256;
    std::barrier<> barrier(threads);
    std::barrier<> blockEnd(threads);
    emulatedBarrier = &barrier;
    std::vector<std::jthread> running;
    for (int t = 0; t < threads; ++t)
        running.emplace_back([&, t] {
            emulatedThread.x = t;
            for (int block = 0; block < blocksX * blocksY * blocksZ; ++block) {
                if (t == 0)
                    emulatedBlock = {block % blocksX, block / blocksX % blocksY, block / blocksX / blocksY};
                blockEnd.arrive_and_wait();
                kernel();
                blockEnd.arrive_and_wait();
            }
        });
}

} // namespace klineage::test

#define __device__
#define __global__
#define __shared__ static
#define __launch_bounds__(threads)
#define threadIdx klineage::test::emulatedThread
#define blockIdx klineage::test::emulatedBlock
#define __syncthreads() klineage::test::emulatedBarrier->arrive_and_wait()
#define __float_as_uint(value) std::bit_cast<std::uint32_t>(static_cast<float>(value))
#define __uint_as_float(bits) std::bit_cast<float>(static_cast<std::uint32_t>(bits))
