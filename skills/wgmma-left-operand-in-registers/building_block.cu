#include <cuda_bf16.h>

// Describes rows of 128 swizzled bytes to wgmma, 1024 bytes from one group of 8 rows to the next: a right operand whose
// rows are the columns of the result.
__device__ __forceinline__ unsigned long long describeAlong(unsigned address)
{
    return (address & 0x3ffff) >> 4 | 1ull << 16 | 1024ull >> 4 << 32 | 1ull << 62;
}

// One whose rows are summed over, 8192 bytes from 64 columns to the next 64.
__device__ __forceinline__ unsigned long long describeAcross(unsigned address)
{
    return (address & 0x3ffff) >> 4 | 8192ull >> 4 << 16 | 1024ull >> 4 << 32 | 1ull << 62;
}

#define SUMS8(i)                                                                                   \
    "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]),    \
        "+f"(d[i + 6]), "+f"(d[i + 7])
#define SUMS32(i) SUMS8(i), SUMS8(i + 8), SUMS8(i + 16), SUMS8(i + 24)

// d = a * b^T, or d += it; 64 x 16 times 16 x 64, in the background, by a whole warpgroup.
__device__ __forceinline__ void multiplyAlong(float (&d)[32], const unsigned (&a)[4], unsigned long long b,
                                              int accumulate)
{
    asm volatile(
        "{\n"
        ".reg .pred accumulate;\n"
        "setp.ne.b32 accumulate, %37, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        " %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
        "{%32, %33, %34, %35}, %36, accumulate, 1, 1, 0;\n"
        "}"
        : SUMS32(0)
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate));
}

// d += a * b, 64 x 16 times 16 x 128.
__device__ __forceinline__ void multiplyAcross(float (&d)[64], const unsigned (&a)[4], unsigned long long b)
{
    asm volatile(
        "{\n"
        ".reg .pred accumulate;\n"
        "setp.ne.b32 accumulate, 1, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        " %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        " %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        " %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
        "{%64, %65, %66, %67}, %68, accumulate, 1, 1, 1;\n"
        "}"
        : SUMS32(0), SUMS32(32)
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

// Orders what this thread did to registers before the products that follow.
__device__ __forceinline__ void fenceProducts()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void commitProducts()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// Waits until all groups of products but the last PENDING have ended.
template <int PENDING> __device__ __forceinline__ void waitProducts()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(PENDING) : "memory");
}

// Keeps the compiler from moving anything that it does with these registers across this point.
template <int COUNT> __device__ __forceinline__ void hold(float (&r)[COUNT])
{
#pragma unroll
    for (int i = 0; i < COUNT; ++i)
        asm volatile("" : "+f"(r[i]) :: "memory");
}

template <int COUNT> __device__ __forceinline__ void hold(unsigned (&r)[COUNT][4])
{
#pragma unroll
    for (int i = 0; i < 4 * COUNT; ++i)
        asm volatile("" : "+r"(r[i / 4][i % 4]) :: "memory");
}

__device__ __forceinline__ unsigned pack(float low, float high)
{
    const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
    return reinterpret_cast<const unsigned &>(both);
}

// Results of products as left operands of the next.
template <int COUNT> __device__ __forceinline__ void packOperands(unsigned (&to)[COUNT][4], const float (&from)[8 * COUNT])
{
#pragma unroll
    for (int i = 0; i < 4 * COUNT; ++i)
        to[i / 4][i % 4] = pack(from[2 * i], from[2 * i + 1]);
}
