/*klineage
surface = "cuda"

[[launch]]
kernel = "topk_chosen"
when = "S <= 16384"
grid = ["B"]
block = [1024]
shared = "8 * K + 256"
args = ["values", "top_values", "indices", "int S", "int K"]

[[launch]]
kernel = "topk"
when = "S > 16384"
grid = ["ceil_div(S, 256)", "B"]
block = ["256"]
args = ["values", "top_values", "indices", "int S", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// The K largest of each row of S floats with their columns, in descending order.
//
// Choice before order: a block holds a row in registers, as unsigned keys of the same order, and finds the K largest by
// digits of 8 bits, from the top, counted in shared memory. The running sum of the counts, from the largest digit down,
// is where the elements of a digit begin in the order, so the chosen go straight to their digit's range, and are ranked
// against those of that range only. Rows too long for registers are ranked whole.

constexpr int THREADS = 1024;
constexpr int FEW = 32; // a boundary digit of at most so many elements is ranked, not split further

struct Board {
    int ends[4][260]; // of each digit: its count, then where it begins, then (all placed) where it ends; [256]: the first
    int cut[4];       // the boundary: its digit, where it begins, its count
};

template <int ITEMS>
__device__ __forceinline__ void choose(Board &board, unsigned *keys, int *columns, const float *row, float *topValues,
                                       int *indices, int S, int K)
{
    const int thread = threadIdx.x;
    unsigned key[ITEMS];
    unsigned active = 0;
#pragma unroll
    for (int i = 0; i < ITEMS; ++i) {
        const int column = thread + i * THREADS;
        key[i] = 0;
        if (column < S) {
            key[i] = __float_as_uint(row[column]);
            active |= 1u << i;
        }
    }
    board.ends[thread >> 8][thread & 255] = 0;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < ITEMS; ++i)
        key[i] ^= unsigned(int(key[i]) >> 31) | 0x80000000u;

    int above = 0; // elements larger than all those still active
    int count = 0;
    int pass = 0;
    unsigned cut = 0;
#pragma unroll 1
    for (;; ++pass) {
        const int shift = 24 - 8 * pass;
        int *ends = board.ends[pass];
#pragma unroll
        for (int i = 0; i < ITEMS; ++i)
            if (active >> i & 1)
                atomicAdd(&ends[(key[i] >> shift) & 255], 1);
        __syncthreads();
        if (thread < 32) {
            const int first = 8 * (31 - thread); // the first lane has the largest digits
            int4 low = *reinterpret_cast<int4 *>(ends + first);
            int4 high = *reinterpret_cast<int4 *>(ends + first + 4);
            const int counts[8] = {high.w, high.z, high.y, high.x, low.w, low.z, low.y, low.x};
            const int own = ((high.w + high.z) + (high.y + high.x)) + ((low.w + low.z) + (low.y + low.x));
            int sum = own;
#pragma unroll
            for (int o = 1; o < 32; o *= 2) {
                const int other = __shfl_up_sync(0xffffffffu, sum, o);
                if (thread >= o)
                    sum += other;
            }
            int begin[9];
            begin[0] = above + sum - own;
#pragma unroll
            for (int d = 0; d < 8; ++d)
                begin[d + 1] = begin[d] + counts[d];
            if (begin[0] < K && begin[8] >= K) { // the boundary is one of this lane's digits
#pragma unroll
                for (int d = 0; d < 8; ++d)
                    if (begin[d] < K && begin[d + 1] >= K) {
                        board.cut[0] = first + 7 - d;
                        board.cut[1] = begin[d];
                        board.cut[2] = counts[d];
                    }
            }
            high = make_int4(begin[3], begin[2], begin[1], begin[0]);
            low = make_int4(begin[7], begin[6], begin[5], begin[4]);
            *reinterpret_cast<int4 *>(ends + first) = low;
            *reinterpret_cast<int4 *>(ends + first + 4) = high;
            if (thread == 0)
                ends[256] = above;
        }
        __syncthreads();
        const unsigned boundary = unsigned(board.cut[0]);
        above = board.cut[1];
        count = board.cut[2];
        cut |= boundary << shift;
        const bool last = pass == 3 || count <= FEW;
        const unsigned least = last ? boundary : boundary + 1;
#pragma unroll
        for (int i = 0; i < ITEMS; ++i) {
            if (active >> i & 1) {
                const unsigned digit = (key[i] >> shift) & 255;
                if (digit >= least) {
                    const int slot = atomicAdd(&ends[digit], 1);
                    if (slot < K + FEW) {
                        keys[slot] = key[i];
                        columns[slot] = thread + i * THREADS;
                    }
                }
                if (digit != boundary)
                    active &= ~(1u << i);
            }
        }
        if (last)
            break;
    }
    __syncthreads();

    // Two threads an element count those of its range that come before it. After four digits a range is of equals.
    const int half = thread & 1;
    const int placed = pass == 3 ? min(above + count, K) : above + count;
    int flip = THREADS / 2 - 1; // what is left over goes to other warps than the largest, whose ranges are long
#pragma unroll 1
    for (int base = 0; base < placed; base += THREADS / 2, flip ^= THREADS / 2 - 1) {
        const int slot = base + ((thread >> 1) ^ flip);
        const bool used = slot < placed;
        unsigned mine = 0;
        int column = 0;
        int begin = slot;
        int end = slot;
        if (used) {
            mine = keys[slot];
            column = columns[slot];
            const int level = min(__clz(int(mine ^ cut)) >> 3, pass);
            if (level < 3) {
                const int digit = (mine >> (24 - 8 * level)) & 255;
                begin = board.ends[level][digit + 1];
                end = board.ends[level][digit];
            }
        }
        int rank = 0;
#pragma unroll 1
        for (int j = begin + half; j < end; j += 8) {
            unsigned other[4];
#pragma unroll
            for (int u = 0; u < 4; ++u)
                other[u] = j + 2 * u < end ? keys[j + 2 * u] : 0u;
#pragma unroll
            for (int u = 0; u < 4; ++u)
                rank += other[u] > mine || (other[u] == mine && j + 2 * u < slot);
        }
        __syncwarp();
        rank += __shfl_xor_sync(0xffffffffu, rank, 1);
        rank += begin;
        if (used && rank < K) {
            if (half == 0)
                topValues[rank] = __uint_as_float(mine ^ (mine >> 31 ? 0x80000000u : 0xffffffffu));
            else
                indices[rank] = column;
        }
    }
}

extern "C" __global__ __launch_bounds__(1024) void topk_chosen(const float *values, float *topValues, int *indices,
                                                               int S, int K)
{
    extern __shared__ __align__(16) unsigned chosen[];
    __shared__ __align__(16) Board board;
    unsigned *keys = chosen;
    int *columns = reinterpret_cast<int *>(chosen + K + FEW);
    const float *row = values + size_t(blockIdx.x) * S;
    topValues += size_t(blockIdx.x) * K;
    indices += size_t(blockIdx.x) * K;
    if (S <= 4 * THREADS)
        choose<4>(board, keys, columns, row, topValues, indices, S, K);
    else if (S <= 8 * THREADS)
        choose<8>(board, keys, columns, row, topValues, indices, S, K);
    else
        choose<16>(board, keys, columns, row, topValues, indices, S, K);
}

constexpr int TILE = 1024;

extern "C" __global__ __launch_bounds__(256) void topk(const float *values, float *topValues, int *indices, int S,
                                                       int K)
{
    __shared__ float4 tile[TILE / 4];
    const int column = blockIdx.x * 256 + threadIdx.x;
    const float *row = values + size_t(blockIdx.y) * S;
    // Nothing is larger than an infinity, which stands for what lies past the end: its rank is not used.
    const float mine = column < S ? row[column] : __uint_as_float(0x7f800000);
    int rank = 0;
    for (int base = 0; base < S; base += TILE) {
        __syncthreads();
        for (int i = threadIdx.x; i < TILE; i += 256)
            reinterpret_cast<float *>(tile)[i] = base + i < S ? row[base + i] : __uint_as_float(0xffc00000); // NaN
        __syncthreads();
        const int left = column - base; // those before this one are to the left
#pragma unroll 4
        for (int i = 0; i < TILE / 4; ++i) {
            const float4 other = tile[i];
            rank += other.x > mine || (other.x == mine && 4 * i < left);
            rank += other.y > mine || (other.y == mine && 4 * i + 1 < left);
            rank += other.z > mine || (other.z == mine && 4 * i + 2 < left);
            rank += other.w > mine || (other.w == mine && 4 * i + 3 < left);
        }
    }
    if (column < S && rank < K) {
        topValues[size_t(blockIdx.y) * K + rank] = mine;
        indices[size_t(blockIdx.y) * K + rank] = column;
    }
}
