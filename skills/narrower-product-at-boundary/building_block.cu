#define SUMS8(d, i)                                                                                \
    "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]),    \
        "+f"(d[i + 6]), "+f"(d[i + 7])

// 64 rows by 64 columns, both operands from shared memory.
__device__ __forceinline__ void multiplyHalf(float (&d)[32], unsigned long long a, unsigned long long b, int accumulate)
{
    asm volatile("{\n"
                 ".reg .pred accumulate;\n"
                 "setp.ne.b32 accumulate, %34, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}"
                 ", %32, %33, accumulate, 1, 1, 0, 0;\n"
                 "}" : SUMS8(d, 0), SUMS8(d, 8), SUMS8(d, 16), SUMS8(d, 24) : "l"(a), "l"(b), "r"(accumulate));
}

// The sums of rows `limit` and on of a lane's columns are masked; its second row is 8 below.
template <int N>
__device__ __forceinline__ void mask(float (&score)[N], int limit)
{
#pragma unroll
    for (int i = 0; i < N; ++i)
        if (i / 4 * 8 + i % 2 >= limit + i / 2 % 2 * 8)
            score[i] = __int_as_float(0xff800000);
}
