#define SUMS4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define SUMS20(i) SUMS4(i), SUMS4(i + 4), SUMS4(i + 8), SUMS4(i + 12), SUMS4(i + 16)

// d += rows · columns: M = 64 (a row of m for each k: transposed), N = 200 (a row of k for each n), K = 16.
__device__ __forceinline__ void multiply(float (&d)[100], unsigned long long rows,
                                         unsigned long long columns)
{
    asm volatile(
        "{\n"
        ".reg .pred accumulate;\n"
        "setp.ne.b32 accumulate, 1, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n200k16.f32.f16.f16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        " %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        " %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        " %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
        " %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
        " %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
        " %96, %97, %98, %99}, "
        "%100, %101, accumulate, 1, 1, 1, 0;\n"
        "}"
        : SUMS20(0), SUMS20(20), SUMS20(40), SUMS20(60), SUMS20(80)
        : "l"(rows), "l"(columns));
}
