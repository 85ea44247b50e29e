// SPDX-License-Identifier: GPL-3.0-or-later
// Put before the other kernels of this folder. Elements of every floating-point type of at most 32 bits, as the doubles that they
// are exactly. Types: 0 f32 and tf32, 1 f16, 2 bf16, 3 f8e4m3, 4 f8e5m2. Plain C++ besides three words of CUDA, so that the kernels
// can be run on a CPU by the tests.
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned u32;
typedef long long i64;

#if WIDE
typedef double Out;
#else
typedef float Out;
#endif

__device__ inline double fromHalf(u32 bits)
{
    const u32 sign = (bits & 0x8000u) << 16;
    const u32 magnitude = (bits & 0x7fffu) << 13;
    if (magnitude >= 0x0f800000u) // infinite or NaN
        return __uint_as_float(sign | 0x7f800000u | magnitude);
    return __uint_as_float(sign | magnitude) * 0x1p112f;
}

__device__ inline double fromE4m3(u32 bits)
{
    const u32 sign = (bits & 0x80u) << 24;
    const u32 magnitude = bits & 0x7fu;
    if (magnitude == 0x7fu)
        return __uint_as_float(sign | 0x7fc00000u);
    return __uint_as_float(sign | magnitude << 20) * 0x1p120f;
}

template <int Type>
__device__ inline double element(const void *data, i64 i)
{
    if (Type == 1)
        return fromHalf(static_cast<const u16 *>(data)[i]);
    if (Type == 2)
        return __uint_as_float(static_cast<u32>(static_cast<const u16 *>(data)[i]) << 16);
    if (Type == 3)
        return fromE4m3(static_cast<const u8 *>(data)[i]);
    if (Type == 4)
        return fromHalf(static_cast<u32>(static_cast<const u8 *>(data)[i]) << 8);
    return static_cast<const float *>(data)[i];
}
