/*klineage
surface = "cuda"

[[workspace]]
name = "maps"
dtype = "i32"
shape = ["sm_count * 96 + 32"]
init = "poison"

[[launch]]
kernel = "attention"
grid = ["sm_count"]
block = ["384"]
shared = "231040"
args = ["q", "k", "v", "cu_seqlens_q", "cu_seqlens_k", "output", "maps", "int T", "int B", "int H", "float rsqrt(D)"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// output = softmax(q · kᵀ · scale) · v, a sequence and a head at a time; D is 128.
//
// Persistent clusters of two blocks of three warpgroups; a cluster owns 256 queries of a head, a block 128 of them. One thread
// of warpgroup 0 copies by TMA: this block's Q tile, and its half of each K and V tile of 128 keys, to both blocks. Warpgroups
// 1 and 2 own 64 queries each and use wgmma: S = Q Kᵀ from shared memory, O += P V with P in registers.
// A tile of 128 rows of 128 halves lies in shared memory as two halves of 64 columns, each row 128 bytes, swizzled by 128 bytes.

#include <cuda_fp16.h>

typedef unsigned long long u64;

constexpr int BM = 128;
constexpr int BN = 128;
constexpr int Q_STAGES = 2;
constexpr int K_STAGES = 2;
constexpr int V_STAGES = 3;
constexpr unsigned TILE_BYTES = 128 * 128 * 2;
constexpr unsigned TILE_DESC = TILE_BYTES >> 4;
constexpr unsigned HALF_DESC = (128 * 128) >> 4; // from the first 64 columns of a tile to the other 64

constexpr unsigned Q_OFFSET = 0;
constexpr unsigned K_OFFSET = Q_OFFSET + Q_STAGES * TILE_BYTES;
constexpr unsigned V_OFFSET = K_OFFSET + K_STAGES * TILE_BYTES;
constexpr unsigned BARRIERS = V_OFFSET + V_STAGES * TILE_BYTES;
constexpr unsigned K_FULL = BARRIERS;
constexpr unsigned K_EMPTY = K_FULL + 8 * K_STAGES;
constexpr unsigned V_FULL = K_EMPTY + 8 * K_STAGES;
constexpr unsigned V_EMPTY = V_FULL + 8 * V_STAGES;
constexpr unsigned Q_FULL = V_EMPTY + 8 * V_STAGES;
constexpr unsigned Q_EMPTY = Q_FULL + 8 * Q_STAGES;
constexpr unsigned TASKS = BARRIERS + 128; // 32 bytes for each stage of Q
constexpr unsigned MAPS = BARRIERS + 256;  // three tensor maps of 128 bytes while they are encoded

// ---------------------------------------------------------------------------------------------------------------- barriers

__device__ __forceinline__ void barrierInit(unsigned bar, unsigned count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}

__device__ __forceinline__ void barrierArrive(unsigned bar)
{
    asm volatile("{\n"
                 ".reg .b64 st;\n"
                 "mbarrier.arrive.shared::cta.b64 st, [%0];\n"
                 "}\n" ::"r"(bar)
                 : "memory");
}

__device__ __forceinline__ void barrierExpect(unsigned bar, unsigned bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
}

__device__ __forceinline__ void barrierWait(unsigned bar, unsigned parity)
{
    asm volatile("{\n"
                 ".reg .pred P1;\n"
                 "LAB_WAIT:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;\n"
                 "@P1 bra DONE;\n"
                 "bra LAB_WAIT;\n"
                 "DONE:\n"
                 "}\n" ::"r"(bar),
                 "r"(parity)
                 : "memory");
}

// A warp has read a stage that both blocks fill: lane 0 tells block 0 of the cluster, lane 1 tells block 1.
__device__ __forceinline__ void release(unsigned bar, int lane)
{
    if (lane < 2)
        asm volatile("{\n"
                     ".reg .b32 remote;\n"
                     "mapa.shared::cluster.u32 remote, %0, %1;\n"
                     "mbarrier.arrive.shared::cluster.b64 _, [remote];\n"
                     "}\n" ::"r"(bar),
                     "r"(lane)
                     : "memory");
    __syncwarp();
}

__device__ __forceinline__ void clusterSync()
{
    asm volatile("barrier.cluster.arrive.release;" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
}

__device__ __forceinline__ unsigned clusterRank()
{
    unsigned rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

__device__ __forceinline__ void turnSync(int id)
{
    asm volatile("bar.sync %0, 256;" ::"r"(id) : "memory");
}

__device__ __forceinline__ void turnArrive(int id)
{
    asm volatile("bar.arrive %0, 256;" ::"r"(id) : "memory");
}

template <int STAGES> __device__ __forceinline__ void advance(unsigned &stage, unsigned &phase)
{
    if (++stage == STAGES) {
        stage = 0;
        phase ^= 1u;
    }
}

__device__ __forceinline__ void storeShared(unsigned at, unsigned value)
{
    asm volatile("st.shared.b32 [%0], %1;" ::"r"(at), "r"(value) : "memory");
}

__device__ __forceinline__ unsigned loadShared(unsigned at)
{
    unsigned value;
    asm volatile("ld.shared.b32 %0, [%1];" : "=r"(value) : "r"(at) : "memory");
    return value;
}

// ------------------------------------------------------------------------------------------------------------------- wgmma

#define ACC_LIST                                                                                                         \
    "{%0, %1, %2, %3, %4, %5, %6, %7, "                                                                                  \
    "%8, %9, %10, %11, %12, %13, %14, %15, "                                                                             \
    "%16, %17, %18, %19, %20, %21, %22, %23, "                                                                           \
    "%24, %25, %26, %27, %28, %29, %30, %31, "                                                                           \
    "%32, %33, %34, %35, %36, %37, %38, %39, "                                                                           \
    "%40, %41, %42, %43, %44, %45, %46, %47, "                                                                           \
    "%48, %49, %50, %51, %52, %53, %54, %55, "                                                                           \
    "%56, %57, %58, %59, %60, %61, %62, %63}"

#define ACC_EIGHT(d, i)                                                                                                  \
    "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]),          \
        "+f"(d[i + 7])

#define ACC_OPERANDS(d)                                                                                                  \
    ACC_EIGHT(d, 0), ACC_EIGHT(d, 8), ACC_EIGHT(d, 16), ACC_EIGHT(d, 24), ACC_EIGHT(d, 32), ACC_EIGHT(d, 40),            \
        ACC_EIGHT(d, 48), ACC_EIGHT(d, 56)

// Both operands from shared memory, both with the inner dimension contiguous.
__device__ __forceinline__ void mmaShared(float (&d)[64], u64 a, u64 b, int accumulate)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, %66, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " ACC_LIST ", %64, %65, p, 1, 1, 0, 0;\n"
                 "}\n"
                 : ACC_OPERANDS(d)
                 : "l"(a), "l"(b), "r"(accumulate));
}

// The first operand from registers, the second from shared memory with its outer dimension contiguous.
__device__ __forceinline__ void mmaRegisters(float (&d)[64], unsigned a0, unsigned a1, unsigned a2, unsigned a3, u64 b)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, %69, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " ACC_LIST
                 ", {%64, %65, %66, %67}, %68, p, 1, 1, 1;\n"
                 "}\n"
                 : ACC_OPERANDS(d)
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "l"(b), "r"(1));
}

__device__ __forceinline__ void mmaFence()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void mmaCommit()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

template <int PENDING> __device__ __forceinline__ void mmaWait()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}

// Keeps the compiler from moving other uses of these registers over the fences and waits.
template <int N> __device__ __forceinline__ void pin(float (&r)[N])
{
#pragma unroll
    for (int i = 0; i < N; ++i)
        asm volatile("" : "+f"(r[i])::"memory");
}

template <int N> __device__ __forceinline__ void pin(unsigned (&r)[N])
{
#pragma unroll
    for (int i = 0; i < N; ++i)
        asm volatile("" : "+r"(r[i])::"memory");
}

__device__ __forceinline__ u64 descriptor(unsigned address, unsigned leading, unsigned stride)
{
    return u64((address & 0x3FFFFu) >> 4) | (u64(leading) << 16) | (u64(stride) << 32) | (u64(1) << 62);
}

__device__ __forceinline__ void scores(float (&s)[64], u64 qDesc, u64 kDesc)
{
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        const u64 step = u64((i >> 2) * HALF_DESC + (i & 3) * 2);
        mmaShared(s, qDesc + step, kDesc + step, i != 0 ? 1 : 0);
    }
}

__device__ __forceinline__ void values(float (&o)[64], unsigned (&p)[32], u64 vDesc)
{
#pragma unroll
    for (int i = 0; i < 8; ++i)
        mmaRegisters(o, p[4 * i], p[4 * i + 1], p[4 * i + 2], p[4 * i + 3], vDesc + u64(i * 128));
}

// ----------------------------------------------------------------------------------------------------------------- softmax

__device__ __forceinline__ float ex2(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

__device__ __forceinline__ unsigned pack(float low, float high)
{
    unsigned r;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
    return r;
}

// Keys beyond the sequence's end get no weight.
__device__ __forceinline__ void mask(float (&s)[64], int valid, int quad)
{
    const float lowest = __int_as_float(0xff800000);
    if (valid < BN) {
#pragma unroll
        for (int j = 0; j < 16; ++j) {
            const int column = j * 8 + quad * 2;
            if (column >= valid) {
                s[4 * j] = lowest;
                s[4 * j + 2] = lowest;
            }
            if (column + 1 >= valid) {
                s[4 * j + 1] = lowest;
                s[4 * j + 3] = lowest;
            }
        }
    }
}

// Raises m0 and m1 to the largest scores of this thread's two rows.
__device__ __forceinline__ void rowMax(const float (&s)[64], float &m0, float &m1)
{
    float a = fmaxf(s[0], s[1]), b = fmaxf(s[2], s[3]);
    float c = fmaxf(s[4], s[5]), d = fmaxf(s[6], s[7]);
#pragma unroll
    for (int j = 2; j < 16; j += 2) {
        a = fmaxf(fmaxf(a, s[4 * j]), s[4 * j + 1]);
        b = fmaxf(fmaxf(b, s[4 * j + 2]), s[4 * j + 3]);
        c = fmaxf(fmaxf(c, s[4 * j + 4]), s[4 * j + 5]);
        d = fmaxf(fmaxf(d, s[4 * j + 6]), s[4 * j + 7]);
    }
    a = fmaxf(a, c);
    b = fmaxf(b, d);
    a = fmaxf(a, __shfl_xor_sync(0xffffffffu, a, 1));
    b = fmaxf(b, __shfl_xor_sync(0xffffffffu, b, 1));
    a = fmaxf(a, __shfl_xor_sync(0xffffffffu, a, 2));
    b = fmaxf(b, __shfl_xor_sync(0xffffffffu, b, 2));
    m0 = fmaxf(m0, a);
    m1 = fmaxf(m1, b);
}

// Scores become weights; their sums, of this thread's columns only, are added to l0 and l1.
__device__ __forceinline__ void weigh(float (&s)[64], float factor, float m0, float m1, float &l0, float &l1)
{
    const float k0 = m0 * factor, k1 = m1 * factor;
    float a = 0.0f, b = 0.0f, c = 0.0f, d = 0.0f;
#pragma unroll
    for (int j = 0; j < 16; ++j) {
        s[4 * j] = ex2(fmaf(s[4 * j], factor, -k0));
        s[4 * j + 1] = ex2(fmaf(s[4 * j + 1], factor, -k0));
        s[4 * j + 2] = ex2(fmaf(s[4 * j + 2], factor, -k1));
        s[4 * j + 3] = ex2(fmaf(s[4 * j + 3], factor, -k1));
        a += s[4 * j];
        b += s[4 * j + 1];
        c += s[4 * j + 2];
        d += s[4 * j + 3];
    }
    l0 += a + b;
    l1 += c + d;
}

__device__ __forceinline__ void packWeights(const float (&s)[64], unsigned (&p)[32])
{
#pragma unroll
    for (int i = 0; i < 32; ++i)
        p[i] = pack(s[2 * i], s[2 * i + 1]);
}

// Four lanes with four words each: lane i gives its word j to lane j as word i.
__device__ __forceinline__ void transpose(unsigned (&v)[4], bool odd, bool high)
{
    unsigned r;
    r = __shfl_xor_sync(0xffffffffu, odd ? v[0] : v[1], 1);
    v[0] = odd ? r : v[0];
    v[1] = odd ? v[1] : r;
    r = __shfl_xor_sync(0xffffffffu, odd ? v[2] : v[3], 1);
    v[2] = odd ? r : v[2];
    v[3] = odd ? v[3] : r;
    r = __shfl_xor_sync(0xffffffffu, high ? v[0] : v[2], 2);
    v[0] = high ? r : v[0];
    v[2] = high ? v[2] : r;
    r = __shfl_xor_sync(0xffffffffu, high ? v[1] : v[3], 2);
    v[1] = high ? r : v[1];
    v[3] = high ? v[3] : r;
}

// ------------------------------------------------------------------------------------------------------------------ copies

__device__ __forceinline__ void replaceStride(unsigned scratch, u64 stride)
{
    asm volatile("tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%0], 0, %1;" ::"r"(scratch), "l"(stride)
                 : "memory");
}

// A warp encodes the map of a tensor of T rows of H * 128 halves, with boxes of 64 columns and 64 rows.
__device__ __forceinline__ void encodeMap(unsigned scratch, char *map, const void *tensor, int T, int H, int lane)
{
    const unsigned word = scratch + 4u * unsigned(lane);
    storeShared(word, 0u);
    __syncwarp();
    // Older assemblers store the stride as it is, newer ones in units of 16 bytes: a stride of 8 leaves a trace in the former only.
    if (lane == 0)
        replaceStride(scratch, 8ull);
    __syncwarp();
    const bool raw = __any_sync(0xffffffffu, loadShared(word) != 0u) != 0;
    __syncwarp();
    storeShared(word, 0u);
    __syncwarp();
    if (lane == 0) {
        const u64 stride = u64(H) * 256ull;
        asm volatile("tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%0], %1;" ::"r"(scratch),
                     "l"(reinterpret_cast<u64>(tensor))
                     : "memory");
        asm volatile("tensormap.replace.tile.rank.shared::cta.b1024.b32 [%0], 1;" ::"r"(scratch) : "memory");
        asm volatile("tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%0], 0, %1;" ::"r"(scratch), "r"(64) : "memory");
        asm volatile("tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%0], 1, %1;" ::"r"(scratch), "r"(64) : "memory");
        asm volatile("tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 0, %1;" ::"r"(scratch), "r"(H * 128)
                     : "memory");
        asm volatile("tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 1, %1;" ::"r"(scratch), "r"(T)
                     : "memory");
        replaceStride(scratch, raw ? stride >> 4 : stride);
        asm volatile("tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%0], 0, %1;" ::"r"(scratch), "r"(1)
                     : "memory");
        asm volatile("tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%0], 1, %1;" ::"r"(scratch), "r"(1)
                     : "memory");
        asm volatile("tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%0], 6;" ::"r"(scratch) : "memory");
        asm volatile("tensormap.replace.tile.interleave_layout.shared::cta.b1024.b32 [%0], 0;" ::"r"(scratch) : "memory");
        asm volatile("tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [%0], 3;" ::"r"(scratch) : "memory");
        asm volatile("tensormap.replace.tile.fill_mode.shared::cta.b1024.b32 [%0], 0;" ::"r"(scratch) : "memory");
    }
    __syncwarp();
    asm volatile(
        "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%0], [%1], 128;" ::"l"(map),
        "r"(scratch)
        : "memory");
}

__device__ __forceinline__ void acquireMap(const char *map)
{
    asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(map) : "memory");
}

__device__ __forceinline__ void loadOwn(unsigned to, const char *map, unsigned bar, int column, int row)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
                 " [%0], [%1, {%3, %4}], [%2];" ::"r"(to),
                 "l"(map), "r"(bar), "r"(column), "r"(row)
                 : "memory");
}

__device__ __forceinline__ void loadBoth(unsigned to, const char *map, unsigned bar, int column, int row)
{
    const unsigned short blocks = 3;
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
                 " [%0], [%1, {%4, %5}], [%2], %3;" ::"r"(to),
                 "l"(map), "r"(bar), "h"(blocks), "r"(column), "r"(row)
                 : "memory");
}

// This block's 64 rows of a tile, to both blocks; the other block sends the other 64. The row given is this block's first.
__device__ __forceinline__ void loadHalf(unsigned tile, const char *map, unsigned full, unsigned rank, int column, int row)
{
    barrierExpect(full, TILE_BYTES);
    loadBoth(tile + rank * 8192u, map, full, column, row);
    loadBoth(tile + 16384u + rank * 8192u, map, full, column + 64, row);
}

// ---------------------------------------------------------------------------------------------------------------- schedule

struct Work {
    int head;
    int query; // token of the tile's first query
    int rows;  // queries from there to the end of the sequence, none if not positive
    int key;   // token of the sequence's first key
    int keys;
};

__device__ __forceinline__ bool locate(int pair, const int *cuQ, const int *cuK, int B, int H, int rank, Work &work)
{
    int begin = __ldg(cuQ);
    for (int b = 0; b < B; ++b) {
        const int end = __ldg(cuQ + b + 1);
        const int blocks = (end - begin + 2 * BM - 1) / (2 * BM);
        const int count = blocks * H;
        if (pair < count) {
            const int head = pair / blocks;
            const int block = pair - head * blocks;
            work.head = head;
            work.query = begin + block * (2 * BM) + rank * BM;
            work.rows = end - work.query;
            work.key = __ldg(cuK + b);
            work.keys = __ldg(cuK + b + 1) - work.key;
            return true;
        }
        pair -= count;
        begin = end;
    }
    return false;
}

// What the producer tells the consumers of a tile. No blocks of keys: the output is zero. Fewer than none: there is no more.
struct Task {
    int query, head, rows, blocks;
    int valid; // keys in the last block
};

__device__ __forceinline__ void clear(const Task &task, __half *out, int H, int consumer)
{
    const int thread = threadIdx.x & 127;
    const int end = consumer * 64 + 64 < task.rows ? consumer * 64 + 64 : task.rows;
#pragma unroll 1
    for (int row = consumer * 64 + (thread >> 4); row < end; row += 8)
        *reinterpret_cast<uint4 *>(out + (size_t(task.query + row) * H + task.head) * 128 + (thread & 15) * 8) =
            make_uint4(0u, 0u, 0u, 0u);
    __syncwarp();
}

// Waits for the next tile that has keys; its Q lies in the given stage. What has none on the way gets zeros.
__device__ __forceinline__ bool fetch(Task &task, unsigned base, unsigned &qStage, unsigned &qPhase, __half *out, int H,
                                      int consumer, int lane)
{
    for (;;) {
        barrierWait(base + Q_FULL + 8 * qStage, qPhase);
        const unsigned at = base + TASKS + 32 * qStage;
        task.query = int(loadShared(at));
        task.head = int(loadShared(at + 4));
        task.rows = int(loadShared(at + 8));
        task.blocks = __shfl_sync(0xffffffffu, int(loadShared(at + 12)), 0);
        task.valid = int(loadShared(at + 16));
        if (task.blocks != 0)
            return task.blocks > 0;
        clear(task, out, H, consumer);
        if (lane == 0)
            barrierArrive(base + Q_EMPTY + 8 * qStage);
        __syncwarp();
        advance<Q_STAGES>(qStage, qPhase);
    }
}

__device__ __forceinline__ void finish(const float (&o)[64], float l0, float l1, const Task &task, __half *out, int H,
                                       int consumer, int warp, int lane)
{
    const int quad = lane & 3;
    l0 += __shfl_xor_sync(0xffffffffu, l0, 1);
    l1 += __shfl_xor_sync(0xffffffffu, l1, 1);
    l0 += __shfl_xor_sync(0xffffffffu, l0, 2);
    l1 += __shfl_xor_sync(0xffffffffu, l1, 2);
    const float i0 = l0 > 0.0f ? 1.0f / l0 : 0.0f;
    const float i1 = l1 > 0.0f ? 1.0f / l1 : 0.0f;

    const int row = consumer * 64 + warp * 16 + (lane >> 2);
    const bool odd = (quad & 1) != 0, high = (quad & 2) != 0;
    __half *target = out + (size_t(task.query + row) * H + task.head) * 128 + quad * 8;
    __half *target8 = target + size_t(8) * H * 128;
#pragma unroll
    for (int g = 0; g < 4; ++g) {
        unsigned a[4], b[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int j = 4 * g + i;
            a[i] = pack(o[4 * j] * i0, o[4 * j + 1] * i0);
            b[i] = pack(o[4 * j + 2] * i1, o[4 * j + 3] * i1);
        }
        transpose(a, odd, high);
        transpose(b, odd, high);
        if (row < task.rows)
            *reinterpret_cast<uint4 *>(target + g * 32) = make_uint4(a[0], a[1], a[2], a[3]);
        if (row + 8 < task.rows)
            *reinterpret_cast<uint4 *>(target8 + g * 32) = make_uint4(b[0], b[1], b[2], b[3]);
    }
    __syncwarp();
}

// ------------------------------------------------------------------------------------------------------------------ kernel

extern "C" __global__ __cluster_dims__(2, 1, 1) __launch_bounds__(384, 1) void attention(
    const __half *q, const __half *k, const __half *v, const int *cuQ, const int *cuK, __half *out, int *maps, int T, int B,
    int H, float scale)
{
    extern __shared__ char memory[];
    const unsigned base = (unsigned(__cvta_generic_to_shared(memory)) + 1023u) & ~1023u;
    const int lane = threadIdx.x & 31;
    const int warpIndex = __shfl_sync(0xffffffffu, int(threadIdx.x) / 32, 0);
    const int group = warpIndex >> 2;
    const unsigned rank = clusterRank();

    char *const ownMaps =
        reinterpret_cast<char *>((reinterpret_cast<u64>(maps) + 127ull) & ~127ull) + size_t(blockIdx.x) * 384;

    if (warpIndex < 3) {
        const void *tensor = warpIndex == 0 ? q : (warpIndex == 1 ? k : v);
        encodeMap(base + MAPS + unsigned(warpIndex) * 128u, ownMaps + warpIndex * 128, tensor, T, H, lane);
    } else if (threadIdx.x == 96) {
        for (int i = 0; i < K_STAGES; ++i) {
            barrierInit(base + K_FULL + 8 * i, 1);
            barrierInit(base + K_EMPTY + 8 * i, 16);
        }
        for (int i = 0; i < V_STAGES; ++i) {
            barrierInit(base + V_FULL + 8 * i, 1);
            barrierInit(base + V_EMPTY + 8 * i, 16);
        }
        for (int i = 0; i < Q_STAGES; ++i) {
            barrierInit(base + Q_FULL + 8 * i, 1);
            barrierInit(base + Q_EMPTY + 8 * i, 8);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    clusterSync();

    unsigned kStage = 0, kPhase = 0, vStage = 0, vPhase = 0, qStage = 0, qPhase = 0;

    if (group == 0) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");

        if (threadIdx.x == 0) {
            const char *qMap = ownMaps, *kMap = ownMaps + 128, *vMap = ownMaps + 256;
            acquireMap(qMap);
            acquireMap(kMap);
            acquireMap(vMap);

            Work work;
            const int clusters = int(gridDim.x >> 1);
            for (int pair = int(blockIdx.x >> 1); locate(pair, cuQ, cuK, B, H, int(rank), work); pair += clusters) {
                const int blocks = (work.keys + BN - 1) / BN;
                const int column = work.head * 128;

                const unsigned qFull = base + Q_FULL + 8 * qStage;
                barrierWait(base + Q_EMPTY + 8 * qStage, qPhase ^ 1u);
                const unsigned at = base + TASKS + 32 * qStage;
                storeShared(at, unsigned(work.query));
                storeShared(at + 4, unsigned(work.head));
                storeShared(at + 8, unsigned(work.rows));
                storeShared(at + 12, unsigned(blocks > 0 ? blocks : 0));
                storeShared(at + 16, unsigned(work.keys - (blocks - 1) * BN));
                if (blocks <= 0) {
                    barrierArrive(qFull);
                    advance<Q_STAGES>(qStage, qPhase);
                    continue;
                }
                barrierExpect(qFull, TILE_BYTES);
                const unsigned qTile = base + Q_OFFSET + qStage * TILE_BYTES;
                loadOwn(qTile, qMap, qFull, column, work.query);
                loadOwn(qTile + 8192u, qMap, qFull, column, work.query + 64);
                loadOwn(qTile + 16384u, qMap, qFull, column + 64, work.query);
                loadOwn(qTile + 24576u, qMap, qFull, column + 64, work.query + 64);
                advance<Q_STAGES>(qStage, qPhase);

                const int first = work.key + int(rank) * 64;
                int n = blocks - 1;
                barrierWait(base + K_EMPTY + 8 * kStage, kPhase ^ 1u);
                loadHalf(base + K_OFFSET + kStage * TILE_BYTES, kMap, base + K_FULL + 8 * kStage, rank, column,
                         first + n * BN);
                advance<K_STAGES>(kStage, kPhase);

#pragma unroll 1
                for (; n >= 0; --n) {
                    if (n > 0) {
                        barrierWait(base + K_EMPTY + 8 * kStage, kPhase ^ 1u);
                        loadHalf(base + K_OFFSET + kStage * TILE_BYTES, kMap, base + K_FULL + 8 * kStage, rank, column,
                                 first + (n - 1) * BN);
                        advance<K_STAGES>(kStage, kPhase);
                    }
                    barrierWait(base + V_EMPTY + 8 * vStage, vPhase ^ 1u);
                    loadHalf(base + V_OFFSET + vStage * TILE_BYTES, vMap, base + V_FULL + 8 * vStage, rank, column,
                             first + n * BN);
                    advance<V_STAGES>(vStage, vPhase);
                }
            }

            barrierWait(base + Q_EMPTY + 8 * qStage, qPhase ^ 1u);
            storeShared(base + TASKS + 32 * qStage + 12, unsigned(-1));
            barrierArrive(base + Q_FULL + 8 * qStage);
        }
        __syncwarp();
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");

        const int consumer = group - 1;
        const int warp = warpIndex & 3;
        const int quad = lane & 3;
        const int ownTurn = 1 + consumer;
        const int otherTurn = 2 - consumer;
        const float factor = scale * 1.4426950408889634f;
        const float lowest = __int_as_float(0xff800000);

        const u64 qDesc = descriptor(base + Q_OFFSET + unsigned(consumer) * 8192u, 1, 64);
        const u64 kDesc = descriptor(base + K_OFFSET, 1, 64);
        const u64 vDesc = descriptor(base + V_OFFSET, HALF_DESC, 64);

        if (consumer == 1)
            turnArrive(otherTurn); // the first turn is consumer 0's

        Task task;
        if (fetch(task, base, qStage, qPhase, out, H, consumer, lane)) {
            float o[64], s[64];
            unsigned p[32];
#pragma unroll
            for (int i = 0; i < 64; ++i) {
                o[i] = 0.0f;
                s[i] = 0.0f;
            }
            float m0 = lowest, m1 = lowest, l0 = 0.0f, l1 = 0.0f;

            // The last block of keys comes first: it alone may need a mask.
            barrierWait(base + K_FULL + 8 * kStage, kPhase);
            pin(s);
            mmaFence();
            scores(s, qDesc + u64(qStage * TILE_DESC), kDesc + u64(kStage * TILE_DESC));
            mmaCommit();
            mmaWait<0>();
            pin(s);
            release(base + K_EMPTY + 8 * kStage, lane);
            if (lane == 0 && task.blocks == 1)
                barrierArrive(base + Q_EMPTY + 8 * qStage);
            __syncwarp();
            advance<K_STAGES>(kStage, kPhase);
            unsigned qCurrent = qStage;
            advance<Q_STAGES>(qStage, qPhase);

            mask(s, task.valid, quad);
            rowMax(s, m0, m1);
            weigh(s, factor, m0, m1, l0, l1);
            packWeights(s, p);

#pragma unroll 1
            for (;;) {
#pragma unroll 1
                for (int n = task.blocks - 2; n >= 0; --n) {
                    barrierWait(base + K_FULL + 8 * kStage, kPhase);
                    turnSync(ownTurn);
                    pin(s);
                    pin(o);
                    pin(p);
                    mmaFence();
                    scores(s, qDesc + u64(qCurrent * TILE_DESC), kDesc + u64(kStage * TILE_DESC));
                    mmaCommit();
                    barrierWait(base + V_FULL + 8 * vStage, vPhase);
                    values(o, p, vDesc + u64(vStage * TILE_DESC));
                    mmaCommit();
                    turnArrive(otherTurn);

                    mmaWait<1>();
                    pin(s);
                    release(base + K_EMPTY + 8 * kStage, lane);
                    if (lane == 0 && n == 0)
                        barrierArrive(base + Q_EMPTY + 8 * qCurrent);
                    __syncwarp();
                    advance<K_STAGES>(kStage, kPhase);

                    // A maximum that grew by no more than 2^8 is left as it is: the weights stay far below the largest half,
                    // and every sum keeps the same reference.
                    float n0 = m0, n1 = m1;
                    rowMax(s, n0, n1);
                    const bool grown = (n0 - m0) * factor > 8.0f || (n1 - m1) * factor > 8.0f;
                    const bool rescale = __any_sync(0xffffffffu, grown) != 0;
                    float r0 = 1.0f, r1 = 1.0f;
                    if (rescale) {
                        r0 = ex2((m0 - n0) * factor);
                        r1 = ex2((m1 - n1) * factor);
                        m0 = n0;
                        m1 = n1;
                        l0 *= r0;
                        l1 *= r1;
                    }
                    weigh(s, factor, m0, m1, l0, l1);

                    mmaWait<0>();
                    pin(o);
                    release(base + V_EMPTY + 8 * vStage, lane);
                    advance<V_STAGES>(vStage, vPhase);

                    packWeights(s, p);
                    if (rescale) {
#pragma unroll
                        for (int j = 0; j < 16; ++j) {
                            o[4 * j] *= r0;
                            o[4 * j + 1] *= r0;
                            o[4 * j + 2] *= r1;
                            o[4 * j + 3] *= r1;
                        }
                    }
                }

                // The tile's last product goes together with the first scores of the next tile.
                Task next;
                if (fetch(next, base, qStage, qPhase, out, H, consumer, lane)) {
                    barrierWait(base + K_FULL + 8 * kStage, kPhase);
                    turnSync(ownTurn);
                    pin(s);
                    pin(o);
                    pin(p);
                    mmaFence();
                    scores(s, qDesc + u64(qStage * TILE_DESC), kDesc + u64(kStage * TILE_DESC));
                    mmaCommit();
                    barrierWait(base + V_FULL + 8 * vStage, vPhase);
                    values(o, p, vDesc + u64(vStage * TILE_DESC));
                    mmaCommit();
                    turnArrive(otherTurn);

                    mmaWait<1>();
                    pin(s);
                    release(base + K_EMPTY + 8 * kStage, lane);
                    if (lane == 0 && next.blocks == 1)
                        barrierArrive(base + Q_EMPTY + 8 * qStage);
                    __syncwarp();
                    advance<K_STAGES>(kStage, kPhase);
                    qCurrent = qStage;
                    advance<Q_STAGES>(qStage, qPhase);

                    mask(s, next.valid, quad);
                    float n0 = lowest, n1 = lowest, t0 = 0.0f, t1 = 0.0f;
                    rowMax(s, n0, n1);
                    weigh(s, factor, n0, n1, t0, t1);

                    mmaWait<0>();
                    pin(o);
                    release(base + V_EMPTY + 8 * vStage, lane);
                    advance<V_STAGES>(vStage, vPhase);

                    packWeights(s, p);
                    finish(o, l0, l1, task, out, H, consumer, warp, lane);
#pragma unroll
                    for (int i = 0; i < 64; ++i)
                        o[i] = 0.0f;
                    m0 = n0;
                    m1 = n1;
                    l0 = t0;
                    l1 = t1;
                    task = next;
                } else {
                    barrierWait(base + V_FULL + 8 * vStage, vPhase);
                    turnSync(ownTurn);
                    pin(o);
                    pin(p);
                    mmaFence();
                    values(o, p, vDesc + u64(vStage * TILE_DESC));
                    mmaCommit();
                    turnArrive(otherTurn);
                    mmaWait<0>();
                    pin(o);
                    release(base + V_EMPTY + 8 * vStage, lane);
                    advance<V_STAGES>(vStage, vPhase);
                    finish(o, l0, l1, task, out, H, consumer, warp, lane);
                    break;
                }
            }
        }

        if (consumer == 0)
            turnSync(ownTurn); // takes the turn that nobody needs any more
    }

    // Neither block leaves while the other may still signal or write to it.
    __syncwarp();
    clusterSync();
}
