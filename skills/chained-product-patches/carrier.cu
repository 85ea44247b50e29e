// before: one thread owns one output row; every operand word that it loads serves one multiply-add
//   for (key...) { s = dot(row, a + key); w = weight(s); for (d) result[d] += w * b[key][d]; }

// after: a block of 16 x 16 threads owns BM rows and takes BN columns at a time. Both products of the chain are
// products of tiles in shared memory, a thread owns a patch of each in registers.
constexpr int WIDTH = 128, BM = 64, BN = 64;             // adapt
constexpr int PITCH = WIDTH + 4, WEIGHT_PITCH = BN + 4;  // floats a row: neighbouring rows begin in other banks
const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
float largest[4], sum[4] = {}, result[4][8] = {};
for (int i = 0; i < 4; ++i)
    largest[i] = -1e30f;                                 // finite: a row may have met nothing unmasked yet
for (int n0 = 0; n0 < n; n0 += BN) {
    __syncthreads();
    loadTile(operand, a + n0 * pitch, n - n0);           // rows from n on are zeros
    __syncthreads();
    float score[4][4] = {};                              // rows 4 ty + i, columns tx + 16 j
    for (int d = 0; d < WIDTH; d += 4) {
        float4 x[4], y[4];
        for (int i = 0; i < 4; ++i)
            x[i] = fourAt(rowsTile + (4 * ty + i) * PITCH + d);
        for (int j = 0; j < 4; ++j)
            y[j] = fourAt(operand + (tx + 16 * j) * PITCH + d);
        for (int i = 0; i < 4; ++i)
            for (int j = 0; j < 4; ++j) {
                score[i][j] += x[i].x * y[j].x;
                score[i][j] += x[i].y * y[j].y;
                score[i][j] += x[i].z * y[j].z;
                score[i][j] += x[i].w * y[j].w;
            }
    }
    for (int i = 0; i < 4; ++i) {                        // adapt: what lies between the two products
        float top = largest[i];
        for (int j = 0; j < 4; ++j) {
            if (n0 + tx + 16 * j >= n)                   // adapt: the mask; the rest of the last tile always
                score[i][j] = __int_as_float(0xff800000);
            top = fmaxf(top, score[i][j]);
        }
        for (int step = 1; step < 16; step *= 2)         // the 16 threads of a row are neighbouring lanes
            top = fmaxf(top, __shfl_xor_sync(~0u, top, step));
        const float shrink = expf((largest[i] - top) * scale);
        largest[i] = top;
        sum[i] *= shrink;
        for (int j = 0; j < 8; ++j)
            result[i][j] *= shrink;
        for (int j = 0; j < 4; ++j) {
            const float weight = expf((score[i][j] - top) * scale);
            sum[i] += weight;                            // a thread's share; added over the 16 threads at the end
            weights[(4 * ty + i) * WEIGHT_PITCH + tx + 16 * j] = weight; // operand of the second product
        }
    }
    __syncthreads();                                     // all have read the first operand, weights are there
    loadTile(operand, b + n0 * pitch, n - n0);           // the same room
    __syncthreads();
    for (int key = 0; key < BN; key += 4) {              // rows 4 ty + i, columns 4 tx + (0 to 3) and 64 + 4 tx + (0 to 3)
        float4 w[4];
        for (int i = 0; i < 4; ++i)
            w[i] = fourAt(weights + (4 * ty + i) * WEIGHT_PITCH + key);
#pragma unroll
        for (int step = 0; step < 4; ++step) {
            const float4 low = fourAt(operand + (key + step) * PITCH + 4 * tx);
            const float4 high = fourAt(operand + (key + step) * PITCH + 64 + 4 * tx);
            for (int i = 0; i < 4; ++i) {
                const float weight = step == 0 ? w[i].x : step == 1 ? w[i].y : step == 2 ? w[i].z : w[i].w;
                result[i][0] += weight * low.x;
                result[i][1] += weight * low.y;
                result[i][2] += weight * low.z;
                result[i][3] += weight * low.w;
                result[i][4] += weight * high.x;
                result[i][5] += weight * high.y;
                result[i][6] += weight * high.z;
                result[i][7] += weight * high.w;
            }
        }
    }
}
for (int i = 0; i < 4; ++i)
    for (int step = 1; step < 16; step *= 2)
        sum[i] += __shfl_xor_sync(~0u, sum[i], step);    // before any thread of the warp leaves
