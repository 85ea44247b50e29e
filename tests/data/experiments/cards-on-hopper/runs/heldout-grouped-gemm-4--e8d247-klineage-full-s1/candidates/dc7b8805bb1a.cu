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
grid = ["round_up(sm_count, 2)"]
block = ["384"]
shared = "230656"
args = ["tm_a", "tm_b", "offsets", "y", "int G", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// Row r of y is row r of a times b[i], [K,N], where offsets[i] <= r < offsets[i + 1]; bf16 in and out, f32 sums.
//
// Persistent clusters of two blocks walk over tiles of 256 x 256 (or 256 x 208, see Walk) that never cross a group's
// end. A block owns 128 rows of it: one thread walks, tells the consumers the tile, and feeds a ring of 4 stages by TMA
// (its own 128 x 64 of a, and half of the 64 x 256 of b, multicast to both blocks); two warpgroups multiply 64 rows each
// with wgmma. They keep a tile's sums, rounded, in 64 registers, and write them beside the next tile's first products.

#include <cuda_bf16.h>

#define STAGES 4
#define A_BYTES 16384
#define B_BYTES 32768
#define STAGE_BYTES (A_BYTES + B_BYTES)
#define STAGING (STAGES * STAGE_BYTES)
#define BARRIERS (STAGING + 32768)
#define TILES (BARRIERS + 64)

// Tiles of WIDE columns; in some rows of tiles, the last REPLACED of them give way to tiles of NARROW columns.
#define WIDE 256
#define NARROW 208
#define REPLACED 13

typedef unsigned long long u64;

struct alignas(64) TensorMap {
    unsigned long long opaque[16];
};

// ---------------------------------------------------------------------------------------------------------------------
// Barriers and copies
// ---------------------------------------------------------------------------------------------------------------------

__device__ __forceinline__ void cluster_sync()
{
    asm volatile("barrier.cluster.arrive.release;\n\tbarrier.cluster.wait.acquire;" ::: "memory");
}

__device__ __forceinline__ void init_barrier(unsigned bar, unsigned count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}

// Waits for the end of the phase with this parity (0 for the first one).
__device__ __forceinline__ void wait_barrier(unsigned bar, unsigned parity)
{
    unsigned done;
    do {
        asm volatile("{\n\t"
                     ".reg .pred p;\n\t"
                     "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n\t"
                     "selp.u32 %0, 1, 0, p;\n\t"
                     "}"
                     : "=r"(done)
                     : "r"(bar), "r"(parity)
                     : "memory");
    } while (!done);
}

// Arrives, and lets the phase end only after `bytes` have been copied.
__device__ __forceinline__ void expect_bytes(unsigned bar, unsigned bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
}

__device__ __forceinline__ void arrive(unsigned bar)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(bar) : "memory");
}

// Arrives at the same barrier of block `cta` of the cluster. Nothing that was written has to be seen there: no wider
// scope than the default is asked for.
__device__ __forceinline__ void arrive_at(unsigned bar, unsigned cta)
{
    asm volatile("{\n\t"
                 ".reg .b32 remote;\n\t"
                 "mapa.shared::cluster.u32 remote, %0, %1;\n\t"
                 "mbarrier.arrive.shared::cluster.b64 _, [remote];\n\t"
                 "}" ::"r"(bar),
                 "r"(cta)
                 : "memory");
}

__device__ __forceinline__ void prefetch_map(const TensorMap &map)
{
    asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

__device__ __forceinline__ void load_2d(unsigned dst, const TensorMap &map, unsigned bar, int x, int y)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], "
                 "[%2];" ::"r"(dst),
                 "l"(&map), "r"(bar), "r"(x), "r"(y)
                 : "memory");
}

__device__ __forceinline__ void load_3d_both(unsigned dst, const TensorMap &map, unsigned bar, int x, int y, int z)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], "
                 "[%1, {%4, %5, %6}], [%2], %3;" ::"r"(dst),
                 "l"(&map), "r"(bar), "h"((unsigned short)3), "r"(x), "r"(y), "r"(z)
                 : "memory");
}

__device__ __forceinline__ void put4(unsigned at, int x, int y, int z, int w)
{
    asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(x), "r"(y), "r"(z), "r"(w) : "memory");
}

__device__ __forceinline__ uint4 get4(unsigned at)
{
    uint4 v;
    asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "r"(at)
                 : "memory");
    return v;
}

__device__ __forceinline__ unsigned pack(float low, float high)
{
    unsigned both;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
}

// ---------------------------------------------------------------------------------------------------------------------
// wgmma
// ---------------------------------------------------------------------------------------------------------------------

#define D4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define D8(i) D4(i), D4(i + 4)
#define D16(i) D8(i), D8(i + 8)
#define D64(i) D16(i), D16(i + 16), D16(i + 32), D16(i + 48)

// d += A (64 x 16, K-major) times B (16 x 256, N-major)
__device__ __forceinline__ void multiply_add(float (&d)[128], u64 desc_a, u64 desc_b)
{
    asm volatile("{\n\t"
                 ".reg .pred p;\n\t"
                 "setp.ne.b32 p, 1, 0;\n\t"
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
                 "%128, %129, p, 1, 1, 0, 1;\n\t"
                 "}"
                 : D64(0), D64(64)
                 : "l"(desc_a), "l"(desc_b)
                 : "memory");
}

// d += A (64 x 16, K-major) times B (16 x 208, N-major)
__device__ __forceinline__ void multiply_add(float (&d)[104], u64 desc_a, u64 desc_b)
{
    asm volatile("{\n\t"
                 ".reg .pred p;\n\t"
                 "setp.ne.b32 p, 1, 0;\n\t"
                 "wgmma.mma_async.sync.aligned.m64n208k16.f32.bf16.bf16 "
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
                 "%96, %97, %98, %99, %100, %101, %102, %103}, "
                 "%104, %105, p, 1, 1, 0, 1;\n\t"
                 "}"
                 : D64(0), D16(64), D16(80), D8(96)
                 : "l"(desc_a), "l"(desc_b)
                 : "memory");
}

// Starts the products of one stage, 64 deep.
template <int SUMS> __device__ __forceinline__ void start(float (&d)[SUMS], unsigned at, int half)
{
    // Swizzle of 128 bytes; 1024 bytes from 8 rows to the next. In b, 8192 bytes from 64 columns to the next.
    const u64 base_a = (u64(1) << 62) | (u64(64) << 32) | (u64(1) << 16);
    const u64 base_b = (u64(1) << 62) | (u64(64) << 32) | (u64(512) << 16);
    const u64 desc_a = base_a | u64(((at + half * 8192) & 0x3FFFF) >> 4);
    const u64 desc_b = base_b | u64(((at + A_BYTES) & 0x3FFFF) >> 4);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    multiply_add(d, desc_a, desc_b);
    multiply_add(d, desc_a + 2, desc_b + 128);
    multiply_add(d, desc_a + 4, desc_b + 256);
    multiply_add(d, desc_a + 6, desc_b + 384);
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// Waits for them, gives the stage back to both blocks (lane 0 tells block 0, lane 1 block 1), and goes to the next.
__device__ __forceinline__ void finish(unsigned empty, int lane, int &stage, unsigned &phase)
{
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    if (lane < 2)
        arrive_at(empty + 8 * stage, lane);
    if (++stage == STAGES) {
        stage = 0;
        phase ^= 1;
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// The way out: 16 rows a warp, half of the tile's columns at a time, through 4 KiB of the warp's own
// ---------------------------------------------------------------------------------------------------------------------

struct Place {
    int row, col;    // the warp's first row and the tile's first column
    int last, limit; // where the rows and the columns end
};

template <int HALF>
__device__ __forceinline__ void store_half(const unsigned (&sums)[64], const Place &place, unsigned staging, int lane,
                                           __nv_bfloat16 *y, int N)
{
    // Rows of 256 bytes; chunk c of row r is kept at c ^ (r % 8).
    const unsigned put = staging + (lane & 15) * 256 + (((lane >> 4) ^ (lane & 7)) * 16);
    const unsigned get = staging + (lane >> 4) * 256 + (((lane & 15) ^ (lane >> 4)) * 16);
    __syncwarp(); // what was here before has been read
#pragma unroll
    for (int q = 0; q < 8; ++q) {
        const int i = HALF * 32 + q * 4;
        asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(put ^ (q * 32)),
                     "r"(sums[i]), "r"(sums[i + 1]), "r"(sums[i + 2]), "r"(sums[i + 3])
                     : "memory");
    }
    __syncwarp();
    const int c = place.col + HALF * 128 + (lane & 15) * 8;
    const int r = place.row + (lane >> 4);
    const int end = c < place.limit ? place.last : 0;
    __nv_bfloat16 *out = y + size_t(r) * N + c;
#pragma unroll
    for (int part = 0; part < 2; ++part) {
        uint4 v[4];
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const int pair = part * 4 + j;
            v[j] = get4((get ^ (((pair * 2) & 7) * 16)) + pair * 512);
        }
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const int down = (part * 4 + j) * 2;
            if (r + down < end)
                *reinterpret_cast<uint4 *>(out + size_t(down) * N) = v[j];
        }
    }
}

// One tile of WIDTH columns, whose first stage is there. On the way in, `sums` are those of the tile before, which leave
// beside the first products; on the way out, they are this tile's.
template <int WIDTH>
__device__ __forceinline__ void compute(unsigned (&sums)[64], const Place &before, unsigned smem, unsigned staging,
                                        int half, int lane, int steps, int &stage, unsigned &phase, __nv_bfloat16 *y,
                                        int N)
{
    const unsigned full = smem + BARRIERS;
    const unsigned empty = full + 8 * STAGES;

    float d[WIDTH / 2];
#pragma unroll
    for (int i = 0; i < WIDTH / 2; ++i)
        d[i] = 0.0f;

    start(d, smem + stage * STAGE_BYTES, half);
    store_half<0>(sums, before, staging, lane, y, N);
    finish(empty, lane, stage, phase);
    if (steps > 1) {
        wait_barrier(full + 8 * stage, phase);
        start(d, smem + stage * STAGE_BYTES, half);
        store_half<1>(sums, before, staging, lane, y, N);
        finish(empty, lane, stage, phase);
    } else {
        store_half<1>(sums, before, staging, lane, y, N);
    }
    for (int step = 2; step < steps; ++step) {
        wait_barrier(full + 8 * stage, phase);
        start(d, smem + stage * STAGE_BYTES, half);
        finish(empty, lane, stage, phase);
    }

    // No read of the sums moves up before the wait.
#pragma unroll
    for (int i = 0; i < WIDTH / 2; ++i)
        asm volatile("" : "+f"(d[i])::"memory");
#pragma unroll
    for (int i = 0; i < WIDTH / 4; ++i)
        sums[i] = pack(d[2 * i], d[2 * i + 1]);
#pragma unroll
    for (int i = WIDTH / 4; i < 64; ++i)
        sums[i] = 0;
}

// ---------------------------------------------------------------------------------------------------------------------
// The walk over tiles: group by group, in bands of 8 rows of tiles
// ---------------------------------------------------------------------------------------------------------------------

// The last round of the clusters is seldom full. Where its free places allow, some rows of tiles of the last group
// (`cut`, its last ones) end in narrow tiles, more of them, which come last: then no cluster has a wide tile in the last
// round. So the walk has a segment for each group (the last one without its cut rows of tiles), one for the wide tiles of
// the cut ones, and one for the narrow tiles.
struct Walk {
    const int *offsets;
    int groups, N, cut;
    int segment, base, count;
    int group, origin, last, down, across, left, width;

    __device__ __forceinline__ Walk(const int *offsets_, int groups_, int N_, int clusters)
        : offsets(offsets_), groups(groups_), N(N_), cut(0), segment(0), base(0)
    {
        const int all = (N + WIDE - 1) / WIDE;
        int total = 0;
        int bands = 0;
        int before = offsets[0];
        for (int i = 0; i < groups; ++i) {
            const int next = offsets[i + 1];
            bands = (next - before + 255) / 256;
            total += bands * all;
            before = next;
        }
        if (all >= REPLACED) {
            const int narrow = (N - (all - REPLACED) * WIDE + NARROW - 1) / NARROW; // 15 or 16 in place of 13
            const int rounds = (total + clusters - 1) / clusters;
            const int rows = min((rounds * clusters - total) / (narrow - REPLACED), bands);
            if (total - REPLACED * rows <= (rounds - 1) * clusters)
                cut = rows;
        }
        enter();
    }

    __device__ __forceinline__ void enter()
    {
        group = min(segment, groups - 1);
        origin = offsets[group];
        last = offsets[group + 1];
        down = (last - origin + 255) / 256;
        across = (N + WIDE - 1) / WIDE;
        left = 0;
        width = WIDE;
        if (segment == groups - 1) {
            down -= cut;
        } else if (segment >= groups) {
            origin += (down - cut) * 256;
            down = cut;
            across -= REPLACED;
            if (segment > groups) {
                left = across * WIDE;
                across = (N - left + NARROW - 1) / NARROW;
                width = NARROW;
            }
        }
        count = down * across;
    }

    // row: the tile's first row in a and y, col: its first column; false behind the last tile
    __device__ __forceinline__ bool seek(int tile, int &row, int &col)
    {
        while (tile - base >= count) {
            base += count;
            if (++segment > groups + 1)
                return false;
            enter();
        }
        const int inside = tile - base;
        const int band = inside / (8 * across);
        const int rest = inside - band * 8 * across;
        const int height = min(8, down - band * 8);
        const int n = rest / height;
        row = origin + (band * 8 + rest - n * height) * 256;
        col = left + n * width;
        return true;
    }
};

extern "C" __global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(384, 1)
    multiply(const __grid_constant__ TensorMap tm_a, const __grid_constant__ TensorMap tm_b, const int *offsets,
             __nv_bfloat16 *y, int G, int N, int K)
{
    extern __shared__ unsigned char raw[];
    const unsigned smem = ((unsigned)__cvta_generic_to_shared(raw) + 1023u) & ~1023u;
    const unsigned full = smem + BARRIERS;
    const unsigned empty = full + 8 * STAGES;

    unsigned rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));

    if (threadIdx.x == 0) {
        prefetch_map(tm_a);
        prefetch_map(tm_b);
        for (int i = 0; i < STAGES; ++i) {
            init_barrier(full + 8 * i, 1);
            init_barrier(empty + 8 * i, 16); // eight consumer warps in each of two blocks
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    cluster_sync();

    const int steps = (K + 63) / 64;
    const int part = __shfl_sync(0xffffffffu, int(threadIdx.x >> 7), 0);

    if (part == 0) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x == 0) {
            const int clusters = gridDim.x >> 1;
            Walk walk(offsets, G, N, clusters);
            int row, col;
            int stage = 0;
            unsigned phase = 0;
            int turn = 0;
            for (int tile = blockIdx.x >> 1; walk.seek(tile, row, col); tile += clusters) {
                row += int(rank) * 128;
                const int col_b = col + int(rank) * 128;
                for (int step = 0; step < steps; ++step) {
                    const unsigned bar = full + 8 * stage;
                    const unsigned at = smem + stage * STAGE_BYTES;
                    const unsigned at_b = at + A_BYTES + rank * (B_BYTES / 2);
                    wait_barrier(empty + 8 * stage, phase ^ 1); // the parity before the first passes at once
                    if (step == 0) // seen by those who wait for this stage
                        put4(smem + TILES + turn * 16, row, col, walk.last, walk.width);
                    expect_bytes(bar, STAGE_BYTES);
                    load_2d(at, tm_a, bar, step * 64, row);
                    load_3d_both(at_b, tm_b, bar, col_b, step * 64, walk.group);
                    load_3d_both(at_b + 8192, tm_b, bar, col_b + 64, step * 64, walk.group);
                    if (++stage == STAGES) {
                        stage = 0;
                        phase ^= 1;
                    }
                }
                // The ring is 4 stages long and a tile has one at least: 8 places are enough.
                turn = (turn + 1) & 7;
            }
            // There are no more: a stage without bytes.
            wait_barrier(empty + 8 * stage, phase ^ 1);
            put4(smem + TILES + turn * 16, -1, 0, 0, 0);
            arrive(full + 8 * stage);
        }
        __syncwarp();
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        const int half = part - 1;
        const int warp = (threadIdx.x & 127) >> 5;
        const int lane = threadIdx.x & 31;
        const unsigned staging = smem + STAGING + (half * 4 + warp) * 4096;

        unsigned sums[64];
#pragma unroll
        for (int i = 0; i < 64; ++i)
            sums[i] = 0;
        Place before = {0, 0, 0, 0}; // nothing to be written yet

        int stage = 0;
        unsigned phase = 0;
        int turn = 0;
        while (true) {
            wait_barrier(full + 8 * stage, phase);
            const uint4 tile = get4(smem + TILES + turn * 16);
            if (int(tile.x) < 0)
                break;
            if (tile.w == WIDE)
                compute<WIDE>(sums, before, smem, staging, half, lane, steps, stage, phase, y, N);
            else
                compute<NARROW>(sums, before, smem, staging, half, lane, steps, stage, phase, y, N);
            before.row = int(tile.x) + half * 64 + warp * 16;
            before.col = int(tile.y);
            before.last = int(tile.z);
            before.limit = min(N, int(tile.y + tile.w));
            turn = (turn + 1) & 7;
        }
        store_half<0>(sums, before, staging, lane, y, N);
        store_half<1>(sums, before, staging, lane, y, N);
        __syncwarp();
    }

    // No block leaves while the other may still signal its barriers.
    cluster_sync();
}
