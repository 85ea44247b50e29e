/*klineage
surface = "cuda"
tensormap = [{ name = "tm_a", tensor = "a", box = [128, 64], swizzle = "128B", l2_promotion = "256B" }, { name = "tm_b", tensor = "b", box = [1, 64, 64], swizzle = "128B", l2_promotion = "256B" }]

[[launch]]
kernel = "multiply_tma"
grid = ["sm_count"]
block = ["288"]
shared = "198656"
args = ["tm_a", "tm_b", "offsets", "y", "int G", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// A block makes a 128x128 tile of one group with mma.sync, eight warps of 64x32, from two slabs in shared memory that cp.async fills in turn;
// still missing are a deeper pipeline, fragments loaded ahead of use, an order of tiles that minds the L2 cache, and all that is Hopper's own
// (TMA, wgmma, specialized warps, persistence).

#include <cuda_bf16.h>

constexpr int BM = 128;
constexpr int BN = 128;
constexpr int BK = 32;
constexpr int THREADS = 256;
constexpr int LDA = BK + 8; // 80 bytes a row: eight rows of a fragment fall in different banks
constexpr int LDB = BN + 8; // 272 bytes a row, likewise
constexpr int A_SLAB = BM * LDA;
constexpr int B_SLAB = BK * LDB;

__device__ __forceinline__ unsigned shared_address(const void *p)
{
    unsigned long long s;
    asm("cvta.to.shared.u64 %0, %1;" : "=l"(s) : "l"(p));
    return static_cast<unsigned>(s);
}

// Copies 16 bytes, or writes 16 bytes of zeros where `inside` is false; then nothing is read.
__device__ __forceinline__ void copy_async(unsigned to, const void *from, bool inside)
{
    const int bytes = inside ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" : : "r"(to), "l"(from), "r"(bytes) : "memory");
}

__device__ __forceinline__ void load_matrices(unsigned (&r)[4], unsigned address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address)
                 : "memory");
}

__device__ __forceinline__ void load_matrices_transposed(unsigned (&r)[4], unsigned address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address)
                 : "memory");
}

__device__ __forceinline__ void mma(float (&d)[4], const unsigned (&x)[4], unsigned w0, unsigned w1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(w0), "r"(w1));
}

__device__ __forceinline__ unsigned narrow(float low, float high)
{
    const unsigned l = __bfloat16_as_ushort(__float2bfloat16(low));
    const unsigned h = __bfloat16_as_ushort(__float2bfloat16(high));
    return l | (h << 16);
}

// Starts the copies of the slabs that begin at k0. N and K are multiples of 8: a vector of 8 elements is aligned, and all inside or all outside.
__device__ __forceinline__ void start_slabs(unsigned as, unsigned bs, const __nv_bfloat16 *a, const __nv_bfloat16 *b, int first, int end,
                                            int col0, int k0, int N, int K)
{
    const int t = threadIdx.x;
#pragma unroll
    for (int i = 0; i < BM * BK / 8 / THREADS; ++i) {
        const int v = i * THREADS + t;
        const int r = v / (BK / 8);
        const int k = (v % (BK / 8)) * 8;
        const bool inside = first + r < end && k0 + k < K;
        copy_async(as + 2 * (r * LDA + k), inside ? a + size_t(first + r) * K + k0 + k : a, inside);
    }
#pragma unroll
    for (int i = 0; i < BK * BN / 8 / THREADS; ++i) {
        const int v = i * THREADS + t;
        const int k = v / (BN / 8);
        const int c = (v % (BN / 8)) * 8;
        const bool inside = k0 + k < K && col0 + c < N;
        copy_async(bs + 2 * (k * LDB + c), inside ? b + size_t(k0 + k) * N + col0 + c : b, inside);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) multiply(const __nv_bfloat16 *a, const __nv_bfloat16 *b, const int *offsets,
                                                               __nv_bfloat16 *y, int G, int N, int K)
{
    __shared__ __align__(16) unsigned short As[2 * A_SLAB]; // 20 KiB
    __shared__ __align__(16) unsigned short Bs[2 * B_SLAB]; // 17 KiB

    // The grid has room for one part-filled tile a group: find the tile of this block, or leave. The answer is the same for the whole block.
    int tile = blockIdx.y;
    int group = 0, first = 0, end = 0;
    for (; group < G; ++group) {
        const int lo = offsets[group];
        const int hi = offsets[group + 1];
        const int tiles = (hi - lo + BM - 1) / BM;
        if (tile < tiles) {
            first = lo + tile * BM;
            end = hi;
            break;
        }
        tile -= tiles;
    }
    if (group == G)
        return;
    b += size_t(group) * K * N;

    const int lane = threadIdx.x % 32;
    const int warp = threadIdx.x / 32;
    const int wm = (warp / 4) * 64;
    const int wn = (warp % 4) * 32;
    const int col0 = blockIdx.x * BN;

    const unsigned as = shared_address(As);
    const unsigned bs = shared_address(Bs);
    // What this lane points ldmatrix at: 16 rows in the low half-warp, the same rows 8 columns further in the high one.
    const unsigned a_offset = 2 * ((wm + lane % 16) * LDA + (lane / 16) * 8);
    const unsigned b_offset = 2 * ((lane % 16) * LDB + wn + (lane / 16) * 8);

    float sum[4][4][4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j)
#pragma unroll
            for (int e = 0; e < 4; ++e)
                sum[i][j][e] = 0.0f;

    const int steps = (K + BK - 1) / BK;
    start_slabs(as, bs, a, b, first, end, col0, 0, N, K);
    asm volatile("cp.async.commit_group;" : : : "memory");

    for (int step = 0; step < steps; ++step) {
        const int now = step % 2;
        const int next = 1 - now;
        if (step + 1 < steps)
            start_slabs(as + 2 * next * A_SLAB, bs + 2 * next * B_SLAB, a, b, first, end, col0, (step + 1) * BK, N, K);
        asm volatile("cp.async.commit_group;" : : : "memory"); // empty at the last step, so that the count below holds
        asm volatile("cp.async.wait_group 1;" : : : "memory");
        __syncthreads();

        const unsigned a_address = as + 2 * now * A_SLAB + a_offset;
        const unsigned b_address = bs + 2 * now * B_SLAB + b_offset;
#pragma unroll
        for (int k = 0; k < BK; k += 16) {
            unsigned x[4][4];
            unsigned w[2][4]; // each: 16 of k by 16 columns
#pragma unroll
            for (int i = 0; i < 4; ++i)
                load_matrices(x[i], a_address + 2 * (i * 16 * LDA + k));
#pragma unroll
            for (int j = 0; j < 2; ++j)
                load_matrices_transposed(w[j], b_address + 2 * (k * LDB + j * 16));
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j)
                    mma(sum[i][j], x[i], w[j / 2][(j % 2) * 2], w[j / 2][(j % 2) * 2 + 1]);
        }
        __syncthreads(); // the next step's copies overwrite this slab
    }

#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const int col = col0 + wn + j * 8 + (lane % 4) * 2; // even, as N is: both columns inside or none
            if (col >= N)
                continue;
            const int row = first + wm + i * 16 + lane / 4;
            if (row < end)
                *reinterpret_cast<unsigned *>(y + size_t(row) * N + col) = narrow(sum[i][j][0], sum[i][j][1]);
            if (row + 8 < end)
                *reinterpret_cast<unsigned *>(y + size_t(row + 8) * N + col) = narrow(sum[i][j][2], sum[i][j][3]);
        }
    }
}

// The kernel that is launched: persistent blocks make 128x256 tiles with wgmma, a warpgroup for each 64 rows; a ninth warp keeps four stages filled by TMA, across tiles.
// A stage: A, 128 rows of 64 of k; then B in four parts of 64 columns, each 64 rows of k. All rows are 128 bytes, swizzled.
struct alignas(64) TensorMap { unsigned long long opaque[16]; };
constexpr int TN = 256, TK = 64, STAGES = 4, STAGE = 2 * (BM + TN) * TK; // STAGE in bytes
#define D4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define D16(i) D4(i), D4(i + 4), D4(i + 8), D4(i + 12)
#define D128 D16(0), D16(16), D16(32), D16(48), D16(64), D16(80), D16(96), D16(112)
extern "C" __global__ void __launch_bounds__(THREADS + 32) multiply_tma(const __grid_constant__ TensorMap tm_a, const __grid_constant__ TensorMap tm_b, const int *offsets, __nv_bfloat16 *y, int G, int N, int K)
{
    extern __shared__ __align__(16) unsigned char dynamic[];
    const unsigned full = shared_address(dynamic), slabs = (full + 16 * STAGES + 1023) / 1024 * 1024; // a full barrier a stage, an empty one a stage, then the stages
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, steps = (K + TK - 1) / TK;
    if (threadIdx.x < 2 * STAGES) // full: the producer arrives; empty: each of the eight warps that multiply does
        asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\nfence.mbarrier_init.release.cluster;\nfence.proxy.async;" : : "r"(full + 8 * threadIdx.x), "r"(threadIdx.x < STAGES ? 1 : 8) : "memory");
    __syncthreads();
    const auto release = [&](int step, bool now) { asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %1, 0;\n@p mbarrier.arrive.shared::cta.b64 _, [%0];\n}" : : "r"(full + (STAGES + step % STAGES) * 8), "r"(int(now)) : "memory"); };
    for (int tile = blockIdx.x, group = 0, passed = 0;; tile += gridDim.x, passed += steps) { // steps are counted on across tiles; the body is not indented
    int tall = 1, wide = (N + TN - 1) / TN;
    for (; group < G && tile >= (tall = (offsets[group + 1] - offsets[group] + BM - 1) / BM) * wide; ++group)
        tile -= tall * wide;
    if (group == G) break;
    const int first = offsets[group] + tile % tall * BM, end = offsets[group + 1], col0 = tile / tall * TN;
    const auto start = [&](int step) { // what lies outside of the tensors arrives as zeros
        asm volatile("{\n.reg .pred p;\nAGAIN:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@!p bra AGAIN;\n}" : : "r"(full + (STAGES + step % STAGES) * 8), "r"((step / STAGES % 2) ^ 1) : "memory");
        const unsigned slab = slabs + step % STAGES * STAGE, barrier = full + step % STAGES * 8;
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" : : "r"(barrier), "r"(STAGE) : "memory");
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" : : "r"(slab), "l"(&tm_a), "r"((step - passed) * TK), "r"(first), "r"(barrier) : "memory");
        for (int j = 0; j < TN / 64; ++j)
            asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];" : : "r"(slab + 2 * TK * (BM + 64 * j)), "l"(&tm_b), "r"(col0 + 64 * j), "r"((step - passed) * TK), "r"(group), "r"(barrier) : "memory");
    };
    for (int step = passed; threadIdx.x == THREADS && step < passed + steps; ++step)
        start(step);
    if (warp == THREADS / 32) continue;
    float d[128] = {};
    for (int step = passed; step < passed + steps; ++step) {
        const unsigned slab = slabs + step % STAGES * STAGE;
        asm volatile("{\n.reg .pred p;\nAGAIN:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@!p bra AGAIN;\n}\nwgmma.fence.sync.aligned;" : : "r"(full + step % STAGES * 8), "r"(step / STAGES % 2) : "memory");
#pragma unroll
        for (int k = 0; k < TK; k += 16)
            asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %130, 0;\nwgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, %128, %129, p, 1, 1, 0, 1;\n}"
                         : D128 : "l"((1ull << 62) | (64ull << 32) | (1ull << 16) | ((slab + 2 * (warp / 4 * 64 * TK + k)) >> 4)), "l"((1ull << 62) | (64ull << 32) | (512ull << 16) | ((slab + 2 * (BM * TK + 64 * k)) >> 4)), "r"(1) : "memory");
        asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 1;" : : : "memory");
        release(step - 1, lane == 0 && step > passed); // this warp is done with the step before: its slab is free, while this step still runs
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" : D128 : : "memory");
    release(passed + steps - 1, lane == 0);
#pragma unroll
    for (int i = 0; i < 16; ++i) { // 8 rows of 32 columns: the four lanes of a row exchange words until each has eight columns, 16 bytes
        const int col = col0 + i / 2 * 32 + lane % 4 * 8, row = first + warp * 16 + i % 2 * 8 + lane / 4, e = i / 2 * 16 + i % 2 * 2;
        unsigned v[4] = {narrow(d[e], d[e + 1]), narrow(d[e + 4], d[e + 5]), narrow(d[e + 8], d[e + 9]), narrow(d[e + 12], d[e + 13])};
#pragma unroll
        for (int s = 0; s < 4; ++s) { // a transposition of 4x4 words: pairs 01 and 23 with the next lane, then 02 and 13 with the lane after
            const int bit = 1 + s / 2, j = s < 2 ? 2 * s : s - 2;
            const unsigned got = __shfl_xor_sync(~0u, (lane & bit) ? v[j] : v[j | bit], bit);
            if (lane & bit) v[j] = got; else v[j | bit] = got;
        }
        if (row < end && col < N)
            *reinterpret_cast<uint4 *>(y + size_t(row) * N + col) = make_uint4(v[0], v[1], v[2], v[3]);
    }
    }
}
