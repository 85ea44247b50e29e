/*klineage
surface = "cuda"

[[tunable]]
name = "STAGES"
default = 4
values = [2, 3, 4]

[[tensormap]]
name = "tm_x"
tensor = "x"
box = [128, 64]
swizzle = "128B"
l2_promotion = "256B"

[[tensormap]]
name = "tm_weight"
tensor = "weight"
box = [256, 64]
swizzle = "128B"
l2_promotion = "256B"

[[launch]]
kernel = "gemm"
grid = ["ceil_div(N, 256)", "ceil_div(M, 128)"]
block = ["256"]
shared = "STAGES * (128 + 256) * 64 * 2 + 1024"
args = ["tm_x", "tm_weight", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[M,N] = x[M,K] · weight[N,K]ᵀ, bf16 in and out, fp32 sums.
//
// One thread asks the copy engine (TMA) for whole slabs; the other 255 compute no addresses and no
// bounds any more. The 128-byte swizzle of the tensor map is one of the layouts that wgmma reads, so
// each of the two warpgroups multiplies straight from the slab, 64 × 256 sums a warpgroup; no operand
// passes through registers. The products of one slab are in flight while those of the next are issued.
// The engine fills what lies outside the matrix with zeros and reports the bytes of a slab to that
// stage's mbarrier.
// Needs K % 8 == 0 for the engine's row pitch, and N % 8 == 0 for stores of two numbers.

#include <cuda_bf16.h>

constexpr int BM = 128, BN = 256, BK = 64;
constexpr int WM = 64; // rows of a warpgroup; it has all BN columns
constexpr int TN = BN / 8;
constexpr unsigned X_BYTES = BM * BK * 2, W_BYTES = BN * BK * 2, STAGE_BYTES = X_BYTES + W_BYTES;

struct alignas(64) TensorMap {
    unsigned long long opaque[16];
};

// Shared memory goes by its 32-bit address: that is what the copy engine's instructions take.
__device__ __forceinline__ unsigned sharedAddress(const void *pointer)
{
    return unsigned(__cvta_generic_to_shared(pointer));
}

__device__ __forceinline__ void initBarrier(unsigned barrier, int arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(barrier), "r"(arrivals) : "memory");
}

// Arrives, and lets the phase end only after `bytes` have been copied.
__device__ __forceinline__ void expectBytes(unsigned barrier, unsigned bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                 :: "r"(barrier), "r"(bytes) : "memory");
}

// Waits for the end of the phase with this parity (0 for the first one).
__device__ __forceinline__ void waitPhase(unsigned barrier, unsigned parity)
{
    unsigned done;
    do {
        asm volatile("{\n"
                     ".reg .pred ended;\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 ended, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, ended;\n"
                     "}" : "=r"(done) : "r"(barrier), "r"(parity) : "memory");
    } while (!done);
}

// Starts the copy of one box, from column k of row `row`.
__device__ __forceinline__ void copyBox(unsigned to, const TensorMap &map, int k, int row, unsigned barrier)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3}], [%4];"
                 :: "r"(to), "l"(&map), "r"(k), "r"(row), "r"(barrier) : "memory");
}

// Descriptor of a K-major operand with the 128-byte swizzle: rows of 128 bytes, groups of 8 rows 1024 bytes
// apart. (The leading offset has no meaning here.) 16 numbers further along K are 32 bytes: 2 in its units.
__device__ __forceinline__ unsigned long long describe(unsigned address)
{
    return (unsigned long long)((address & 0x3ffff) >> 4) | 1ull << 16 | (unsigned long long)(1024 >> 4) << 32
           | 1ull << 62;
}

// Before the first product of a batch: the sums' registers are as the products shall find them.
__device__ __forceinline__ void beginProducts()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void commitProducts()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// Waits until at most PENDING of the committed batches are unfinished.
template <int PENDING>
__device__ __forceinline__ void waitProducts()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(PENDING) : "memory");
}

#define SUMS4(j) "+f"(d[j][0]), "+f"(d[j][1]), "+f"(d[j][2]), "+f"(d[j][3])
#define SUMS16(j) SUMS4(j), SUMS4(j + 1), SUMS4(j + 2), SUMS4(j + 3)

// d[64][256] += a[64][16] · b[256][16]ᵀ, by the whole warpgroup.
__device__ __forceinline__ void multiply(float (&d)[TN][4], unsigned long long a, unsigned long long b)
{
    asm volatile("{\n"
                 ".reg .pred accumulate;\n"
                 "setp.ne.b32 accumulate, %130, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, "
                 "%8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, "
                 "%24, %25, %26, %27, %28, %29, %30, %31, "
                 "%32, %33, %34, %35, %36, %37, %38, %39, "
                 "%40, %41, %42, %43, %44, %45, %46, %47, "
                 "%48, %49, %50, %51, %52, %53, %54, %55, "
                 "%56, %57, %58, %59, %60, %61, %62, %63, "
                 "%64, %65, %66, %67, %68, %69, %70, %71, "
                 "%72, %73, %74, %75, %76, %77, %78, %79, "
                 "%80, %81, %82, %83, %84, %85, %86, %87, "
                 "%88, %89, %90, %91, %92, %93, %94, %95, "
                 "%96, %97, %98, %99, %100, %101, %102, %103, "
                 "%104, %105, %106, %107, %108, %109, %110, %111, "
                 "%112, %113, %114, %115, %116, %117, %118, %119, "
                 "%120, %121, %122, %123, %124, %125, %126, %127}, "
                 "%128, %129, accumulate, 1, 1, 0, 0;\n"
                 "}"
                 : SUMS16(0), SUMS16(4), SUMS16(8), SUMS16(12), SUMS16(16), SUMS16(20), SUMS16(24), SUMS16(28)
                 : "l"(a), "l"(b), "n"(1));
}

// No use of the sums moves to before this point.
__device__ __forceinline__ void pinSums(float (&d)[TN][4])
{
#pragma unroll
    for (int j = 0; j < TN; ++j)
        asm volatile("" : SUMS4(j) :: "memory");
}

extern "C" __global__ __launch_bounds__(256, 1) void gemm(const __grid_constant__ TensorMap mapX,
                                                          const __grid_constant__ TensorMap mapWeight,
                                                          __nv_bfloat16 *y, int M, int N, int K)
{
    extern __shared__ unsigned char dynamicShared[];
    __shared__ unsigned long long barriers[STAGES];
    // A swizzled box starts at a multiple of 1024 bytes.
    const unsigned ring = (sharedAddress(dynamicShared) + 1023) & ~1023u;
    const unsigned full = sharedAddress(barriers);

    const int thread = threadIdx.x, lane = thread % 32;
    const int group = __shfl_sync(0xffffffffu, thread / 128, 0); // the same in all of a warp, and known to be
    const int row0 = blockIdx.y * BM, col0 = blockIdx.x * BN;
    const int slabs = (K + BK - 1) / BK;

    if (thread == 0) {
        for (int stage = 0; stage < STAGES; ++stage)
            initBarrier(full + 8 * stage, 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); // the copy engine sees them too
    }
    __syncthreads();

    const auto fetch = [&](int slab) {
        if (thread == 0 && slab < slabs) {
            const int stage = slab % STAGES;
            const unsigned xs = ring + stage * STAGE_BYTES;
            expectBytes(full + 8 * stage, STAGE_BYTES);
            copyBox(xs, mapX, slab * BK, row0, full + 8 * stage);
            copyBox(xs + X_BYTES, mapWeight, slab * BK, col0, full + 8 * stage);
        }
    };
    for (int slab = 0; slab < STAGES - 1; ++slab)
        fetch(slab);

    float acc[TN][4] = {};
#pragma unroll 1
    for (int slab = 0; slab < slabs; ++slab) {
        waitPhase(full + 8 * (slab % STAGES), slab / STAGES % 2);

        const unsigned xs = ring + slab % STAGES * STAGE_BYTES;
        const unsigned long long a = describe(xs + group * (WM * BK * 2));
        const unsigned long long b = describe(xs + X_BYTES);
        beginProducts();
#pragma unroll
        for (int c = 0; c < BK / 16; ++c)
            multiply(acc, a + 2 * c, b + 2 * c);
        commitProducts();

        // This slab's products are under way; those of the slab before it are done, and after the
        // barrier they are so for everyone: its stage can be filled again.
        waitProducts<1>();
        __syncthreads();
        fetch(slab + STAGES - 1);
    }
    waitProducts<0>();
    pinSums(acc);

    // Warp w of a warpgroup has its rows 16w … 16w+15. In each of their 16 × 8 tiles a lane holds two
    // neighbouring numbers of row lane / 4, and two of the row 8 below.
#pragma unroll
    for (int j = 0; j < TN; ++j)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int row = row0 + group * WM + thread / 32 % 4 * 16 + 8 * half + lane / 4;
            const int col = col0 + 8 * j + lane % 4 * 2;
            if (row < M && col < N)
                *reinterpret_cast<__nv_bfloat162 *>(y + size_t(row) * N + col) =
                    __floats2bfloat162_rn(acc[j][2 * half], acc[j][2 * half + 1]);
        }
}
