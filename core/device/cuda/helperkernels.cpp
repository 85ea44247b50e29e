// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/device/cuda/helperkernels.h"

namespace klineage::gate::cuda {

const char *const helperKernels = R"(
typedef unsigned long long u64;
struct Region { u64 address; u64 bytes; };
struct Mark { u64 sm; u64 cycles; u64 nanoseconds; };

extern "C" __global__ void klineage_fill(const Region *regions, unsigned word)
{
    const Region region = regions[blockIdx.y];
    const u64 words = region.bytes / 4;
    unsigned *out = reinterpret_cast<unsigned *>(region.address);
    const u64 step = u64(gridDim.x) * blockDim.x;
    for (u64 i = u64(blockIdx.x) * blockDim.x + threadIdx.x; i < words; i += step)
        out[i] = word;
    if (blockIdx.x == 0 && threadIdx.x < region.bytes % 4)
        reinterpret_cast<unsigned char *>(region.address)[words * 4 + threadIdx.x] =
            static_cast<unsigned char>(word >> (8 * threadIdx.x));
}

extern "C" __global__ void klineage_scrub(unsigned word, unsigned bytes)
{
    extern __shared__ volatile unsigned cells[];
    for (unsigned i = threadIdx.x; i < bytes / 4; i += blockDim.x)
        cells[i] = word;
}

extern "C" __global__ void klineage_probe(Mark *marks)
{
    unsigned sm;
    u64 cycles, nanoseconds;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(cycles) : : "memory");
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(nanoseconds) : : "memory");
    marks[blockIdx.x].sm = sm;
    marks[blockIdx.x].cycles = cycles;
    marks[blockIdx.x].nanoseconds = nanoseconds;
}
)";

} // namespace klineage::gate::cuda
