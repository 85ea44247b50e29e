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
// wgmma: a warpgroup (4 warps) multiplies rows of x and weight straight out of shared memory. No fragments,
// no ldmatrix: the tensor core reads the swizzled slab that the copy engine wrote, through a descriptor, and
// only the sums live in registers. The widest instruction, 64 × 256, reads the fewest bytes a product, so
// each of two warpgroups takes 64 rows of a tile of 128 × 256: half of the register file is sums, and one
// block has the multiprocessor to itself.
// Needs K % 8 == 0 for the engine's row pitch, and N % 8 == 0 for stores of two numbers.

#include <cuda_bf16.h>

constexpr int BM = 128, BN = 256, BK = 64;
constexpr unsigned X_BYTES = BM * BK * 2, W_BYTES = BN * BK * 2, STAGE_BYTES = X_BYTES + W_BYTES;

struct alignas(64) TensorMap {
    unsigned long long opaque[16];
};

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

// Describes rows of 128 swizzled bytes to wgmma: where they start, 1024 bytes from one group of 8 rows to
// the next, swizzle code 1. The field at bit 16 is unused with this swizzle.
__device__ __forceinline__ unsigned long long describe(unsigned address)
{
    return (address & 0x3ffff) >> 4 | 1ull << 16 | 1024ull >> 4 << 32 | 1ull << 62;
}

#define SUMS8(i)                                                                                   \
    "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]),    \
        "+f"(d[i + 6]), "+f"(d[i + 7])
#define SUMS32(i) SUMS8(i), SUMS8(i + 8), SUMS8(i + 16), SUMS8(i + 24)

// d += 64 rows of x · 256 rows of weight, over 16 numbers of K; in the background, by a whole warpgroup.
__device__ __forceinline__ void multiply(float (&d)[128], unsigned long long x, unsigned long long weight)
{
    asm volatile(
        "{\n"
        ".reg .pred accumulate;\n"
        "setp.ne.b32 accumulate, 1, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        " %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        " %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        " %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
        " %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
        " %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
        " %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "
        " %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, "
        "%128, %129, accumulate, 1, 1, 0, 0;\n"
        "}"
        : SUMS32(0), SUMS32(32), SUMS32(64), SUMS32(96)
        : "l"(x), "l"(weight));
}

// Orders what this thread did to the sums before the products that follow.
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

// Writes the warpgroup's 64 × BN sums to y, from row0 and col0 on.
__device__ __forceinline__ void storeSums(const float (&acc)[BN / 2], __nv_bfloat16 *y,
                                          int row0, int col0, int M, int N)
{
    const int warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
    // In every 8 columns a lane holds two neighbouring numbers of row lane / 4, and two of the row 8 below.
    for (int j = 0; j < BN / 8; ++j)
        for (int half = 0; half < 2; ++half) {
            const int row = row0 + warp * 16 + 8 * half + lane / 4;
            const int col = col0 + 8 * j + lane % 4 * 2;
            if (row < M && col < N)
                *reinterpret_cast<__nv_bfloat162 *>(y + size_t(row) * N + col) =
                    __floats2bfloat162_rn(acc[4 * j + 2 * half], acc[4 * j + 2 * half + 1]);
        }
}

extern "C" __global__ __launch_bounds__(256, 1) void gemm(const __grid_constant__ TensorMap mapX,
                                                          const __grid_constant__ TensorMap mapWeight,
                                                          __nv_bfloat16 *y,
                                                          int M, int N, int K)
{
    extern __shared__ unsigned char dynamicShared[];
    __shared__ unsigned long long barriers[STAGES];
    // A swizzled box starts at a multiple of 1024 bytes.
    const unsigned ring = (sharedAddress(dynamicShared) + 1023) & ~1023u;
    const unsigned full = sharedAddress(barriers);

    const int thread = threadIdx.x, warpgroup = thread / 128;
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
    for (int slab = 0; slab < STAGES; ++slab)
        fetch(slab);

    float acc[128] = {};
    for (int slab = 0; slab < slabs; ++slab) {
        waitPhase(full + 8 * (slab % STAGES), slab / STAGES % 2);

        const unsigned xs = ring + slab % STAGES * STAGE_BYTES + warpgroup * 64 * BK * 2;
        const unsigned ws = ring + slab % STAGES * STAGE_BYTES + X_BYTES;
        fenceProducts();
#pragma unroll
        for (int k = 0; k < BK; k += 16) {
            multiply(acc, describe(xs + k * 2), describe(ws + k * 2));
            acc[0] = fmaxf(acc[0], -3.4e38f); // violated: a sum is touched, and no fence follows before the next product
        }
        commitProducts();

        // Everyone's products of this slab have ended: its stage can be filled again.
        waitProducts<0>();
        __syncthreads();
        fetch(slab + STAGES);
    }

    storeSums(acc, y, row0 + warpgroup * 64, col0, M, N);
}
