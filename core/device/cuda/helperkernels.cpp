// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/device/cuda/helperkernels.h"

namespace klineage::gate::cuda {

const char *const helperKernels = R"(
typedef unsigned long long u64;
struct Region { u64 address; u64 bytes; };
struct Mark { u64 sm; u64 cycles; u64 nanoseconds; };
struct Output { u64 address; u64 elements; u64 tile; u64 kind; u64 slot; };
struct Print { u64 hash; double sum; double projection; double squares; unsigned nonFinite; unsigned unwritten; };

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

// Overwrites the shared memory of an SM, and its registers: what 44 loads give is live across the barrier in each of 1024 threads.
extern "C" __global__ void __launch_bounds__(1024, 1) klineage_scrub(unsigned word, unsigned bytes)
{
    extern __shared__ volatile unsigned cells[];
    const unsigned count = bytes / 4;
    for (unsigned i = threadIdx.x; i < count; i += blockDim.x)
        cells[i] = word;
    __syncthreads();
    const unsigned stride = (count - 1024) / 44;
    unsigned held[44];
#pragma unroll
    for (unsigned i = 0; i < 44; ++i)
        held[i] = cells[threadIdx.x + i * stride];
    __syncthreads();
#pragma unroll
    for (unsigned i = 0; i < 44; ++i)
        cells[threadIdx.x + i * stride] = held[i];
}

// Overwrites what threads keep in local memory: as many as an SM can have, `bytes` each.
template <unsigned WORDS>
__device__ __forceinline__ void scrubLocal(unsigned word, unsigned never)
{
    volatile unsigned stack[WORDS];
#pragma unroll 1
    for (unsigned i = 0; i < WORDS; ++i)
        stack[(i + word) % WORDS] = word;
    if (never)
        asm volatile("trap;" : : "r"(stack[word % WORDS]));
}
extern "C" __global__ void __launch_bounds__(1024, 2) klineage_scrub_local(unsigned word, unsigned never)
{
    scrubLocal<64>(word, never);
}
extern "C" __global__ void __launch_bounds__(1024, 2) klineage_scrub_stack(unsigned word, unsigned never)
{
    scrubLocal<1024>(word, never);
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

// The same numbers as tilePrintOf() makes (core/device/tileprint.h). kind: see kindOf() in core/device/cuda/helpers.cpp.
struct Float {
    typedef unsigned Bits;
    static __device__ double value(Bits bits) { return __uint_as_float(bits); }
};
struct Half {
    typedef unsigned short Bits;
    static __device__ double value(Bits bits)
    {
        float result;
        asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(bits));
        return result;
    }
};
struct Brain {
    typedef unsigned short Bits;
    static __device__ double value(Bits bits) { return __uint_as_float(unsigned(bits) << 16); }
};

__device__ void addElement(Print &print, u64 bits, double value, u64 fill, u64 index, unsigned key)
{
    unsigned random = unsigned(index) * 0x9e3779b1u + key;
    random = (random ^ (random >> 16)) * 0x85ebca6bu;
    random = (random ^ (random >> 13)) * 0xc2b2ae35u;
    random = random ^ (random >> 16);
    const unsigned folded = unsigned(bits) ^ (unsigned(bits >> 32) * 0x85ebca6bu);
    print.hash += u64(folded) * (random | 1u);
    print.unwritten += bits == fill;
    const bool finite = isfinite(value);
    print.nonFinite += !finite;
    const double counted = finite ? value : 0;
    print.sum += counted;
    print.projection += random & 0x80000000u ? -counted : counted;
    print.squares += counted * counted;
}

template <typename Element>
__device__ void addTile(const Output &output, u64 first, u64 end, unsigned key, unsigned word, Print &print)
{
    typedef typename Element::Bits Bits;
    const Bits *data = reinterpret_cast<const Bits *>(output.address);
#pragma unroll 4
    for (u64 i = first + threadIdx.x; i < end; i += blockDim.x) {
        const Bits bits = data[i];
        const Bits fill = static_cast<Bits>(sizeof(Bits) == 2 && i % 2 ? word >> 16 : word);
        addElement(print, bits, Element::value(bits), fill, i, key);
    }
}

// fp8 e4m3 has no infinities.
__device__ double valueOfE4m3(unsigned bits)
{
    const unsigned magnitude = bits & 0x7f;
    if (magnitude == 0x7f)
        return __longlong_as_double(0x7ff8000000000000ll);
    const unsigned exponent = magnitude >> 3;
    const double size = exponent == 0 ? (magnitude & 7) * 0.001953125
                                      : (8 + (magnitude & 7)) * 0.0009765625 * (1u << exponent);
    return bits & 0x80 ? -size : size;
}

__device__ double valueOf(u64 bits, unsigned kind)
{
    switch (kind) {
    case 3: return __longlong_as_double(static_cast<long long>(bits));
    case 4: return valueOfE4m3(static_cast<unsigned>(bits));
    case 5: return Half::value(static_cast<unsigned short>(bits << 8)); // e5m2 is the upper half of a half
    case 6: return static_cast<double>(static_cast<long long>(bits));
    case 7: return static_cast<double>(static_cast<int>(bits));
    case 8: return static_cast<double>(static_cast<short>(bits));
    case 9: return static_cast<double>(static_cast<signed char>(bits));
    default: return static_cast<double>(bits);
    }
}

__device__ void addOtherTile(const Output &output, u64 first, u64 end, unsigned key, unsigned word, Print &print)
{
    const unsigned kind = static_cast<unsigned>(output.kind);
    const unsigned size = kind == 3 || kind == 6 ? 8 : kind == 8 ? 2 : kind == 7 || kind == 10 ? 4 : 1;
    const u64 mask = size == 8 ? ~0ull : (1ull << (8 * size)) - 1;
    const u64 doubled = u64(word) << 32 | word;
#pragma unroll 1
    for (u64 i = first + threadIdx.x; i < end; i += blockDim.x) {
        const char *at = reinterpret_cast<const char *>(output.address) + i * size;
        const u64 bits = size == 8   ? *reinterpret_cast<const u64 *>(at)
                         : size == 4 ? *reinterpret_cast<const unsigned *>(at)
                         : size == 2 ? *reinterpret_cast<const unsigned short *>(at)
                                     : *reinterpret_cast<const unsigned char *>(at);
        addElement(print, bits, valueOf(bits, kind), (doubled >> (8 * (i * size % 4))) & mask, i, key);
    }
}

// One block a tile (x) of an output of a launch (y). Always added up in the same order.
extern "C" __global__ void __launch_bounds__(512) klineage_print(const Output *outputs, Print *prints, unsigned key,
                                                                 unsigned word)
{
    const Output output = outputs[blockIdx.y];
    const u64 first = blockIdx.x * output.tile;
    if (first >= output.elements)
        return;
    const u64 end = min(first + output.tile, output.elements);
    Print print = {};
    if (output.kind == 0)
        addTile<Float>(output, first, end, key, word, print);
    else if (output.kind == 1)
        addTile<Half>(output, first, end, key, word, print);
    else if (output.kind == 2)
        addTile<Brain>(output, first, end, key, word, print);
    else
        addOtherTile(output, first, end, key, word, print);
    __shared__ Print parts[512];
    parts[threadIdx.x] = print;
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x >= half)
            continue;
        Print &mine = parts[threadIdx.x];
        const Print other = parts[threadIdx.x + half];
        mine.hash += other.hash;
        mine.sum += other.sum;
        mine.projection += other.projection;
        mine.squares += other.squares;
        mine.nonFinite += other.nonFinite;
        mine.unwritten += other.unwritten;
    }
    if (threadIdx.x == 0)
        prints[output.slot + blockIdx.x] = parts[0];
}
)";

} // namespace klineage::gate::cuda
