/*klineage
surface = "cuda"

[[launch]]
kernel = "multiply"
when = "N < 256"
grid = ["ceil_div(N, 128)", "ceil_div(M, 128)"]
block = ["256"]
args = ["a", "b", "bias", "y", "int M", "int N", "int K"]
[[launch]]
kernel = "multiply_wide"
when = "N >= 256"
grid = ["2 * min(ceil_div(sm_count - 1, 2), ceil_div(M, 256) * ceil_div(N, 256))"]
cluster = ["2"]
block = ["384"]
shared = "197632"
args = ["tm_a", "tm_b", "bias", "y", "int M", "int N", "int K"]
[[tensormap]]
name = "tm_a"
tensor = "a"
box = [128, 64]
swizzle = "128B"
l2_promotion = "256B"
[[tensormap]]
name = "tm_b"
tensor = "b"
box = [64, 64]
swizzle = "128B"
l2_promotion = "256B"
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y = a · b + bias: a block of eight warps makes 128×128 of y with mma.sync, 64×32 a warp, while cp.async fills the other of two
// buffers, where y is narrow; elsewhere a cluster of two blocks makes 256×256 with wgmma, fed by TMA through a ring of four stages.

#include <cuda_bf16.h>

constexpr int TILE_M = 128;
constexpr int TILE_N = 128;
constexpr int DEPTH = 32;           // of K a step
constexpr int PITCH_A = DEPTH + 8;  // 80 bytes: eight rows of ldmatrix fall into different banks
constexpr int PITCH_B = TILE_N + 8; // 272 bytes: likewise
constexpr int THREADS = 256;

typedef __nv_bfloat16 TileA[TILE_M][PITCH_A]; // [row][k]
typedef __nv_bfloat16 TileB[DEPTH][PITCH_B];  // [k][column]

__device__ __forceinline__ unsigned shared_address(const void *p)
{
    return static_cast<unsigned>(__cvta_generic_to_shared(p));
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

__device__ __forceinline__ void multiply_add(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};\n"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
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

extern "C" __global__ void __launch_bounds__(256)
multiply(const __nv_bfloat16 *a, const __nv_bfloat16 *b, const __nv_bfloat16 *bias, __nv_bfloat16 *y, int M, int N, int K)
{
    __shared__ __align__(16) TileA tile_a[2]; // 20480 bytes
    __shared__ __align__(16) TileB tile_b[2]; // 17408 bytes

    const int lane = threadIdx.x % 32;
    const int warp = threadIdx.x / 32;
    const int warp_row = (warp / 4) * 64;
    const int warp_col = (warp % 4) * 32;
    const int row0 = blockIdx.y * TILE_M;
    const int col0 = blockIdx.x * TILE_N;

    float acc[4][4][4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j)
#pragma unroll
            for (int e = 0; e < 4; ++e)
                acc[i][j][e] = 0.0f;

    const int steps = (K + DEPTH - 1) / DEPTH;
    start_copies(tile_a[0], tile_b[0], a, b, row0, col0, 0, M, N, K);
    asm volatile("cp.async.commit_group;\n" : : : "memory");

    for (int step = 0; step < steps; ++step) {
        const int now = step % 2;
        if (step + 1 < steps)
            start_copies(tile_a[1 - now], tile_b[1 - now], a, b, row0, col0, (step + 1) * DEPTH, M, N, K);
        asm volatile("cp.async.commit_group;\n" : : : "memory"); // empty after the last step, so that the count below holds
        asm volatile("cp.async.wait_group 1;\n" : : : "memory");
        __syncthreads();

#pragma unroll
        for (int k = 0; k < DEPTH; k += 16) {
            unsigned fa[4][4]; // 16 rows × 16 of K each
            unsigned fb[2][4]; // 16 of K × 16 columns each: {0, 1} the left 8 columns, {2, 3} the right 8
#pragma unroll
            for (int i = 0; i < 4; ++i)
                load_matrices(fa[i], &tile_a[now][warp_row + i * 16 + lane % 16][k + lane / 16 * 8]);
#pragma unroll
            for (int j = 0; j < 2; ++j)
                load_matrices_transposed(fb[j], &tile_b[now][k + lane % 16][warp_col + j * 16 + lane / 16 * 8]);
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j)
                    multiply_add(acc[i][j], fa[i], fb[j / 2][j % 2 * 2], fb[j / 2][j % 2 * 2 + 1]);
        }
        __syncthreads(); // the next step's copies overwrite what was just read
    }

#pragma unroll
    for (int j = 0; j < 4; ++j) {
        const int col = col0 + warp_col + j * 8 + lane % 4 * 2; // even, and N is: two columns are in or out together
        if (col >= N)
            continue;
        const float add0 = __bfloat162float(bias[col]);
        const float add1 = __bfloat162float(bias[col + 1]);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
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

struct alignas(64) TensorMap { unsigned long long opaque[16]; };
constexpr unsigned STAGES = 4, STAGE_BYTES = 49152; // 128 rows × 64 of K of a, then four times 64 of K × 64 columns of b
#define REGS4(d, i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define REGS32(d, i) REGS4(d, i), REGS4(d, i + 4), REGS4(d, i + 8), REGS4(d, i + 12), REGS4(d, i + 16), REGS4(d, i + 20), REGS4(d, i + 24), REGS4(d, i + 28)
#define REGS128(d) REGS32(d, 0), REGS32(d, 32), REGS32(d, 64), REGS32(d, 96)
// d (+)= a · b, 64×256×16; both swizzled by 128 bytes, 1024 bytes to the next eight; b is N-major, 8192 bytes to the next 64 columns.
__device__ __forceinline__ void wgmma(float (&d)[128], unsigned a, unsigned b, bool more)
{
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %130, 0;\nwgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {"
                 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
                 "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
                 "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
                 "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, "
                 "%128, %129, p, 1, 1, 0, 1;\n}\n" : REGS128(d) : "l"(0x4000004000010000ull | a >> 4), "l"(0x4000004002000000ull | b >> 4), "r"(int(more)));
}
__device__ __forceinline__ void wait_barrier(unsigned barrier, unsigned parity)
{
    asm volatile("{\n.reg .pred p;\nAGAIN:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@!p bra AGAIN;\n}\n" : : "r"(barrier), "r"(parity) : "memory");
}
__device__ __forceinline__ void release(unsigned barrier, int block)
{
    asm volatile("{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %0, %1;\nmbarrier.arrive.release.cluster.shared::cluster.b64 _, [there];\n}\n" : : "r"(barrier), "r"(block) : "memory");
}

extern "C" __global__ void __launch_bounds__(384, 1)
multiply_wide(const __grid_constant__ TensorMap tm_a, const __grid_constant__ TensorMap tm_b, const __nv_bfloat16 *__restrict__ bias, __nv_bfloat16 *__restrict__ y, int M, int N, int K)
{
    extern __shared__ unsigned char buffer[];
    __shared__ __align__(8) unsigned long long barriers[2 * STAGES]; // the full ones, then the empty ones
    const unsigned data = (shared_address(buffer) + 1023) / 1024 * 1024;
    const unsigned full = shared_address(barriers), empty = full + 8 * STAGES;
    const int lane = threadIdx.x % 32, group = threadIdx.x / 128, rank = blockIdx.x % 2; // group 0 loads, 1 and 2 multiply
    const int rows = (M + 255) / 256, columns = (N + 255) / 256, steps = (K + 63) / 64;
    const int first = blockIdx.x / 2, stride = gridDim.x / 2, turns = (rows * columns - first + stride - 1) / stride;
    const auto place = [&](int turn) { // bands of eight tiles, row by row, so that what runs together shares its operands in L2
        const int tile = first + turn * stride, band = tile / (8 * rows), inner = tile % (8 * rows);
        const int width = min(8, columns - band * 8);
        return make_int2((band * 8 + inner % width) * 256, inner / width * 256);
    };
    if (threadIdx.x < 2 * STAGES) // an empty barrier hears of eight warps of either block
        asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\nfence.mbarrier_init.release.cluster;\n" : : "r"(full + 8 * threadIdx.x), "r"(threadIdx.x < STAGES ? 1u : 16u) : "memory");
    asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;\n" : : : "memory");
    if (group == 0) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;\n");
        for (int n = 0; threadIdx.x == 0 && n < turns * steps; ++n) {
            const int2 at = place(n / steps);
            const unsigned to = data + n % STAGES * STAGE_BYTES, barrier = full + n % STAGES * 8;
            wait_barrier(barrier + 8 * STAGES, (n / STAGES & 1) ^ 1);
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n" : : "r"(barrier), "r"(STAGE_BYTES) : "memory");
            asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];\n" : : "r"(to), "l"(&tm_a), "r"(n % steps * 64), "r"(at.y + rank * 128), "r"(barrier) : "memory");
            for (int i = 2 * rank; i < 2 * rank + 2; ++i) // half of b, to both blocks
                asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;\n" : : "r"(to + 16384 + i * 8192), "l"(&tm_b), "r"(at.x + i * 64), "r"(n % steps * 64), "r"(barrier), "h"((unsigned short)3) : "memory");
        }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;\n");
        float acc[128] = {};
        for (unsigned turn = 0, n = 0; turn < turns; ++turn) {
            const int2 at = place(turn);
            for (int step = 0; step < steps; ++step, ++n) {
                const unsigned from = data + n % STAGES * STAGE_BYTES;
                wait_barrier(full + n % STAGES * 8, n / STAGES & 1);
                asm volatile("wgmma.fence.sync.aligned;\n" : : : "memory");
                _Pragma("unroll") for (int k = 0; k < 4; ++k)
                    wgmma(acc, from + (group - 1) * 8192 + k * 32, from + 16384 + k * 2048, step + k > 0);
                asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 1;\n" : : : "memory");
                if (step > 0 && lane < 2) release(empty + (n - 1) % STAGES * 8, lane); // the step before has been read
            }
            asm volatile("wgmma.wait_group.sync.aligned 0;\n" : : : "memory");
            asm volatile("" : REGS128(acc) : : "memory");
            if (lane < 2) release(empty + (n - 1) % STAGES * 8, lane);
            const int row = at.y + rank * 128 + int(threadIdx.x) / 32 * 16 - 64 + lane / 4;
            _Pragma("unroll") for (int g = 0; g < 8; ++g) {
                float2 add[4];
                _Pragma("unroll") for (int i = 0; i < 4; ++i)
                    add[i] = at.x + g * 32 + i * 8 < N ? __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162 *>(bias + at.x + g * 32 + i * 8 + lane % 4 * 2)) : make_float2(0.0f, 0.0f);
                _Pragma("unroll") for (int h = 0; h < 2; ++h) {
                    unsigned w[4];
                    _Pragma("unroll") for (int i = 0; i < 4; ++i)
                        asm("cvt.rn.bf16x2.f32 %0, %1, %2;\n" : "=r"(w[i]) : "f"(acc[g * 16 + i * 4 + h * 2 + 1] + add[i].y), "f"(acc[g * 16 + i * 4 + h * 2] + add[i].x));
                    _Pragma("unroll") for (int r = 0; r < 4; ++r) { // 4×4 words transposed among four lanes: eight columns a lane
                        const int s = r < 2 ? 1 : 2, i = r < 2 ? 2 * r : r - 2;
                        const unsigned got = __shfl_xor_sync(0xffffffffu, lane & s ? w[i] : w[i + s], s);
                        w[i] = lane & s ? got : w[i];
                        w[i + s] = lane & s ? w[i + s] : got;
                    }
                    if (row + h * 8 < M && at.x + g * 32 + lane % 4 * 8 < N)
                        *reinterpret_cast<uint4 *>(y + size_t(row + h * 8) * N + at.x + g * 32 + lane % 4 * 8) = make_uint4(w[0], w[1], w[2], w[3]);
                }
            }
        }
    }
    asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;\n" : : : "memory");
}
