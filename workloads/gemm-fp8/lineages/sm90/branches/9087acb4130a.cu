/*klineage
surface = "cuda"

[[tunable]]
name = "STAGES"
default = 4
values = [2, 3, 4]

[[tensormap]]
name = "tm_x"
tensor = "x"
box = [128, 128]
swizzle = "128B"
l2_promotion = "256B"

[[tensormap]]
name = "tm_weight"
tensor = "weight"
box = [256, 128]
swizzle = "128B"
l2_promotion = "256B"

[[launch]]
kernel = "gemm"
grid = ["ceil_div(N, 256)", "ceil_div(M, 128)"]
block = ["256"]
shared = "STAGES * (128 + 256) * 128 + 1024"
args = ["tm_x", "tm_weight", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[M,N] = x[M,K] · weight[N,K]ᵀ, e4m3 in, bf16 out, fp32 sums.
//
// One thread asks the copy engine (TMA) for whole slabs; the other 255 compute no addresses and no
// bounds any more. The 128-byte swizzle of the tensor map is the one that wgmma's descriptors name, so
// the tensor cores read both operands straight from the slab: each of two warpgroups holds 64 × 256 sums
// and multiplies with m64n256k32. A slab's products run on while the stage before is filled again.
// The engine fills what lies outside the matrix with zeros and reports the bytes of a slab to that
// stage's mbarrier.
// Needs K % 16 == 0 for the engine's row pitch, and N % 8 == 0 for stores of two numbers.

#include <cuda_bf16.h>

constexpr int BM = 128, BN = 256, BK = 128;
constexpr int WM = 64;      // rows of a warpgroup; its columns are all BN
constexpr int TN = BN / 8;
constexpr int STEP = 32;    // depth of one wgmma, in numbers and bytes
constexpr unsigned X_BYTES = BM * BK, W_BYTES = BN * BK, STAGE_BYTES = X_BYTES + W_BYTES;

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

// Names an operand to wgmma: K-major, 128-byte swizzle, 1024 bytes from eight rows to the next eight.
// Along K the address just moves on within the 128 bytes of a row.
__device__ __forceinline__ unsigned long long describe(unsigned address)
{
    return static_cast<unsigned long long>((address & 0x3FFFFu) >> 4)
           | (1ull << 16)                 // leading offset: not used with a swizzle
           | (static_cast<unsigned long long>(1024 >> 4) << 32)
           | (1ull << 62);
}

// Before the first product, and after registers of the sums were written otherwise.
__device__ __forceinline__ void fenceProducts()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void commitProducts()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// Waits until at most `PENDING` groups of this warpgroup's products are under way.
template <int PENDING>
__device__ __forceinline__ void waitProducts()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(PENDING) : "memory");
}

// Keeps the compiler from moving uses of the sums across this point.
__device__ __forceinline__ void pinSums(float (&d)[TN][4])
{
#pragma unroll
    for (int j = 0; j < TN; ++j) {
#pragma unroll
        for (int e = 0; e < 4; ++e)
            asm volatile("" : "+f"(d[j][e]) :: "memory");
    }
}

#define SUMS(j) "+f"(d[j][0]), "+f"(d[j][1]), "+f"(d[j][2]), "+f"(d[j][3])

// d[64 × 256] += x[64 × 32] · w[256 × 32]ᵀ, by a whole warpgroup, asynchronously.
__device__ __forceinline__ void multiply(float (&d)[TN][4], unsigned long long x, unsigned long long w)
{
    asm volatile("{\n"
                 ".reg .pred adds;\n"
                 "setp.ne.b32 adds, %130, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n256k32.f32.e4m3.e4m3 "
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
                 "%128, %129, adds, 1, 1;\n"
                 "}"
                 : SUMS(0), SUMS(1), SUMS(2), SUMS(3), SUMS(4), SUMS(5), SUMS(6), SUMS(7),
                   SUMS(8), SUMS(9), SUMS(10), SUMS(11), SUMS(12), SUMS(13), SUMS(14), SUMS(15),
                   SUMS(16), SUMS(17), SUMS(18), SUMS(19), SUMS(20), SUMS(21), SUMS(22), SUMS(23),
                   SUMS(24), SUMS(25), SUMS(26), SUMS(27), SUMS(28), SUMS(29), SUMS(30), SUMS(31)
                 : "l"(x), "l"(w), "r"(1));
}

#undef SUMS

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
    // The same for a whole warp, and the compiler may know it.
    const int warpgroup = __shfl_sync(0xFFFFFFFFu, thread / 128, 0);
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
    pinSums(acc);
#pragma unroll 1
    for (int slab = 0; slab < slabs; ++slab) {
        waitPhase(full + 8 * (slab % STAGES), slab / STAGES % 2);

        const unsigned xs = ring + slab % STAGES * STAGE_BYTES;
        const unsigned long long x = describe(xs + warpgroup * (WM * BK));
        const unsigned long long w = describe(xs + X_BYTES);
        fenceProducts();
#pragma unroll
        for (int k = 0; k < BK / STEP; ++k)
            multiply(acc, x + k * (STEP / 16), w + k * (STEP / 16));
        commitProducts();

        // This slab's products run on. Everyone's of the slab before it are done: its stage can be
        // filled again.
        waitProducts<1>();
        __syncthreads();
        fetch(slab + STAGES - 1);
    }
    waitProducts<0>();
    pinSums(acc);

    // Each warp holds 16 rows. In a 16 × 8 tile a lane holds two neighbouring numbers of row lane / 4,
    // and two of the row 8 below.
    const int warpRow = thread / 32 * 16;
#pragma unroll
    for (int j = 0; j < TN; ++j) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int row = row0 + warpRow + 8 * half + lane / 4;
            const int col = col0 + 8 * j + lane % 4 * 2;
            if (row < M && col < N)
                *reinterpret_cast<__nv_bfloat162 *>(y + size_t(row) * N + col) =
                    __floats2bfloat162_rn(acc[j][2 * half], acc[j][2 * half + 1]);
        }
    }
}
