/*klineage
surface = "cuda"

[[launch]]
kernel = "multiply_wgmma"
grid = ["2 * ceil_div(M, 256)", "ceil_div(N, 256)"]
cluster = ["2", "1"]
block = ["288"]
shared = "197632"
args = ["tm_a", "tm_b", "tm_y", "int K"]
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
[[tensormap]]
name = "tm_y"
tensor = "y"
box = [16, 64]
swizzle = "128B"
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[M,N] = a[M,K] · b[K,N] on the tensor cores (mma.sync m16n8k16): eight warps share a 128 x 128 tile of y, 64 x 32 each, while
// cp.async brings the next slice of 32 of K into a second buffer; still missing are wgmma, TMA, a deeper pipeline, an order of
// the blocks that is kind to L2, and a way to fill the device when y has few tiles.

#include <cuda_bf16.h>

constexpr int TILE_M = 128;
constexpr int TILE_N = 128;
constexpr int TILE_K = 32;
constexpr int THREADS = 256;
constexpr int A_PITCH = TILE_K + 8; // eight more, so that the eight rows of an ldmatrix lie in different banks
constexpr int B_PITCH = TILE_N + 8;
constexpr int A_SIZE = TILE_M * A_PITCH;
constexpr int B_SIZE = TILE_K * B_PITCH;

__device__ __forceinline__ unsigned shared_address(const void *p)
{
    return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

// Copies 16 bytes, or writes 16 bytes of zeros and reads nothing where not `inside`.
__device__ __forceinline__ void copy16(__nv_bfloat16 *to, const __nv_bfloat16 *from, bool inside)
{
    const int bytes = inside ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from), "r"(bytes)
                 : "memory");
}

__device__ __forceinline__ void load4(unsigned (&r)[4], const __nv_bfloat16 *p)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared_address(p))
                 : "memory");
}

__device__ __forceinline__ void load4_transposed(unsigned (&r)[4], const __nv_bfloat16 *p)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared_address(p))
                 : "memory");
}

__device__ __forceinline__ void mma(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Starts the copy of one slice of K. N and K are multiples of 8, so a group of eight along a row is wholly inside or wholly
// outside; where it is outside, the address is that of the tensor, and nothing is read.
__device__ __forceinline__ void bring(__nv_bfloat16 *as, __nv_bfloat16 *bs, const __nv_bfloat16 *a,
                                      const __nv_bfloat16 *b, int row0, int col0, int k0, int M, int N, int K)
{
    const int t = threadIdx.x;
#pragma unroll
    for (int i = 0; i < TILE_M * TILE_K / 8 / THREADS; ++i) {
        const int g = t + i * THREADS;
        const int r = g / (TILE_K / 8);
        const int k = g % (TILE_K / 8) * 8;
        const bool inside = row0 + r < M && k0 + k < K;
        copy16(as + r * A_PITCH + k, inside ? a + size_t(row0 + r) * K + (k0 + k) : a, inside);
    }
#pragma unroll
    for (int i = 0; i < TILE_K * TILE_N / 8 / THREADS; ++i) {
        const int g = t + i * THREADS;
        const int k = g / (TILE_N / 8);
        const int c = g % (TILE_N / 8) * 8;
        const bool inside = k0 + k < K && col0 + c < N;
        copy16(bs + k * B_PITCH + c, inside ? b + size_t(k0 + k) * N + (col0 + c) : b, inside);
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
}

extern "C" __global__ void __launch_bounds__(256, 2)
    multiply(const __nv_bfloat16 *__restrict__ a, const __nv_bfloat16 *__restrict__ b, __nv_bfloat16 *__restrict__ y,
             int M, int N, int K)
{
    __shared__ __align__(16) __nv_bfloat16 as[2 * A_SIZE]; // 20480 bytes
    __shared__ __align__(16) __nv_bfloat16 bs[2 * B_SIZE]; // 17408 bytes

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

    const int slices = (K + TILE_K - 1) / TILE_K;
    bring(as, bs, a, b, row0, col0, 0, M, N, K);

    for (int s = 0; s < slices; ++s) {
        // This slice has arrived, for all threads; and all are done with the one before, whose buffer is filled next.
        asm volatile("cp.async.wait_group 0;" ::: "memory");
        __syncthreads();
        if (s + 1 < slices)
            bring(as + (s + 1) % 2 * A_SIZE, bs + (s + 1) % 2 * B_SIZE, a, b, row0, col0, (s + 1) * TILE_K, M, N, K);

        const __nv_bfloat16 *at = as + s % 2 * A_SIZE;
        const __nv_bfloat16 *bt = bs + s % 2 * B_SIZE;
#pragma unroll
        for (int k = 0; k < TILE_K; k += 16) {
            unsigned af[4][4];
            unsigned bf[2][4]; // each: two n-tiles of 8, of two registers
#pragma unroll
            for (int i = 0; i < 4; ++i)
                load4(af[i], at + (warp_row + i * 16 + lane % 16) * A_PITCH + k + lane / 16 * 8);
#pragma unroll
            for (int j = 0; j < 2; ++j)
                load4_transposed(bf[j], bt + (k + lane % 16) * B_PITCH + warp_col + j * 16 + lane / 16 * 8);
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j)
                    mma(acc[i][j], af[i], bf[j / 2][j % 2 * 2], bf[j / 2][j % 2 * 2 + 1]);
        }
    }

#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int row = row0 + warp_row + i * 16 + lane / 4;
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const int col = col0 + warp_col + j * 8 + lane % 4 * 2;
            if (col >= N) // even, as N is: the two columns are inside together
                continue;
            if (row < M)
                *reinterpret_cast<__nv_bfloat162 *>(y + size_t(row) * N + col) =
                    __floats2bfloat162_rn(acc[i][j][0], acc[i][j][1]);
            if (row + 8 < M)
                *reinterpret_cast<__nv_bfloat162 *>(y + size_t(row + 8) * N + col) =
                    __floats2bfloat162_rn(acc[i][j][2], acc[i][j][3]);
        }
    }
}

// Launched in place of the kernel above: wgmma on 128 x 256 of y a block. Warp 8 feeds a ring of stages of 64 of K by TMA, two
// warpgroups multiply 64 x 256 each. The two blocks of a cluster share their columns: each fetches half of b's slice for both.
struct alignas(64) TensorMap { unsigned long long opaque[16]; };
constexpr int STAGES = 4;
constexpr unsigned STAGE_A = 128 * 64 * 2, STAGE = STAGE_A + 64 * 256 * 2; // bytes; b: four boxes of 64 of K by 64 columns
constexpr unsigned long long ALONG = 1ull << 16 | 1024ull >> 4 << 32 | 1ull << 62, ACROSS = ALONG + (511ull << 16);

__device__ __forceinline__ void wait_for(unsigned barrier, unsigned parity)
{
    asm volatile("{\n.reg .pred p;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@!p bra again;\n}" ::"r"(barrier), "r"(parity) : "memory");
}
#define TMA "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
// Fetches a box for this block, or to the same place in each block of the cluster that `mask` names.
__device__ __forceinline__ void fetch(unsigned to, const TensorMap *map, int x, int y, unsigned bar, unsigned short mask)
{
    if (mask == 0)
        asm volatile(TMA " [%0], [%1, {%2, %3}], [%4];" ::"r"(to), "l"(map), "r"(x), "r"(y), "r"(bar) : "memory");
    else
        asm volatile(TMA ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(to), "l"(map), "r"(x), "r"(y), "r"(bar), "h"(mask) : "memory");
}
// Nothing but the mbarriers is published by it, and those have a fence of their own: so the arrival needs none.
__device__ __forceinline__ void meet() { __syncwarp(); asm volatile("barrier.cluster.arrive.relaxed;\nbarrier.cluster.wait;" ::: "memory"); }
#define D4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define D32(i) D4(i), D4(i + 4), D4(i + 8), D4(i + 12), D4(i + 16), D4(i + 20), D4(i + 24), D4(i + 28)
__device__ __forceinline__ void wgmma(float (&d)[128], unsigned long long a, unsigned long long b)
{
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %130, 0;\nwgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {"
                 "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,"
                 "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63,"
                 "%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95,"
                 "%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111,%112,%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127"
                 "}, %128, %129, p, 1, 1, 0, 1;\n}" : D32(0), D32(32), D32(64), D32(96) : "l"(a), "l"(b), "r"(1));
}

extern "C" __global__ void __launch_bounds__(288, 1) multiply_wgmma(
    const __grid_constant__ TensorMap tm_a, const __grid_constant__ TensorMap tm_b, const __grid_constant__ TensorMap tm_y, int K)
{
    extern __shared__ __align__(1024) unsigned char dynamic[];
    __shared__ __align__(8) unsigned long long barriers[2 * STAGES]; // of each stage: it is full; behind them: it is empty
    const unsigned tiles = (shared_address(dynamic) + 1023) & ~1023u;
    const unsigned full = shared_address(barriers), empty = full + 8 * STAGES;
    const int lane = threadIdx.x % 32, warp = __shfl_sync(~0u, int(threadIdx.x / 32), 0);
    const int row0 = blockIdx.x * 128, col0 = blockIdx.y * 256, slices = (K + 63) / 64;
    if (threadIdx.x < STAGES) // a stage is empty when eight warps of either block have left it
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\nmbarrier.init.shared::cta.b64 [%1], 16;\nfence.mbarrier_init.release.cluster;" ::"r"(full + 8 * threadIdx.x), "r"(empty + 8 * threadIdx.x) : "memory");
    meet();
    if (warp == 8 && lane == 0) {
        for (int s = 0; s < slices; ++s) {
            const unsigned bar = full + s % STAGES * 8, to = tiles + s % STAGES * STAGE;
            if (s >= STAGES)
                wait_for(empty + s % STAGES * 8, (s / STAGES - 1) % 2);
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(STAGE) : "memory");
            fetch(to, &tm_a, s * 64, row0, bar, 0);
            for (int box = blockIdx.x % 2 * 2, end = box + 2; box < end; ++box)
                fetch(to + STAGE_A + box * 8192, &tm_b, col0 + box * 64, s * 64, bar, 3);
        }
    } else if (warp < 8) {
        float acc[128] = {};
        for (int s = 0; s < slices; ++s) {
            wait_for(full + s % STAGES * 8, s / STAGES % 2);
            const unsigned at = ((tiles + s % STAGES * STAGE) & 0x3ffff) >> 4;
            asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
            for (int k = 0; k < 4; ++k) // 16 of K: 32 bytes along the rows of a, 16 rows of 128 bytes down b
                wgmma(acc, ALONG + at + warp / 4 * 512 + k * 2, ACROSS + at + STAGE_A / 16 + k * 128);
            asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 1;" ::: "memory");
            // The slice before is done with: tell both blocks, if they will fill its stage again. It was only read, by products
            // that have ended, so no release at the scope of the cluster, with its fence, is needed.
            if (s > 0 && s + STAGES <= slices && lane < 2)
                asm volatile("{\n.reg .b32 r;\nmapa.shared::cluster.u32 r, %0, %1;\nmbarrier.arrive.shared::cluster.b64 _, [r];\n}"
                             ::"r"(empty + (s - 1) % STAGES * 8), "r"(lane) : "memory");
        }
        asm volatile("wgmma.wait_group.sync.aligned 0;\nbar.sync 1, 256;" ::: "memory"); // y takes the place of the stages
        const unsigned out = tiles + warp * 8192; // four boxes of 16 rows of 64 columns
#pragma unroll
        for (int j = 0; j < 16; ++j) {
            const unsigned to = out + j / 4 * 2048 + lane % 16 * 128 + ((j % 4 * 2 + lane / 16) ^ (lane % 8)) * 16;
            asm volatile("{\n.reg .b32 r<4>;\ncvt.rn.bf16x2.f32 r0, %2, %1;\ncvt.rn.bf16x2.f32 r1, %4, %3;\ncvt.rn.bf16x2.f32 r2, %6, %5;\n"
                         "cvt.rn.bf16x2.f32 r3, %8, %7;\nstmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {r0, r1, r2, r3};\n}"
                         ::"r"(to), "f"(acc[j * 8]), "f"(acc[j * 8 + 1]), "f"(acc[j * 8 + 2]), "f"(acc[j * 8 + 3]),
                         "f"(acc[j * 8 + 4]), "f"(acc[j * 8 + 5]), "f"(acc[j * 8 + 6]), "f"(acc[j * 8 + 7]) : "memory");
        }
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncwarp();
        if (lane < 4)
            asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];\ncp.async.bulk.commit_group;\ncp.async.bulk.wait_group.read 0;"
                         ::"l"(&tm_y), "r"(col0 + lane * 64), "r"(row0 + warp * 16), "r"(out + lane * 2048) : "memory");
    }
    meet();
}
