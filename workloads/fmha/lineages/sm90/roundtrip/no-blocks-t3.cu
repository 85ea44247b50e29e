/*klineage
surface = "cuda"

[[tensormap]]
name = "tm_q"
tensor = "q"
box = [64, 1, 64]
swizzle = "128B"
l2_promotion = "256B"

[[tensormap]]
name = "tm_k"
tensor = "k"
box = [128, 1, 64]
swizzle = "128B"
l2_promotion = "256B"

[[tensormap]]
name = "tm_v"
tensor = "v"
box = [128, 1, 64]
swizzle = "128B"
l2_promotion = "256B"

[[launch]]
kernel = "attention"
grid = ["min(sm_count, (ceil_div(T, 192) + B) * H)"]
block = ["512"]
shared = "214016"
args = ["tm_q", "tm_k", "tm_v", "cu_seqlens_q", "cu_seqlens_k", "output", "int B", "int H", "float rsqrt(D)"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// output = softmax(q · kᵀ · scale) · v, a sequence and a head at a time; D is 128.
//
// One block a multiprocessor walks over tiles of 192 queries of one sequence and head. Warpgroup 0 produces: its
// first warp copies slabs of 128 keys and of 128 values in turn to a ring, its second one the queries. Warpgroups
// 1 to 3 consume, 64 queries each: scores by wgmma from shared memory, weights in registers against a reference
// that is only raised where a score has outgrown it, weighted sums by wgmma with the weights as the left operand.
// While one consumer does scalar work, the others multiply.

struct alignas(64) TensorMap { unsigned long long opaque[16]; };

constexpr int CONSUMERS = 3, BM = 64 * CONSUMERS, BN = 128, STAGES = 5;
constexpr unsigned QUERY_BYTES = 64 * 128 * 2;  // of one consumer: two boxes of 64 rows of 128 bytes
constexpr unsigned SLAB_BYTES = BN * 128 * 2;   // two boxes of 128 rows of 128 bytes
constexpr float SLACK = 8.0f;                   // powers of two by which a score may outgrow its reference

__device__ __forceinline__ unsigned sharedAddress(const void *pointer)
{
    return unsigned(__cvta_generic_to_shared(pointer));
}

__device__ __forceinline__ void initBarrier(unsigned barrier, unsigned arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

__device__ __forceinline__ void expectBytes(unsigned barrier, unsigned bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

__device__ __forceinline__ void arrive(unsigned barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

__device__ __forceinline__ void waitPhase(unsigned barrier, unsigned parity)
{
    asm volatile("{\n"
                 ".reg .pred done;\n"
                 "AGAIN:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@done bra READY;\n"
                 "bra AGAIN;\n"
                 "READY:\n"
                 "}\n" ::"r"(barrier), "r"(parity) : "memory");
}

// A box of 64 numbers of one head for some tokens.
__device__ __forceinline__ void copyBox(unsigned to, const TensorMap *map, int column, int head, int token,
                                        unsigned barrier)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3, %4}], [%5];"
                 ::"r"(to), "l"(map), "r"(column), "r"(head), "r"(token), "r"(barrier) : "memory");
}

// Rows of 128 swizzled bytes along the summed dimension, 8 rows every 1024 bytes.
__device__ __forceinline__ unsigned long long describe(unsigned address)
{
    return (unsigned long long)((address & 0x3ffff) >> 4) | 1ull << 16 | 64ull << 32 | 1ull << 62;
}

// Rows of 128 swizzled bytes along the dimension that is not summed: 8 rows of the summed one every 1024 bytes, the
// next 64 columns a box further.
__device__ __forceinline__ unsigned long long describeTransposed(unsigned address)
{
    return (unsigned long long)((address & 0x3ffff) >> 4) | 1024ull << 16 | 64ull << 32 | 1ull << 62;
}

#define EIGHT(how, d, i) \
    how(d[(i)]), how(d[(i) + 1]), how(d[(i) + 2]), how(d[(i) + 3]), \
    how(d[(i) + 4]), how(d[(i) + 5]), how(d[(i) + 6]), how(d[(i) + 7])

#define SUMS \
    "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}"

// 64 queries times 128 keys, over 128 numbers; complete when it returns.
__device__ __forceinline__ void firstProduct(float (&d)[64], unsigned long long queries, unsigned long long keys)
{
    asm volatile(
        "{\n"
        ".reg .pred none, more;\n"
        ".reg .b64 da, db;\n"
        "setp.ne.b32 none, %66, 0;\n"
        "setp.eq.b32 more, %66, 0;\n"
        "wgmma.fence.sync.aligned;\n"
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " SUMS ", %64, %65, none, 1, 1, 0, 0;\n"
        "add.s64 da, %64, 2;\n"
        "add.s64 db, %65, 2;\n"
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " SUMS ", da, db, more, 1, 1, 0, 0;\n"
        "add.s64 da, %64, 4;\n"
        "add.s64 db, %65, 4;\n"
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " SUMS ", da, db, more, 1, 1, 0, 0;\n"
        "add.s64 da, %64, 6;\n"
        "add.s64 db, %65, 6;\n"
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " SUMS ", da, db, more, 1, 1, 0, 0;\n"
        "add.s64 da, %64, 512;\n"
        "add.s64 db, %65, 1024;\n"
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " SUMS ", da, db, more, 1, 1, 0, 0;\n"
        "add.s64 da, %64, 514;\n"
        "add.s64 db, %65, 1026;\n"
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " SUMS ", da, db, more, 1, 1, 0, 0;\n"
        "add.s64 da, %64, 516;\n"
        "add.s64 db, %65, 1028;\n"
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " SUMS ", da, db, more, 1, 1, 0, 0;\n"
        "add.s64 da, %64, 518;\n"
        "add.s64 db, %65, 1030;\n"
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " SUMS ", da, db, more, 1, 1, 0, 0;\n"
        "wgmma.commit_group.sync.aligned;\n"
        "wgmma.wait_group.sync.aligned 0;\n"
        "}\n"
        : EIGHT("=f", d, 0), EIGHT("=f", d, 8), EIGHT("=f", d, 16), EIGHT("=f", d, 24),
          EIGHT("=f", d, 32), EIGHT("=f", d, 40), EIGHT("=f", d, 48), EIGHT("=f", d, 56)
        : "l"(queries), "l"(keys), "r"(0)
        : "memory");
}

// Adds 64 rows of weights times 128 values of 128 columns; complete when it returns.
__device__ __forceinline__ void secondProduct(float (&d)[64], const unsigned (&w)[32], unsigned long long values)
{
    asm volatile(
        "{\n"
        ".reg .pred more;\n"
        ".reg .b64 db;\n"
        "setp.eq.b32 more, %97, 0;\n"
        "wgmma.fence.sync.aligned;\n"
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " SUMS ", {%64, %65, %66, %67}, %96, more, 1, 1, 1;\n"
        "add.s64 db, %96, 128;\n"
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " SUMS ", {%68, %69, %70, %71}, db, more, 1, 1, 1;\n"
        "add.s64 db, %96, 256;\n"
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " SUMS ", {%72, %73, %74, %75}, db, more, 1, 1, 1;\n"
        "add.s64 db, %96, 384;\n"
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " SUMS ", {%76, %77, %78, %79}, db, more, 1, 1, 1;\n"
        "add.s64 db, %96, 512;\n"
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " SUMS ", {%80, %81, %82, %83}, db, more, 1, 1, 1;\n"
        "add.s64 db, %96, 640;\n"
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " SUMS ", {%84, %85, %86, %87}, db, more, 1, 1, 1;\n"
        "add.s64 db, %96, 768;\n"
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " SUMS ", {%88, %89, %90, %91}, db, more, 1, 1, 1;\n"
        "add.s64 db, %96, 896;\n"
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " SUMS ", {%92, %93, %94, %95}, db, more, 1, 1, 1;\n"
        "wgmma.commit_group.sync.aligned;\n"
        "wgmma.wait_group.sync.aligned 0;\n"
        "}\n"
        : EIGHT("+f", d, 0), EIGHT("+f", d, 8), EIGHT("+f", d, 16), EIGHT("+f", d, 24),
          EIGHT("+f", d, 32), EIGHT("+f", d, 40), EIGHT("+f", d, 48), EIGHT("+f", d, 56)
        : EIGHT("r", w, 0), EIGHT("r", w, 8), EIGHT("r", w, 16), EIGHT("r", w, 24),
          "l"(values), "r"(0)
        : "memory");
}

__device__ __forceinline__ float power(float v)
{
    float e;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(e) : "f"(v));
    return e;
}

__device__ __forceinline__ unsigned pack(float low, float high)
{
    unsigned both;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
}

// The largest of the four lanes that share a row.
__device__ __forceinline__ float quadMax(float v)
{
    v = fmaxf(v, __shfl_xor_sync(~0u, v, 1));
    return fmaxf(v, __shfl_xor_sync(~0u, v, 2));
}

// Tiles are counted sequence by sequence, head by head. A block takes one of each lap of gridDim.x tiles, one place
// further each time, so that tiles that are not full do not always fall to the same blocks. Numbers only grow.
__device__ __forceinline__ int tileNumber(int lap)
{
    const int blocks = int(gridDim.x);
    return lap * blocks + (int(blockIdx.x) + lap) % blocks;
}

// `sequence` and `start`, the number of its first tile, go on from the tile before.
__device__ __forceinline__ bool locate(int number, const int *cuQ, int B, int H, int &sequence, int &start, int &head,
                                       int &row, int &begin, int &length)
{
    for (; sequence < B; ++sequence) {
        begin = cuQ[sequence];
        length = cuQ[sequence + 1] - begin;
        const int tiles = (length + BM - 1) / BM, here = number - start;
        if (here < tiles * H) {
            head = here / tiles;
            row = (here - head * tiles) * BM;
            return true;
        }
        start += tiles * H;
    }
    return false;
}

extern "C" __global__ __launch_bounds__(512, 1) void attention(const __grid_constant__ TensorMap mapQ,
                                                               const __grid_constant__ TensorMap mapK,
                                                               const __grid_constant__ TensorMap mapV,
                                                               const int *cuQ, const int *cuK, uint4 *out,
                                                               int B, int H, float scale)
{
    extern __shared__ unsigned char dynamicShared[];
    __shared__ unsigned long long barriers[2 * STAGES + 2 * CONSUMERS];
    const unsigned full = sharedAddress(barriers), empty = full + 8 * STAGES;
    const unsigned fullQ = empty + 8 * STAGES, emptyQ = fullQ + 8 * CONSUMERS;
    const unsigned queries = (sharedAddress(dynamicShared) + 1023) & ~1023u;
    const unsigned ring = queries + CONSUMERS * QUERY_BYTES;

    const int warpgroup = __shfl_sync(~0u, int(threadIdx.x) / 128, 0);
    const int lane = threadIdx.x % 32;

    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; ++i) {
            initBarrier(full + 8 * i, 1);
            initBarrier(empty + 8 * i, 4 * CONSUMERS);
        }
        for (int i = 0; i < CONSUMERS; ++i) {
            initBarrier(fullQ + 8 * i, 1);
            initBarrier(emptyQ + 8 * i, 4);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();

    int sequence = 0, start = 0, head = 0, row = 0, begin = 0, length = 0;
    int stage = 0;
    unsigned phase = 0;

    if (warpgroup == 0) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 32;");
        if (threadIdx.x == 0) {
            // keys and values
            for (int lap = 0; locate(tileNumber(lap), cuQ, B, H, sequence, start, head, row, begin, length); ++lap) {
                const int last = cuK[sequence + 1];
                for (int token = cuK[sequence]; token < last; token += BN) {
#pragma unroll
                    for (int which = 0; which < 2; ++which) {
                        const TensorMap *map = which == 0 ? &mapK : &mapV;
                        const unsigned barrier = full + 8 * stage, to = ring + stage * SLAB_BYTES;
                        waitPhase(empty + 8 * stage, phase ^ 1);
                        expectBytes(barrier, SLAB_BYTES);
                        copyBox(to, map, 0, head, token, barrier);
                        copyBox(to + SLAB_BYTES / 2, map, 64, head, token, barrier);
                        if (++stage == STAGES) {
                            stage = 0;
                            phase ^= 1;
                        }
                    }
                }
            }
        } else if (threadIdx.x == 32) {
            // queries
            for (int lap = 0; locate(tileNumber(lap), cuQ, B, H, sequence, start, head, row, begin, length); ++lap) {
#pragma unroll 1
                for (int c = 0; c < CONSUMERS; ++c) {
                    const unsigned barrier = fullQ + 8 * c, to = queries + c * QUERY_BYTES;
                    const int token = begin + row + 64 * c;
                    waitPhase(emptyQ + 8 * c, (lap & 1) ^ 1);
                    expectBytes(barrier, QUERY_BYTES);
                    copyBox(to, &mapQ, 0, head, token, barrier);
                    copyBox(to + QUERY_BYTES / 2, &mapQ, 64, head, token, barrier);
                }
            }
        }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 160;");
        const int consumer = warpgroup - 1;
        const unsigned long long left = describe(queries + consumer * QUERY_BYTES);
        const float factor = scale * 1.44269504f;

        // this warp needs the slab no longer
        const auto leave = [&] {
            if (lane == 0)
                arrive(empty + 8 * stage);
            if (++stage == STAGES) {
                stage = 0;
                phase ^= 1;
            }
        };

#pragma unroll 1
        for (int lap = 0; locate(tileNumber(lap), cuQ, B, H, sequence, start, head, row, begin, length); ++lap) {
            int keys = cuK[sequence + 1] - cuK[sequence];
            const int mine = row + 64 * consumer; // first row of this consumer
            waitPhase(fullQ + 8 * consumer, lap & 1);

            if (mine >= length) { // no rows here, but slabs are waited for and left all the same
                if (lane == 0)
                    arrive(emptyQ + 8 * consumer);
#pragma unroll 1
                for (; keys > 0; keys -= BN) {
                    waitPhase(full + 8 * stage, phase);
                    leave();
                    waitPhase(full + 8 * stage, phase);
                    leave();
                }
                continue;
            }
            if (keys <= 0 && lane == 0)
                arrive(emptyQ + 8 * consumer);

            const int inside = mine + int(threadIdx.x) / 32 % 4 * 16 + lane / 4; // row of this lane, and 8 further
            const int rowsLeft = length - inside;
            const int place = (begin + inside) * H + head;

            float result[64], reference[2], sum[2];
#pragma unroll
            for (int i = 0; i < 64; ++i)
                result[i] = 0.0f;
            reference[0] = reference[1] = __int_as_float(0xff800000); // -infinity
            sum[0] = sum[1] = 0.0f;

#pragma unroll 1
            for (; keys > 0; keys -= BN) {
                float score[64];
                waitPhase(full + 8 * stage, phase);
                firstProduct(score, left, describe(ring + stage * SLAB_BYTES));
                leave();
                if (keys <= BN && lane == 0)
                    arrive(emptyQ + 8 * consumer); // the last use of the queries

                if (keys < BN) {
                    const int limit = keys - lane % 4 * 2;
#pragma unroll
                    for (int i = 0; i < 64; ++i)
                        if (i / 4 * 8 + i % 2 >= limit)
                            score[i] = __int_as_float(0xff800000);
                }

                float top[2];
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    float low = score[2 * half], high = score[2 * half + 1];
#pragma unroll
                    for (int i = 4 + 2 * half; i < 64; i += 4) {
                        low = fmaxf(low, score[i]);
                        high = fmaxf(high, score[i + 1]);
                    }
                    top[half] = fmaxf(low, high) * factor;
                }
                // one vote a warp; the first block always raises, since each row has a key in it
                if (__any_sync(~0u, fmaxf(top[0] - reference[0], top[1] - reference[1]) > SLACK)) {
                    float shrink[2];
#pragma unroll
                    for (int half = 0; half < 2; ++half) {
                        const float now = fmaxf(reference[half], quadMax(top[half]));
                        shrink[half] = power(reference[half] - now);
                        reference[half] = now;
                        sum[half] *= shrink[half];
                    }
#pragma unroll
                    for (int i = 0; i < 64; ++i)
                        result[i] *= shrink[i / 2 % 2];
                }

                unsigned weights[32];
#pragma unroll
                for (int i = 0; i < 64; i += 2) {
                    const float low = power(fmaf(score[i], factor, -reference[i / 2 % 2]));
                    const float high = power(fmaf(score[i + 1], factor, -reference[i / 2 % 2]));
                    sum[i / 2 % 2] += low + high;
                    weights[i / 2] = pack(low, high);
                }

                waitPhase(full + 8 * stage, phase);
                secondProduct(result, weights, describeTransposed(ring + stage * SLAB_BYTES));
                leave();
            }

            const bool odd = lane & 1, upper = lane & 2;
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                float total = sum[half];
                total += __shfl_xor_sync(~0u, total, 1);
                total += __shfl_xor_sync(~0u, total, 2);
                const float inverse = total > 0.0f ? 1.0f / total : 0.0f;
                uint4 *to = out + (long long)(place + 8 * half * H) * 16 + lane % 4;
#pragma unroll
                for (int g = 0; g < 4; ++g) {
                    unsigned w[4];
#pragma unroll
                    for (int i = 0; i < 4; ++i)
                        w[i] = pack(result[16 * g + 4 * i + 2 * half] * inverse,
                                    result[16 * g + 4 * i + 2 * half + 1] * inverse);
                    // four lanes of a row exchange words, so that each has 8 columns side by side
#pragma unroll
                    for (int i = 0; i < 4; i += 2) {
                        const unsigned other = __shfl_xor_sync(~0u, odd ? w[i] : w[i + 1], 1);
                        w[i] = odd ? other : w[i];
                        w[i + 1] = odd ? w[i + 1] : other;
                    }
#pragma unroll
                    for (int i = 0; i < 2; ++i) {
                        const unsigned other = __shfl_xor_sync(~0u, upper ? w[i] : w[i + 2], 2);
                        w[i] = upper ? other : w[i];
                        w[i + 2] = upper ? w[i + 2] : other;
                    }
                    if (rowsLeft > 8 * half)
                        to[4 * g] = make_uint4(w[0], w[1], w[2], w[3]);
                }
            }
        }
    }
}
