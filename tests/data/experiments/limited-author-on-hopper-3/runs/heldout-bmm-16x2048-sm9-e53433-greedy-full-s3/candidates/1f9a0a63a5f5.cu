/*klineage
surface = "cuda"

[[launch]]
kernel = "multiply"
when = "min(M, N) < 64"
grid = ["ceil_div(N, 128)", "ceil_div(M, 128)", "B"]
block = ["32", "8"]
args = ["a", "b", "y", "int M", "int N", "int K"]

[[launch]]
kernel = "multiply_wide"
when = "min(M, N) >= 64"
grid = ["min(sm_count, 2 * ceil_div(M, 256) * ceil_div(N, 256) * B)"]
cluster = ["2"]
block = ["32", "9"]
shared = "4 * 49152 + 32768 + 1024"
args = ["tm_a", "tm_b", "tm_y", "int B", "int M", "int N", "int K"]

[[tensormap]]
name = "tm_a"
tensor = "a"
box = [1, 128, 64]
swizzle = "128B"
[[tensormap]]
name = "tm_b"
tensor = "b"
box = [1, 64, 64]
swizzle = "128B"
[[tensormap]]
name = "tm_y"
tensor = "y"
box = [1, 16, 64]
swizzle = "128B"
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[i] = a[i] · b[i] with mma.sync: 128 x 128 blocks of y, eight warps of 64 x 32, 32-deep slices double-buffered in shared memory by cp.async;
// that is multiply, left for narrow y. Otherwise multiply_wide: 128 x 256 blocks by wgmma, from a ring that a warp of its own fills by TMA;
// two blocks, one above the other, are a cluster: each fetches half of their b for both.
//
// N and K are multiples of 8, so a chunk of eight neighbours in a row is wholly inside or wholly outside, and aligned to 16 bytes.

#include <cuda_bf16.h>

#define BM 128
#define BN 128
#define BK 32
#define THREADS 256
#define LDA (BK + 8) // 80 bytes a row: eight rows of ldmatrix fall into different banks
#define LDB (BN + 8) // 272 bytes a row: likewise
#define A_ELEMENTS (BM * LDA)
#define B_ELEMENTS (BK * LDB)
#define STAGES 4
#define STAGE_BYTES 49152 // 64 deep: 128 rows of a, then four boxes of 64 columns of b

static __device__ __forceinline__ unsigned shared_address(const void *p)
{
    return unsigned(__cvta_generic_to_shared(p));
}

// Sixteen bytes from global to shared memory; zeros, and nothing read, where inside is false.
static __device__ __forceinline__ void copy_async(unsigned to, const void *from, bool inside)
{
    const int bytes = inside ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :
                 : "r"(to), "l"(from), "r"(bytes)
                 : "memory");
}

static __device__ __forceinline__ void commit_copies()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

// Waits until all groups but the newest have arrived.
static __device__ __forceinline__ void wait_for_all_but_one()
{
    asm volatile("cp.async.wait_group 1;" ::: "memory");
}

static __device__ __forceinline__ void load_matrices(unsigned (&r)[4], unsigned address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address)
                 : "memory");
}

static __device__ __forceinline__ void load_matrices_transposed(unsigned (&r)[4], unsigned address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address)
                 : "memory");
}

static __device__ __forceinline__ void multiply_add(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

static __device__ __forceinline__ unsigned narrow(float low, float high)
{
    return unsigned(__bfloat16_as_ushort(__float2bfloat16(low))) |
           (unsigned(__bfloat16_as_ushort(__float2bfloat16(high))) << 16);
}

// Starts the copies of the slices of a and b that begin at k0.
static __device__ __forceinline__ void start_slice(unsigned sa, unsigned sb, const __nv_bfloat16 *a,
                                                   const __nv_bfloat16 *b, int tid, int row0, int col0, int k0, int M,
                                                   int N, int K)
{
#pragma unroll
    for (int s = 0; s < BM * (BK / 8) / THREADS; ++s) { // a: 128 rows of 4 chunks
        const int c = s * THREADS + tid;
        const int r = c / (BK / 8);
        const int k = (c % (BK / 8)) * 8;
        const bool inside = row0 + r < M && k0 + k < K;
        const __nv_bfloat16 *from = inside ? a + size_t(row0 + r) * K + k0 + k : a;
        copy_async(sa + (r * LDA + k) * 2, from, inside);
    }
#pragma unroll
    for (int s = 0; s < BK * (BN / 8) / THREADS; ++s) { // b: 32 rows of 16 chunks
        const int c = s * THREADS + tid;
        const int k = c / (BN / 8);
        const int n = (c % (BN / 8)) * 8;
        const bool inside = k0 + k < K && col0 + n < N;
        const __nv_bfloat16 *from = inside ? b + size_t(k0 + k) * N + col0 + n : b;
        copy_async(sb + (k * LDB + n) * 2, from, inside);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    multiply(const __nv_bfloat16 *a, const __nv_bfloat16 *b, __nv_bfloat16 *y, int M, int N, int K)
{
    __shared__ __align__(16) __nv_bfloat16 sa[2 * A_ELEMENTS]; // both together: 37888 bytes
    __shared__ __align__(16) __nv_bfloat16 sb[2 * B_ELEMENTS];

    const int lane = threadIdx.x;
    const int warp = threadIdx.y;
    const int tid = warp * 32 + lane;
    const int warp_row = (warp / 4) * 64;
    const int warp_col = (warp % 4) * 32;
    const int row0 = blockIdx.y * BM;
    const int col0 = blockIdx.x * BN;

    a += size_t(blockIdx.z) * M * K;
    b += size_t(blockIdx.z) * K * N;
    y += size_t(blockIdx.z) * M * N;

    const unsigned sa0 = shared_address(sa);
    const unsigned sb0 = shared_address(sb);
    // Where in a slice this lane points ldmatrix, in bytes.
    const unsigned a_lane = ((warp_row + lane % 16) * LDA + (lane / 16) * 8) * 2;
    const unsigned b_lane = ((lane % 16) * LDB + warp_col + (lane / 16) * 8) * 2;

    float sum[4][4][4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j)
#pragma unroll
            for (int e = 0; e < 4; ++e)
                sum[i][j][e] = 0.0f;

    const int slices = (K + BK - 1) / BK;
    start_slice(sa0, sb0, a, b, tid, row0, col0, 0, M, N, K);
    commit_copies();

    for (int t = 0; t < slices; ++t) {
        const int now = t & 1;
        const int next = now ^ 1;
        if (t + 1 < slices)
            start_slice(sa0 + next * (A_ELEMENTS * 2), sb0 + next * (B_ELEMENTS * 2), a, b, tid, row0, col0,
                        (t + 1) * BK, M, N, K);
        commit_copies(); // an empty group after the last slice keeps the count right
        wait_for_all_but_one();
        __syncthreads();

        const unsigned a_now = sa0 + now * (A_ELEMENTS * 2) + a_lane;
        const unsigned b_now = sb0 + now * (B_ELEMENTS * 2) + b_lane;
#pragma unroll
        for (int k = 0; k < BK; k += 16) {
            unsigned fa[4][4];
            unsigned fb[2][4]; // each holds two column groups of eight
#pragma unroll
            for (int i = 0; i < 4; ++i)
                load_matrices(fa[i], a_now + (i * 16 * LDA + k) * 2);
#pragma unroll
            for (int j = 0; j < 2; ++j)
                load_matrices_transposed(fb[j], b_now + (k * LDB + j * 16) * 2);
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j)
                    multiply_add(sum[i][j], fa[i], fb[j / 2][(j % 2) * 2], fb[j / 2][(j % 2) * 2 + 1]);
        }
        __syncthreads(); // the next turn overwrites the slice just read
    }

    // A lane holds two neighbours of row lane / 4 and two of the row eight below; N is even, so pairs are not cut.
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int row = row0 + warp_row + i * 16 + lane / 4;
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const int col = col0 + warp_col + j * 8 + (lane % 4) * 2;
            if (col >= N)
                continue;
            if (row < M)
                *reinterpret_cast<unsigned *>(y + size_t(row) * N + col) = narrow(sum[i][j][0], sum[i][j][1]);
            if (row + 8 < M)
                *reinterpret_cast<unsigned *>(y + size_t(row + 8) * N + col) = narrow(sum[i][j][2], sum[i][j][3]);
        }
    }
}

struct alignas(64) TensorMap { unsigned long long opaque[16]; };

// Rows of 128 swizzled bytes, eight every 1024 bytes; leading: bytes to the next 64 columns where rows run along N, else unused.
#define DESCRIBE(address, leading) (((address) & 0x3ffff) >> 4 | (leading) / 16ull << 16 | 1024ull / 16 << 32 | 1ull << 62)
#define SUMS4(i, j) "+f"(d[i][j][0]), "+f"(d[i][j][1]), "+f"(d[i][j][2]), "+f"(d[i][j][3])
#define SUMS32(i) SUMS4(i, 0), SUMS4(i, 1), SUMS4(i, 2), SUMS4(i, 3), SUMS4(i, 4), SUMS4(i, 5), SUMS4(i, 6), SUMS4(i, 7)

// d += 64 rows of a · 256 columns of b over 16 numbers of K; in the background, by a whole warpgroup.
static __device__ __forceinline__ void multiply_add_wide(float (&d)[4][8][4], unsigned long long a, unsigned long long b)
{
    asm volatile("{.reg .pred accumulate; setp.ne.b32 accumulate, 1, 0; wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {"
                 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
                 "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
                 "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
                 "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, "
                 "%124, %125, %126, %127}, %128, %129, accumulate, 1, 1, 0, 1;}"
                 : SUMS32(0), SUMS32(1), SUMS32(2), SUMS32(3) : "l"(a), "l"(b));
}

// Waits for the end of the barrier's phase with this parity.
static __device__ __forceinline__ void wait_phase(unsigned barrier, unsigned parity)
{
    asm volatile("{\n.reg .pred ended;\nAGAIN:\nmbarrier.try_wait.parity.shared::cta.b64 ended, [%0], %1;\n@!ended bra AGAIN;\n}" ::"r"(barrier), "r"(parity) : "memory");
}

static __device__ __forceinline__ void copy_box(unsigned to, const TensorMap &map, int x, int row, int batch, unsigned barrier)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];"
                 ::"r"(to), "l"(&map), "r"(x), "r"(row), "r"(batch), "r"(barrier) : "memory");
}

// The same to both blocks of the cluster, at the same place of each, counted by the barrier of each.
static __device__ __forceinline__ void copy_box_to_both(unsigned to, const TensorMap &map, int x, int row, int batch, unsigned barrier)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, %3, %4}], [%5], %6;"
                 ::"r"(to), "l"(&map), "r"(x), "r"(row), "r"(batch), "r"(barrier), "h"((unsigned short)3) : "memory");
}

static __device__ __forceinline__ void sync_cluster()
{
    __syncwarp();
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

extern "C" __global__ void __launch_bounds__(288, 1)
    multiply_wide(const __grid_constant__ TensorMap tm_a, const __grid_constant__ TensorMap tm_b,
                  const __grid_constant__ TensorMap tm_y, int B, int M, int N, int K)
{
    extern __shared__ unsigned char ring_memory[];
    __shared__ unsigned long long barriers[2 * STAGES]; // full ones, then empty ones
    const int lane = threadIdx.x, warp = threadIdx.y, rank = blockIdx.x % 2; // rank: the upper or the lower block of a pair
    const int rows = (M + 255) / 256, cols = (N + 255) / 256, slices = (K + 63) / 64, tiles = rows * cols * B; // tiles of a pair
    const unsigned ring = (shared_address(ring_memory) + 1023) & ~1023u, out = ring + STAGES * STAGE_BYTES + warp * 4096;
    const unsigned full = shared_address(barriers), empty = full + 8 * STAGES;
    if (warp == 0 && lane < 2 * STAGES) // empty ones count the consumers' warps of both blocks
        asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(full + 8 * lane), "r"(lane < STAGES ? 1 : 16) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    sync_cluster();
    unsigned n = 0; // slices until now, of all tiles
    for (int tile = blockIdx.x / 2; tile < tiles; tile += gridDim.x / 2) {
        const int row0 = tile / cols % rows * 256 + rank * 128, col0 = tile % cols * 256, batch = tile / cols / rows;
        if (warp == 8) { // its first lane asks for slices
            for (int t = 0; lane == 0 && t < slices; ++t, ++n) {
                const unsigned a = ring + n % STAGES * STAGE_BYTES, barrier = full + n % STAGES * 8;
                wait_phase(barrier + 8 * STAGES, (n / STAGES % 2) ^ 1);
                asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(STAGE_BYTES) : "memory");
                copy_box(a, tm_a, t * 64, row0, batch, barrier);
                for (int j = rank * 2; j < rank * 2 + 2; ++j) // the other half comes from the other block
                    copy_box_to_both(a + 16384 + j * 8192, tm_b, col0 + j * 64, t * 64, batch, barrier);
            }
            continue;
        }
        float sum[4][8][4] = {};
        for (int t = 0; t < slices; ++t, ++n) {
            const unsigned stage = ring + n % STAGES * STAGE_BYTES, a = stage + warp / 4 * 8192, b = stage + 16384;
            wait_phase(full + n % STAGES * 8, n / STAGES % 2);
            asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
            for (int k = 0; k < 64; k += 16)
                multiply_add_wide(sum, DESCRIBE(a + k * 2, 16), DESCRIBE(b + k * 128, 8192));
            asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 1;" ::: "memory");
            if (lane < 2 && n > 0) // the slice before has been read: a lane tells each block
                asm volatile("{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %0, %1;\nmbarrier.arrive.shared::cluster.b64 _, [there];\n}"
                             ::"r"(empty + (n - 1) % STAGES * 8), "r"(lane) : "memory");
        }
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
        for (int i = 0; i < 4; ++i) { // 16 rows and 64 columns a warp, through two boxes in turn
            asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");
            __syncwarp();
#pragma unroll
            for (int j = 0; j < 8; j += 2)
                asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
                             ::"r"(out + i % 2 * 2048 + lane % 16 * 128 + ((j + lane / 16) ^ (lane % 8)) * 16), "r"(narrow(sum[i][j][0], sum[i][j][1])),
                             "r"(narrow(sum[i][j][2], sum[i][j][3])), "r"(narrow(sum[i][j + 1][0], sum[i][j + 1][1])), "r"(narrow(sum[i][j + 1][2], sum[i][j + 1][3])) : "memory");
            asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
            __syncwarp();
            if (lane == 0)
                asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%1, %2, %3}], [%4];\ncp.async.bulk.commit_group;"
                             ::"l"(&tm_y), "r"(col0 + i * 64), "r"(row0 + warp * 16), "r"(batch), "r"(out + i % 2 * 2048) : "memory");
        }
    }
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); // shared memory has been read, y is written
    sync_cluster(); // the other block no longer arrives at barriers here
}
