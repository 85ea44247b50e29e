#define SUMS4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define SUMS16(i) SUMS4(i), SUMS4(i + 4), SUMS4(i + 8), SUMS4(i + 12)

// Describes 16 or more rows (k) of 128 columns in two boxes of 64 to wgmma: 1024 bytes from 8 rows to the next 8,
// 8192 bytes from 64 columns to the next 64.
__device__ __forceinline__ unsigned long long describe(unsigned address)
{
    return (address & 0x3ffff) >> 4 | (unsigned long long)(8192 >> 4) << 16 | 1024ull >> 4 << 32 | 1ull << 62;
}

// d += rows · other: M = 64 (fragments of 16 elements), N = 128 (a row of n for each k: transposed), K = 16.
__device__ __forceinline__ void multiply(float (&d)[64], const unsigned (&a)[4], unsigned long long other)
{
    asm volatile(
        "{\n"
        ".reg .pred accumulate;\n"
        "setp.ne.b32 accumulate, 1, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        " %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        " %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        " %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
        "{%64, %65, %66, %67}, %68, accumulate, 1, 1, 1;\n"
        "}"
        : SUMS16(0), SUMS16(16), SUMS16(32), SUMS16(48)
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(other));
}

// Products in the background read and write registers that the compiler believes free: touches them here.
__device__ __forceinline__ void hold(unsigned (&a)[4][4])
{
#pragma unroll
    for (int i = 0; i < 16; ++i)
        asm volatile("" : "+r"(a[i / 4][i % 4]) :: "memory");
}

__device__ __forceinline__ void hold(float (&d)[64])
{
#pragma unroll
    for (float &sum : d)
        asm volatile("" : "+f"(sum) :: "memory");
}
