// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/device/cuda/helperkernels.h"

namespace klineage::gate::cuda {

const char *const helperKernels = R"(
typedef unsigned long long u64;
struct Region { u64 address; u64 bytes; };
struct Mark { u64 sm; u64 cycles; u64 nanoseconds; };
struct Output { u64 address; u64 elements; u64 tile; u64 kind; u64 slot; };
struct Print { u64 hash; double sum; double projection; double squares; unsigned nonFinite; unsigned unwritten; };

// A block a region: the host cuts long ones (Helpers::cut()).
__device__ bool inSixteens(const Region &region)
{
    return (region.address | region.bytes) % 16 == 0;
}

extern "C" __global__ void klineage_fill(const Region *regions, unsigned word, u64 *)
{
    const Region region = regions[blockIdx.x];
    if (inSixteens(region)) {
        uint4 *out = reinterpret_cast<uint4 *>(region.address);
#pragma unroll 4
        for (u64 i = threadIdx.x; i < region.bytes / 16; i += blockDim.x)
            out[i] = make_uint4(word, word, word, word);
        return;
    }
    const u64 words = region.bytes / 4;
    unsigned *out = reinterpret_cast<unsigned *>(region.address);
    for (u64 i = threadIdx.x; i < words; i += blockDim.x)
        out[i] = word;
    if (threadIdx.x < region.bytes % 4)
        reinterpret_cast<unsigned char *>(region.address)[words * 4 + threadIdx.x] =
            static_cast<unsigned char>(word >> (8 * threadIdx.x));
}

// The least address of what klineage_fill wrote and is another word now.
extern "C" __global__ void klineage_touched(const Region *regions, unsigned word, u64 *found)
{
    const Region region = regions[blockIdx.x];
    if (inSixteens(region)) {
        const uint4 *in = reinterpret_cast<const uint4 *>(region.address);
#pragma unroll 4
        for (u64 i = threadIdx.x; i < region.bytes / 16; i += blockDim.x) {
            const uint4 is = in[i];
            if (((is.x ^ word) | (is.y ^ word) | (is.z ^ word) | (is.w ^ word)) == 0)
                continue;
            const unsigned before = is.x != word ? 0 : is.y != word ? 1 : is.z != word ? 2 : 3;
            atomicMin(found, region.address + 16 * i + 4 * before);
        }
        return;
    }
    const u64 words = region.bytes / 4;
    const unsigned *in = reinterpret_cast<const unsigned *>(region.address);
    for (u64 i = threadIdx.x; i < words; i += blockDim.x) {
        if (in[i] != word)
            atomicMin(found, region.address + 4 * i);
    }
    const u64 last = region.address + words * 4 + threadIdx.x;
    if (threadIdx.x < region.bytes % 4
        && *reinterpret_cast<const unsigned char *>(last) != static_cast<unsigned char>(word >> (8 * threadIdx.x)))
        atomicMin(found, last);
}

__device__ u64 spread(u64 x)
{
    x += 0x9e3779b97f4a7c15ull;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

// What the bytes of each region add up to, with a key that nobody else knows.
// resting: a word that is this becomes 0, and counts as 0; 0: none does.
extern "C" __global__ void klineage_sum(const Region *regions, u64 key, unsigned resting, u64 *sums)
{
    const Region region = regions[blockIdx.x];
    u64 sum = 0;
    if (inSixteens(region)) {
        uint4 *in = reinterpret_cast<uint4 *>(region.address);
#pragma unroll 4
        for (u64 i = threadIdx.x; i < region.bytes / 16; i += blockDim.x) {
            uint4 is = in[i];
            if (resting != 0 && (is.x == resting || is.y == resting || is.z == resting || is.w == resting)) {
                is = make_uint4(is.x == resting ? 0 : is.x, is.y == resting ? 0 : is.y, is.z == resting ? 0 : is.z,
                                is.w == resting ? 0 : is.w);
                in[i] = is;
            }
            sum += spread(key + ((4 * i) << 32 | is.x)) + spread(key + ((4 * i + 1) << 32 | is.y))
                   + spread(key + ((4 * i + 2) << 32 | is.z)) + spread(key + ((4 * i + 3) << 32 | is.w));
        }
    } else {
        const u64 words = region.bytes / 4;
        unsigned *in = reinterpret_cast<unsigned *>(region.address);
        for (u64 i = threadIdx.x; i < words; i += blockDim.x) {
            if (resting != 0 && in[i] == resting)
                in[i] = 0;
            sum += spread(key + (i << 32 | in[i]));
        }
        if (threadIdx.x < region.bytes % 4) {
            const u64 last = region.address + words * 4 + threadIdx.x;
            sum += spread(~key + (u64(threadIdx.x) << 32 | *reinterpret_cast<const unsigned char *>(last)));
        }
    }
    if (sum != 0)
        atomicAdd(sums + blockIdx.x, sum);
}

__device__ void compare(const char *at, const char *with, u64 bytes, u64 *found)
{
    if ((reinterpret_cast<u64>(at) | reinterpret_cast<u64>(with) | bytes) % 4 == 0) {
        for (u64 i = threadIdx.x; i < bytes / 4; i += blockDim.x) {
            if (reinterpret_cast<const unsigned *>(at)[i] != reinterpret_cast<const unsigned *>(with)[i])
                atomicMin(found, reinterpret_cast<u64>(at) + 4 * i);
        }
        return;
    }
    for (u64 i = threadIdx.x; i < bytes; i += blockDim.x) {
        if (at[i] != with[i])
            atomicMin(found, reinterpret_cast<u64>(at) + i);
    }
}

__device__ void put(char *to, const char *from, u64 bytes)
{
    if ((reinterpret_cast<u64>(to) | reinterpret_cast<u64>(from) | bytes) % 16 == 0) {
        for (u64 i = threadIdx.x; i < bytes / 16; i += blockDim.x)
            reinterpret_cast<uint4 *>(to)[i] = reinterpret_cast<const uint4 *>(from)[i];
        return;
    }
    for (u64 i = threadIdx.x; i < bytes; i += blockDim.x)
        to[i] = from[i];
}

// Puts the zones around a copy of a tensor back as they were.
struct Guard { u64 address, front, bytes, behind, zones; };
extern "C" __global__ void klineage_guard(const Guard *guards, u64 *)
{
    const Guard guard = guards[blockIdx.x];
    const char *zones = reinterpret_cast<const char *>(guard.zones);
    char *at = reinterpret_cast<char *>(guard.address);
    put(at, zones, guard.front);
    put(at + guard.front + guard.bytes, zones + guard.front, guard.behind);
}

// The least address of what klineage_guard put back and is something else now.
extern "C" __global__ void klineage_zones(const Guard *guards, u64 *found)
{
    const Guard guard = guards[blockIdx.x];
    const char *zones = reinterpret_cast<const char *>(guard.zones);
    const char *at = reinterpret_cast<const char *>(guard.address);
    compare(at, zones, guard.front, found);
    compare(at + guard.front + guard.bytes, zones + guard.front, guard.behind, found);
}

extern "C" __global__ void klineage_wipe(char *begin, u64 bytes, unsigned word)
{
    unsigned *out = reinterpret_cast<unsigned *>(begin);
    for (u64 i = u64(blockIdx.x) * blockDim.x + threadIdx.x; i < bytes / 4; i += u64(gridDim.x) * blockDim.x)
        out[i] = word;
}

// Reads memory that is nobody's, marked to stay; then takes the marks away. So neither what others marked nor what they wrote is left.
extern "C" __global__ void klineage_flush(const uint4 *begin, u64 bytes)
{
    for (u64 i = u64(blockIdx.x) * blockDim.x + threadIdx.x; i < bytes / 16; i += u64(gridDim.x) * blockDim.x) {
        unsigned a, b, c, d;
#if __CUDA_ARCH__ >= 800
        asm volatile("{ .reg .b64 policy; createpolicy.fractional.L2::evict_last.b64 policy, 1.0;"
                     " ld.global.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], policy; }"
                     : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "l"(begin + i));
#else
        asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "l"(begin + i));
#endif
    }
}

extern "C" __global__ void klineage_unmark(const char *begin, u64 bytes)
{
#if __CUDA_ARCH__ >= 800
    for (u64 i = u64(blockIdx.x) * blockDim.x + threadIdx.x; i < bytes / 128; i += u64(gridDim.x) * blockDim.x)
        asm volatile("applypriority.global.L2::evict_normal [%0], 128;" : : "l"(begin + 128 * i) : "memory");
#endif
}

// Overwrites the shared memory of an SM, and its registers: what 44 loads give is live across the barrier in each of 1024 threads.
extern "C" __global__ void __launch_bounds__(1024, 1) klineage_scrub(unsigned word, unsigned bytes)
{
    extern __shared__ volatile unsigned cells[];
    const unsigned count = bytes / 4;
    for (unsigned i = threadIdx.x; i < count; i += blockDim.x)
        cells[i] = word;
#if __CUDA_ARCH__ >= 800
    // Of the kibibyte before them, which the system has, all that a kernel can write to and nothing needs.
    if (threadIdx.x >= 64 && threadIdx.x < 256)
        asm volatile("st.shared.u32 [%0], %1;" : : "r"(4 * threadIdx.x), "r"(word) : "memory");
#endif
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

// Overwrites what threads keep in local memory: as many as an SM can have, 16 KiB each.
extern "C" __global__ void __launch_bounds__(1024, 2) klineage_scrub_stack(unsigned word, unsigned never)
{
    constexpr unsigned words = 4096;
    volatile unsigned stack[words];
#pragma unroll 1
    for (unsigned i = 0; i < words; ++i)
        stack[(i + word) % words] = word;
    if (never)
        asm volatile("trap;" : : "r"(stack[word % words]));
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

// Where a parameter lies, and what blocks of a cooperative launch meet at.
extern "C" __global__ void klineage_places(const __grid_constant__ u64 own, u64 *places)
{
    unsigned high, low;
    asm volatile("mov.u32 %0, %%envreg1;" : "=r"(high));
    asm volatile("mov.u32 %0, %%envreg2;" : "=r"(low));
    places[0] = reinterpret_cast<u64>(&own);
    places[1] = u64(high) << 32 | low;
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

// As sourceOf() and blendPieces() have it (core/device/blend.cpp): the same bits.
struct Blend { u64 to, first, second, elements, piece, unit, key; double mean; u64 kind, elementKind; };

struct Source { u64 first, second, turn; unsigned ofSecond; float c, s, shift; unsigned salt; float step; };

__device__ bool isMix(const Blend &blend)
{
    return blend.kind == 0 || blend.kind == 3;
}

__device__ Source sourceOf(const Blend &blend, u64 index, u64 length)
{
    const u64 places = (blend.elements - length) / blend.unit + 1;
    const u64 at = spread(blend.key) + 4 * index;
    const u64 angle = spread(at + 2);
    Source source = {};
    source.first = blend.unit * __umul64hi(spread(at), places);
    source.second = blend.unit * __umul64hi(spread(at + 1), places);
    source.turn = blend.kind == 2 || blend.kind == 4 ? __umul64hi(spread(at + 3), length) : 0;
    source.ofSecond = unsigned(angle >> 63);
    if (blend.kind == 4) {
        source.salt = unsigned(angle);
        source.step = 0x1p-9f;
    }
    if (isMix(blend)) {
        const double t = double((1u << 18) + unsigned(angle & ((1u << 19) - 1))) / 1048576.0;
        const double square = __dmul_rn(t, t);
        source.c = __double2float_rn(__ddiv_rn(__dsub_rn(1.0, square), __dadd_rn(1.0, square)));
        source.s = __double2float_rn(__ddiv_rn(2.0 * t, __dadd_rn(1.0, square)));
        const double rest = __dsub_rn(__dsub_rn(1.0, double(source.c)), double(source.s));
        source.shift = __double2float_rn(__dmul_rn(blend.mean, rest));
        source.salt = unsigned(spread(at + 3));
        source.step = blend.kind == 0 ? 0x1p-17f : 0.0f;
    }
    return source;
}

__device__ float offOf(const Source &source, u64 i)
{
    return __fadd_rn(1.0f, (float((unsigned(i) + source.salt) * 167u & 255u) - 127.5f) * source.step);
}

struct Mixed {
    const Source &source;
    __device__ float operator()(float x, float y, u64 i) const
    {
        return __fmul_rn(__fadd_rn(__fadd_rn(__fmul_rn(source.c, x), __fmul_rn(source.s, y)), source.shift),
                         offOf(source, i));
    }
};

struct Varied {
    const Source &source;
    __device__ float operator()(float x, float, u64 i) const { return __fmul_rn(x, offOf(source, i)); }
};

template <typename Bits>
__device__ void takePiece(const Blend &blend, const Source &source, u64 begin, u64 length)
{
    const Bits *from = reinterpret_cast<const Bits *>(source.ofSecond ? blend.second : blend.first) + source.first;
    Bits *to = reinterpret_cast<Bits *>(blend.to) + begin;
    for (u64 i = threadIdx.x; i < length; i += blockDim.x)
        to[i] = from[i + source.turn < length ? i + source.turn : i + source.turn - length];
}

// The i-th element from the one that is so many places on, round the end, of the first, and the i-th of the second.
template <typename Made>
__device__ void makePiece(const Blend &blend, u64 first, u64 begin, u64 length, const Source &source, Made made)
{
    const u64 turn = source.turn;
    if (blend.elementKind == 0) {
        const float *x = reinterpret_cast<const float *>(first) + source.first;
        const float *y = reinterpret_cast<const float *>(blend.second) + source.second;
        float *to = reinterpret_cast<float *>(blend.to) + begin;
        for (u64 i = threadIdx.x; i < length; i += blockDim.x)
            to[i] = made(x[i + turn < length ? i + turn : i + turn - length], y[i], i);
        return;
    }
    const unsigned short *x = reinterpret_cast<const unsigned short *>(first) + source.first;
    const unsigned short *y = reinterpret_cast<const unsigned short *>(blend.second) + source.second;
    unsigned short *to = reinterpret_cast<unsigned short *>(blend.to) + begin;
    for (u64 i = threadIdx.x; i < length; i += blockDim.x) {
        const u64 at = i + turn < length ? i + turn : i + turn - length;
        if (blend.elementKind == 1) {
            float a, b;
            asm("cvt.f32.f16 %0, %1;" : "=f"(a) : "h"(x[at]));
            asm("cvt.f32.f16 %0, %1;" : "=f"(b) : "h"(y[i]));
            unsigned short bits;
            asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(made(a, b, i)));
            to[i] = bits;
        } else {
            const float a = __uint_as_float(unsigned(x[at]) << 16);
            const float b = __uint_as_float(unsigned(y[i]) << 16);
            const unsigned bits = __float_as_uint(made(a, b, i));
            to[i] = static_cast<unsigned short>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
        }
    }
}

// A tensor in y, its pieces in x.
extern "C" __global__ void __launch_bounds__(256) klineage_blend(const Blend *blends)
{
    const Blend blend = blends[blockIdx.y];
    const u64 pieces = (blend.elements + blend.piece - 1) / blend.piece;
    __shared__ Source shared;
    for (u64 index = blockIdx.x; index < pieces; index += gridDim.x) {
        const u64 begin = index * blend.piece;
        const u64 length = min(blend.piece, blend.elements - begin);
        __syncthreads();
        if (threadIdx.x == 0)
            shared = sourceOf(blend, index, length);
        __syncthreads();
        const Source source = shared;
        if (isMix(blend))
            makePiece(blend, blend.first, begin, length, source, Mixed{source});
        else if (blend.kind == 4)
            makePiece(blend, source.ofSecond ? blend.second : blend.first, begin, length, source, Varied{source});
        else if (blend.elementKind == 8 + 1)
            takePiece<unsigned char>(blend, source, begin, length);
        else if (blend.elementKind == 8 + 2)
            takePiece<unsigned short>(blend, source, begin, length);
        else if (blend.elementKind == 8 + 4)
            takePiece<unsigned>(blend, source, begin, length);
        else
            takePiece<u64>(blend, source, begin, length);
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
