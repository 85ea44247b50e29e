/*klineage
surface = "cuda"

[[tunable]]
name = "WIDE"
default = 1
values = [0, 1]

[[tunable]]
name = "TYPE_Q"
default = 1
values = [0, 1, 2, 3, 4]

[[tunable]]
name = "TYPE_K"
default = 1
values = [0, 1, 2, 3, 4]

[[tunable]]
name = "TYPE_V"
default = 1
values = [0, 1, 2, 3, 4]

[[tunable]]
name = "COLUMNS"
default = 8
values = [4, 8, 16]

[[tunable]]
name = "CAUSAL"
default = 0
values = [0, 1]

[[launch]]
kernel = "attend"
grid = ["ceil_div(QUERIES, 64) + SEQUENCES", "HEADS"]
block = ["256"]
args = ["q", "k", "v", "query_offsets", "key_offsets", "out", "long SEQUENCES", "long HEADS", "long KV_HEADS", "long DIM", "double 1.0 / sqrt(DIM)"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// softmax(q · kᵀ · scale) · v within each sequence and head, in double: every product, sum and exponential. A block has 64 queries of
// one sequence and head, and goes through its keys 32 at a time; what it has summed is scaled down whenever a larger score comes.
// CAUSAL: of m queries and n keys the i-th query attends to the first i + 1 + n − m only. HEADS / KV_HEADS heads of q share one of k and v.
// A thread holds the scores of queries down, down + 16, … with keys across, across + 16, and as many columns of the result as 16
// threads need for DIM ≤ 16 · COLUMNS. The offsets are 64 bits wide, whatever those of the case are.
#define QUERIES_OF_BLOCK 64
#define KEYS_OF_TILE 32
#define SLICE 16
#define ROW (QUERIES_OF_BLOCK + 1)
#define KEY_ROW (KEYS_OF_TILE + 1)
#define VALUES 2048 // of v in shared memory at a time
#define KEYS_OF_SLICE (VALUES / (16 * COLUMNS))

extern "C" __global__ void __launch_bounds__(256)
    attend(const void *q, const void *k, const void *v, const i64 *queryOffsets, const i64 *keyOffsets, Out *out,
           i64 sequences, i64 heads, i64 kvHeads, i64 dim, double scale)
{
    __shared__ double weights[KEYS_OF_TILE * ROW]; // scores first
    __shared__ double slice[VALUES];               // of q and k, later of v
    __shared__ double largest[QUERIES_OF_BLOCK];
    __shared__ double factors[QUERIES_OF_BLOCK];
    __shared__ double totals[QUERIES_OF_BLOCK];
    double *const queries = slice;
    double *const keys = slice + SLICE * ROW;
    const double infinity = __uint_as_float(0x7f800000u);
    const int thread = threadIdx.x;
    const int across = thread % 16;
    const int down = thread / 16;
    const i64 head = blockIdx.y;
    const i64 kvHead = head / (heads / kvHeads);

    i64 tile = blockIdx.x;
    i64 sequence = 0;
    for (; sequence < sequences; ++sequence) {
        const i64 tiles = (queryOffsets[sequence + 1] - queryOffsets[sequence] + QUERIES_OF_BLOCK - 1) / QUERIES_OF_BLOCK;
        if (tile < tiles)
            break;
        tile -= tiles;
    }
    if (sequence == sequences)
        return; // the whole block
    const i64 query0 = queryOffsets[sequence] + tile * QUERIES_OF_BLOCK;
    const i64 queryEnd = queryOffsets[sequence + 1];
    const i64 keyBegin = keyOffsets[sequence];
    i64 keyEnd = keyOffsets[sequence + 1];
    // The keys from here on are for the block's first query no more, those after the next one for its second, and so on.
    const i64 diagonal = keyEnd - (queryEnd - query0) + 1;
    if (CAUSAL && diagonal + QUERIES_OF_BLOCK - 1 < keyEnd)
        keyEnd = diagonal + QUERIES_OF_BLOCK - 1;

    double sums[4][COLUMNS] = {};
    if (thread < QUERIES_OF_BLOCK) {
        largest[thread] = -infinity;
        totals[thread] = 0;
    }
    for (i64 key0 = keyBegin; key0 < keyEnd; key0 += KEYS_OF_TILE) {
        const int valid = static_cast<int>(keyEnd - key0 < KEYS_OF_TILE ? keyEnd - key0 : KEYS_OF_TILE);
        double scores[4][2] = {};
        for (i64 d0 = 0; d0 < dim; d0 += SLICE) {
            __syncthreads(); // the slice is free
            for (int i = thread; i < QUERIES_OF_BLOCK * SLICE; i += 256) {
                const int row = i / SLICE, d = i % SLICE;
                const bool inside = query0 + row < queryEnd && d0 + d < dim;
                queries[d * ROW + row] =
                    inside ? element<TYPE_Q>(q, ((query0 + row) * heads + head) * dim + d0 + d) : 0.0;
            }
            for (int i = thread; i < KEYS_OF_TILE * SLICE; i += 256) {
                const int row = i / SLICE, d = i % SLICE;
                const bool inside = row < valid && d0 + d < dim;
                keys[d * KEY_ROW + row] =
                    inside ? element<TYPE_K>(k, ((key0 + row) * kvHeads + kvHead) * dim + d0 + d) : 0.0;
            }
            __syncthreads();
#pragma unroll
            for (int d = 0; d < SLICE; ++d) {
                double x[4], y[2];
#pragma unroll
                for (int i = 0; i < 4; ++i)
                    x[i] = queries[d * ROW + down + 16 * i];
#pragma unroll
                for (int j = 0; j < 2; ++j)
                    y[j] = keys[d * KEY_ROW + across + 16 * j];
#pragma unroll
                for (int i = 0; i < 4; ++i)
#pragma unroll
                    for (int j = 0; j < 2; ++j)
                        scores[i][j] += x[i] * y[j];
            }
        }
#pragma unroll
        for (int i = 0; i < 4; ++i)
#pragma unroll
            for (int j = 0; j < 2; ++j)
                weights[(across + 16 * j) * ROW + down + 16 * i] = scores[i][j];
        __syncthreads();
        if (thread < QUERIES_OF_BLOCK) {
            double now = largest[thread];
            for (int key = 0; key < valid && (!CAUSAL || key0 + key < diagonal + thread); ++key)
                now = weights[key * ROW + thread] > now ? weights[key * ROW + thread] : now;
            // While everything is −∞ nothing has been summed.
            factors[thread] = largest[thread] == -infinity ? 0.0 : exp((largest[thread] - now) * scale);
            largest[thread] = now;
        }
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int row = down + 16 * i;
#pragma unroll
            for (int j = 0; j < 2; ++j) {
                const int key = across + 16 * j;
                const double score = scores[i][j];
                const bool counts =
                    key < valid && score != -infinity && (!CAUSAL || key0 + key < diagonal + row);
                weights[key * ROW + row] = counts ? exp((score - largest[row]) * scale) : 0.0;
            }
#pragma unroll
            for (int c = 0; c < COLUMNS; ++c)
                sums[i][c] *= factors[row];
        }
        __syncthreads();
        if (thread < QUERIES_OF_BLOCK) {
            double total = totals[thread] * factors[thread];
            for (int key = 0; key < KEYS_OF_TILE; ++key)
                total += weights[key * ROW + thread];
            totals[thread] = total;
        }
        for (int first = 0; first < KEYS_OF_TILE; first += KEYS_OF_SLICE) {
            if (first > 0)
                __syncthreads(); // the slice is free
            for (int i = thread; i < VALUES; i += 256) {
                const int key = i / (16 * COLUMNS), d = i % (16 * COLUMNS);
                const bool inside = first + key < valid && d < dim;
                slice[i] =
                    inside ? element<TYPE_V>(v, ((key0 + first + key) * kvHeads + kvHead) * dim + d) : 0.0;
            }
            __syncthreads();
#pragma unroll
            for (int key = 0; key < KEYS_OF_SLICE; ++key) {
                double weight[4];
#pragma unroll
                for (int i = 0; i < 4; ++i)
                    weight[i] = weights[(first + key) * ROW + down + 16 * i];
#pragma unroll
                for (int c = 0; c < COLUMNS; ++c) {
                    const double value = slice[key * 16 * COLUMNS + across + 16 * c];
#pragma unroll
                    for (int i = 0; i < 4; ++i)
                        sums[i][c] += weight[i] * value;
                }
            }
        }
    }
    __syncthreads(); // totals
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int row = down + 16 * i;
        if (query0 + row >= queryEnd)
            continue;
#pragma unroll
        for (int c = 0; c < COLUMNS; ++c) {
            const int d = across + 16 * c;
            if (d < dim)
                out[((query0 + row) * heads + head) * dim + d] =
                    static_cast<Out>(sums[i][c] / (CAUSAL && diagonal + row <= keyBegin ? 1.0 : totals[row]));
        }
    }
}
