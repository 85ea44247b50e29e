/*klineage
surface = "cuda"

[[tunable]]
name = "WIDE"
default = 1
values = [0, 1]

[[tunable]]
name = "TYPE"
default = 0
values = [0, 1, 2]

[[launch]]
kernel = "poison"
grid = ["ceil_div(ELEMENTS, 16384)"]
block = ["256"]
args = ["target", "long ELEMENTS", "long KEY", "long GARBAGE", "long WORD"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// What an output holds before a launch: the same bits as poison() makes of a key (core/gate/check/bufferimage.h). NaNs with a random sign
// and payload, or large numbers of both signs; or, where it is not 0, one word of four bytes everywhere.
#define ELEMENTS_OF_BLOCK 16384
#define PIECE 1048576 // bytes; the counter begins anew in each

typedef unsigned long long u64;
#if TYPE == 0
typedef u32 Bits;
#define QUIET 0x7fc00000u
#define MANTISSA 23
#define EXPONENT (127 + 20 + static_cast<u32>((random >> 1) % 21))
#elif TYPE == 1
typedef u16 Bits;
#define QUIET 0x7e00u
#define MANTISSA 10
#define EXPONENT (15 + 14)
#else
typedef u16 Bits;
#define QUIET 0x7fc0u
#define MANTISSA 7
#define EXPONENT (127 + 20 + static_cast<u32>((random >> 1) % 21))
#endif

__device__ inline u64 mixed(u64 z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

/// ±(1 + f) times a power of two, where f has 24 random bits, rounded to nearest, ties to even.
__device__ inline u32 garbage(u64 random)
{
    const u32 fraction = static_cast<u32>(random >> 40);
    const int drop = 24 - MANTISSA;
    const u32 rest = fraction & ((1u << drop) - 1);
    const u32 half = 1u << (drop - 1);
    u32 mantissa = fraction >> drop;
    mantissa += rest > half || (rest == half && (mantissa & 1) != 0);
    const u32 sign = static_cast<u32>(random & 1) << (8 * sizeof(Bits) - 1);
    return sign | ((static_cast<u32>(EXPONENT) << MANTISSA) + mantissa);
}

extern "C" __global__ void __launch_bounds__(256) poison(Bits *target, i64 elements, i64 key, i64 isGarbage, i64 word)
{
    const u64 stream = mixed(mixed(static_cast<u64>(key)) + 3 * 0xd1342543de82ef95ull);
    const i64 begin = static_cast<i64>(blockIdx.x) * ELEMENTS_OF_BLOCK;
    const i64 end = begin + ELEMENTS_OF_BLOCK < elements ? begin + ELEMENTS_OF_BLOCK : elements;
    for (i64 i = begin + threadIdx.x; i < end; i += 256) {
        if (word != 0) {
            target[i] = static_cast<Bits>(static_cast<u32>(word) >> (8 * (i * sizeof(Bits) % sizeof(u32))));
            continue;
        }
        const i64 piece = i * static_cast<i64>(sizeof(Bits)) / PIECE * PIECE;
        const u64 counter = static_cast<u64>(piece + i - piece / static_cast<i64>(sizeof(Bits)));
        const u64 random = mixed(stream + counter * 0x9e3779b97f4a7c15ull);
        target[i] = static_cast<Bits>(isGarbage != 0 ? garbage(random) : (static_cast<u32>(random) | QUIET));
    }
}
