/*klineage
surface = "cuda"

[[tensormap]]
name = "tm_a"
tensor = "a"
box = [128, 64]
swizzle = "128B"
l2_promotion = "256B"
[[tensormap]]
name = "tm_b"
tensor = "b"
box = [1, 64, 64]
swizzle = "128B"
l2_promotion = "256B"

[[launch]]
kernel = "multiply"
grid = ["min(sm_count, ceil_div(N, 256) * (ceil_div(T, 128) + G))"]
block = ["288"]
shared = "4 * 49152 + 1024"
args = ["tm_a", "tm_b", "offsets", "y", "int G", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// A block makes 128x256 tiles, each of one group, with wgmma: two warpgroups of 64x256 sums read swizzled slabs, and one thread of a ninth warp has
// TMA fill a ring of four, which goes on from tile to tile. Still missing are multicast and stores through shared memory.
// The functions of cp.async and mma.sync are left over from the kernel before.

#include <cuda_bf16.h>

constexpr int BM = 128;
constexpr int BN = 256;
constexpr int BK = 64;
constexpr int THREADS = 288;
constexpr int STAGES = 4;
constexpr unsigned BAND = 16; // rows of tiles that are walked together, down the rows first, so that blocks share both operands in the L2 cache
constexpr int SLAB = (BM + BN) * BK * 2; // bytes of a stage: 128 rows of a, then four boxes of b, 64 of k by 64 columns
constexpr int LDA = BK + 8; // 80 bytes a row: eight rows of a fragment fall in different banks
constexpr int LDB = BN + 8; // 272 bytes a row, likewise
constexpr int A_SLAB = BM * LDA;
constexpr int B_SLAB = BK * LDB;

struct alignas(64) TensorMap { unsigned long long opaque[16]; };

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

// Waits for the end of a barrier's phase with this parity (0 for the first one).
__device__ __forceinline__ void wait_phase(unsigned barrier, unsigned parity)
{
    asm volatile("{\n.reg .pred p;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@!p bra again;\n}"
                 : : "r"(barrier), "r"(parity) : "memory");
}

#define SUMS4(i, j) "+f"(sum[i][j][0]), "+f"(sum[i][j][1]), "+f"(sum[i][j][2]), "+f"(sum[i][j][3])
#define SUMS16(i) SUMS4(i, 0), SUMS4(i, 1), SUMS4(i, 2), SUMS4(i, 3)
#define SUMS SUMS16(0), SUMS16(1), SUMS16(2), SUMS16(3), SUMS16(4), SUMS16(5), SUMS16(6), SUMS16(7)
// Adds 64 rows of x times 256 columns of w over 16 of k, in the background, by a whole warpgroup. x has k contiguous, w has its columns.
__device__ __forceinline__ void multiply_async(float (&sum)[8][4][4], unsigned long long x, unsigned long long w)
{
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, 1, 0;\nwgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {"
                 "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,"
                 "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63,"
                 "%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95,"
                 "%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111,%112,%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127"
                 "}, %128, %129, p, 1, 1, 0, 1;\n}"
                 : SUMS : "l"(x), "l"(w));
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

struct Tile { int group, first, end, col0; };

// The tile with this number, below rows * columns; `rows` are the rows of tiles of all groups, of which each begins a new one.
__device__ __forceinline__ Tile find_tile(unsigned id, const int *offsets, unsigned rows, unsigned columns)
{
    const unsigned band = id / (BAND * columns), within = id - band * (BAND * columns);
    const unsigned left = rows - band * BAND, height = left < BAND ? left : BAND;
    const unsigned column = within / height;
    int row = static_cast<int>(band * BAND + within - column * height);
    for (int group = 0;; ++group) {
        const int lo = __ldg(offsets + group), hi = __ldg(offsets + group + 1);
        const int tiles = (hi - lo + BM - 1) / BM;
        if (row < tiles)
            return {group, lo + row * BM, hi, static_cast<int>(column) * BN};
        row -= tiles;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) multiply(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b, const int *offsets,
                                                               __nv_bfloat16 *y, int G, int N, int K)
{
    extern __shared__ unsigned char slabs[];
    __shared__ __align__(8) unsigned long long barriers[2 * STAGES];

    int rows = 0; // of tiles; a group's last one may be part-filled
    for (int group = 0; group < G; ++group)
        rows += (__ldg(offsets + group + 1) - __ldg(offsets + group) + BM - 1) / BM;
    const int columns = (N + BN - 1) / BN;
    const int tiles = rows * columns;

    const int lane = threadIdx.x % 32;
    const int warp = threadIdx.x / 32;
    const int wm = (warp / 4) * 64;

    const unsigned ring = (shared_address(slabs) + 1023) & ~1023u; // a swizzled box starts at a multiple of 1024 bytes
    const unsigned full = shared_address(barriers), empty = full + 8 * STAGES;
    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; ++s) // full: the producer arrives, and the bytes; empty: each of the eight warps that multiply
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\nmbarrier.init.shared::cta.b64 [%1], 8;" : : "r"(full + 8 * s), "r"(empty + 8 * s) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" : : : "memory");
    }
    __syncthreads();

    const int steps = (K + BK - 1) / BK;
    unsigned slab = 0; // counts over all tiles of this block, as the producer and the warps that multiply walk over the same ones
    if (warp == 8) { // the producer: one thread asks for the slabs, each as soon as its stage is free
        for (int id = blockIdx.x; lane == 0 && id < tiles; id += gridDim.x) {
            const Tile tile = find_tile(id, offsets, rows, columns);
            for (int step = 0; step < steps; ++step, ++slab) {
                const unsigned to = ring + slab % STAGES * SLAB;
                const unsigned barrier = full + 8 * (slab % STAGES);
                wait_phase(empty + 8 * (slab % STAGES), slab / STAGES % 2 ^ 1);
                asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" : : "r"(barrier), "r"(SLAB) : "memory");
                asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                             : : "r"(to), "l"(&a), "r"(step * BK), "r"(tile.first), "r"(barrier) : "memory");
                for (int c = 0; c < BN; c += 64)
                    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];"
                                 : : "r"(to + 2 * BK * (BM + c)), "l"(&b), "r"(tile.col0 + c), "r"(step * BK), "r"(tile.group), "r"(barrier) : "memory");
            }
        }
        return;
    }

    for (int id = blockIdx.x; id < tiles; id += gridDim.x) { // to the end of the kernel
    const Tile tile = find_tile(id, offsets, rows, columns);
    const int first = tile.first, end = tile.end, col0 = tile.col0;
    float sum[8][4][4] = {};
    const unsigned long long layout = 1ull << 62 | 64ull << 32; // 128 swizzled bytes a row, 1024 bytes from 8 rows to the next
    for (int step = 0; step < steps; ++step, ++slab) {
        const int now = slab % STAGES;
        const unsigned xs = ring + now * SLAB + wm * BK * 2, ws = ring + now * SLAB + BM * BK * 2;
        wait_phase(full + 8 * now, slab / STAGES % 2);
        asm volatile("wgmma.fence.sync.aligned;" : : : "memory");
#pragma unroll
        for (int k = 0; k < BK; k += 16) // the second operand's next 64 columns are 8192 bytes further: 512 units of 16 bytes
            multiply_async(sum, layout | (xs + 2 * k) >> 4, layout | 512u << 16 | (ws + 128 * k) >> 4);
        asm volatile("wgmma.commit_group.sync.aligned;" : : : "memory");
        asm volatile("wgmma.wait_group.sync.aligned 1;" : : : "memory"); // the slab of the step before has been read
        if (lane == 0 && step > 0)
            asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" : : "r"(empty + 8 * ((slab - 1) % STAGES)) : "memory");
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" : SUMS : : "memory");
    if (lane == 0) // the tile's last slab: the producer fills the whole ring for the next tile while this one is stored
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" : : "r"(empty + 8 * ((slab - 1) % STAGES)) : "memory");
#if 0 // the loop of the kernel before
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
#endif

#pragma unroll
    for (int i = 0; i < 8; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const int col = col0 + i * 32 + j * 8 + (lane % 4) * 2; // even, as N is: both columns inside or none
            if (col >= N)
                continue;
            const int row = first + warp * 16 + lane / 4;
            if (row < end)
                *reinterpret_cast<unsigned *>(y + size_t(row) * N + col) = narrow(sum[i][j][0], sum[i][j][1]);
            if (row + 8 < end)
                *reinterpret_cast<unsigned *>(y + size_t(row + 8) * N + col) = narrow(sum[i][j][2], sum[i][j][3]);
        }
    }
    __syncwarp(); // the next tile's wgmma wants the warp's lanes together again
    }
}
