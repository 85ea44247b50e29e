/*klineage
surface = "cuda"

[[launch]]
kernel = "multiply"
grid = ["ceil_div(N, 256)", "ceil_div(M, 128)"]
block = ["384"]
shared = "4 * 49152 + 1088"
args = ["tm_a", "tm_b", "bias", "y", "int M", "int N", "int K"]
[[tensormap]]
name = "tm_a"
tensor = "a"
box = [128, 64]
swizzle = "128B"
[[tensormap]]
name = "tm_b"
tensor = "b"
box = [64, 64]
swizzle = "128B"
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y = a · b + bias: two consumer warpgroups make 128×256 of y with wgmma, 64×256 a warpgroup, from a ring of slabs that a third one fills by TMA;
// what is still missing is an order of blocks that suits the L2 cache, and wide stores (cp.async, ldmatrix: unused).

#include <cuda_bf16.h>

constexpr int TILE_M = 128;
constexpr int TILE_N = 256;
constexpr int DEPTH = 64;           // of K a step: 128 bytes of a row of a
constexpr int PITCH_A = DEPTH + 8;  // 80 bytes: eight rows of ldmatrix fall into different banks
constexpr int PITCH_B = TILE_N + 8; // 272 bytes: likewise
constexpr int THREADS = 256;
constexpr int STAGES = 4, BYTES_A = TILE_M * DEPTH * 2, BYTES = BYTES_A + DEPTH * TILE_N * 2; // of a stage: 16384 of a, 49152 in all

typedef __nv_bfloat16 TileA[TILE_M][PITCH_A]; // [row][k]
typedef __nv_bfloat16 TileB[DEPTH][PITCH_B];  // [k][column]
struct alignas(64) TensorMap { unsigned long long opaque[16]; };

__device__ __forceinline__ unsigned shared_address(const void *p)
{
    return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

__device__ __forceinline__ void wait_phase(unsigned barrier, unsigned parity)
{
    asm volatile("{\n.reg .pred ended;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 ended, [%0], %1;\n@!ended bra again;\n}\n"
                 : : "r"(barrier), "r"(parity) : "memory");
}

__device__ __forceinline__ void copy_box(unsigned to, const TensorMap &map, int x, int y, unsigned barrier)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];\n"
                 : : "r"(to), "l"(&map), "r"(x), "r"(y), "r"(barrier) : "memory");
}

// Sixteen bytes to shared memory; zeros, and no read of global memory, where `inside` is false.
__device__ __forceinline__ void copy_async(void *to, const void *from, bool inside)
{
    const int bytes = inside ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" : : "r"(shared_address(to)), "l"(from), "r"(bytes) : "memory");
}

__device__ __forceinline__ void load_matrices(unsigned (&r)[4], const void *p)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared_address(p))
                 : "memory");
}

__device__ __forceinline__ void load_matrices_transposed(unsigned (&r)[4], const void *p)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared_address(p))
                 : "memory");
}

#define SUMS4(s) "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3])
#define SUMS16(d, i) SUMS4(d[i]), SUMS4(d[i + 1]), SUMS4(d[i + 2]), SUMS4(d[i + 3])
#define SUMS(d) SUMS16(d, 0), SUMS16(d, 4), SUMS16(d, 8), SUMS16(d, 12), SUMS16(d, 16), SUMS16(d, 20), SUMS16(d, 24), SUMS16(d, 28)
__device__ __forceinline__ void multiply_add(float (&d)[32][4], unsigned a, unsigned b)
{
    const unsigned long long rows = 1ull << 62 | 64ull << 32; // of 128 swizzled bytes, 8 every 1024 bytes; b: 64 columns every 8192 bytes
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, 1, 0;\nwgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {"
                 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, "
                 "%26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, "
                 "%52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, "
                 "%78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, %100, %101, %102, %103, "
                 "%104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, %128, %129, p, 1, 1, 0, 1;\n}\n"
                 : SUMS(d)
                 : "l"(rows | (a & 0x3ffff) >> 4), "l"(rows | 512ull << 16 | (b & 0x3ffff) >> 4));
}

// Starts the copies of one step. N and K are multiples of 8 (the workload says so): 8 neighbours are aligned, and inside or
// outside together. Where they are outside, the address is that of the tensor, which is valid and not read.
__device__ __forceinline__ void start_copies(TileA &tile_a, TileB &tile_b, const __nv_bfloat16 *a, const __nv_bfloat16 *b, int row0,
                                             int col0, int k0, int M, int N, int K)
{
#pragma unroll
    for (int i = 0; i < TILE_M * DEPTH / 8 / THREADS; ++i) {
        const int c = i * THREADS + int(threadIdx.x);
        const int r = c / (DEPTH / 8);
        const int k = c % (DEPTH / 8) * 8;
        const bool inside = row0 + r < M && k0 + k < K;
        copy_async(&tile_a[r][k], inside ? a + size_t(row0 + r) * K + k0 + k : a, inside);
    }
#pragma unroll
    for (int i = 0; i < DEPTH * TILE_N / 8 / THREADS; ++i) {
        const int c = i * THREADS + int(threadIdx.x);
        const int k = c / (TILE_N / 8);
        const int n = c % (TILE_N / 8) * 8;
        const bool inside = k0 + k < K && col0 + n < N;
        copy_async(&tile_b[k][n], inside ? b + size_t(k0 + k) * N + col0 + n : b, inside);
    }
}

extern "C" __global__ void __launch_bounds__(384, 1)
multiply(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b, const __nv_bfloat16 *__restrict__ bias,
         __nv_bfloat16 *__restrict__ y, int M, int N, int K)
{
    extern __shared__ __align__(1024) unsigned char dynamic[]; // the stages, then two barriers for each: full ones, empty ones
    const unsigned ring = (shared_address(dynamic) + 1023) / 1024 * 1024, full = ring + STAGES * BYTES, empty = full + STAGES * 8;

    const int lane = threadIdx.x % 32;
    const int warp = __shfl_sync(0xffffffffu, int(threadIdx.x) / 32, 0); // 0 to 7 consume, 8 to 11 are the producer's warpgroup
    const int warp_row = warp * 16; // of the 64 of its warpgroup
    const int warp_col = 0;
    const int row0 = blockIdx.y * TILE_M;
    const int col0 = blockIdx.x * TILE_N;

    const int steps = (K + DEPTH - 1) / DEPTH;
    if (int(threadIdx.x) < 2 * STAGES) // full: the producer's arrival; empty: one of each of the 8 warps that consume
        asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\nfence.mbarrier_init.release.cluster;\n"
                     : : "r"(full + 8 * threadIdx.x), "r"(int(threadIdx.x) < STAGES ? 1 : THREADS / 32) : "memory");
    __syncthreads(); // the last one of the whole block

    if (warp >= THREADS / 32) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;\n" : : : "memory");
        if (threadIdx.x == THREADS)
            for (int slab = 0; slab < steps; ++slab) {
                const unsigned to = ring + slab % STAGES * BYTES, barrier = full + slab % STAGES * 8;
                wait_phase(empty + slab % STAGES * 8, slab / STAGES % 2 ^ 1); // in the first round the phase before: passes at once
                asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n" : : "r"(barrier), "r"(BYTES) : "memory");
                copy_box(to, map_a, slab * DEPTH, row0, barrier);
                for (int n = 0; n < TILE_N; n += 64)
                    copy_box(to + BYTES_A + n * DEPTH * 2, map_b, col0 + n, slab * DEPTH, barrier);
            }
        return; // the consumers wait for every slab, so that no copy is left when the block ends
    }
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;\n" : : : "memory");

    float acc[1][32][4];
#pragma unroll
    for (int i = 0; i < 1; ++i)
#pragma unroll
        for (int j = 0; j < 32; ++j)
#pragma unroll
            for (int e = 0; e < 4; ++e)
                acc[i][j][e] = 0.0f;

    for (int step = 0; step < steps; ++step) {
        const int now = step % STAGES;
        wait_phase(full + now * 8, step / STAGES % 2);
        asm volatile("wgmma.fence.sync.aligned;\n" : : : "memory");

#pragma unroll
        for (int k = 0; k < DEPTH; k += 16) {
            multiply_add(acc[0], ring + now * BYTES + warp / 4 * 8192 + k * 2, ring + now * BYTES + BYTES_A + k * 128);
        }
        asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 1;\n" : : : "memory"); // the step before has ended
        if (lane == 0 && step > 0) // its stage may be filled again, once all 8 warps have said so
            asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];\n" : : "r"(empty + (step - 1) % STAGES * 8) : "memory");
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;\n" : SUMS(acc[0]) : : "memory");

#pragma unroll
    for (int j = 0; j < 32; ++j) {
        const int col = col0 + warp_col + j * 8 + lane % 4 * 2; // even, and N is: two columns are in or out together
        if (col >= N)
            continue;
        const float add0 = __bfloat162float(bias[col]);
        const float add1 = __bfloat162float(bias[col + 1]);
#pragma unroll
        for (int i = 0; i < 1; ++i) {
            const int row = row0 + warp_row + i * 16 + lane / 4;
            if (row < M)
                *reinterpret_cast<__nv_bfloat162 *>(y + size_t(row) * N + col) =
                    __floats2bfloat162_rn(acc[i][j][0] + add0, acc[i][j][1] + add1);
            if (row + 8 < M)
                *reinterpret_cast<__nv_bfloat162 *>(y + size_t(row + 8) * N + col) =
                    __floats2bfloat162_rn(acc[i][j][2] + add0, acc[i][j][3] + add1);
        }
    }
}
