// Before: a thread has one output (row, column) of a sum of products. Both operands come by 2-byte loads,
// and a load of each serves a single product.
//   const int column = index % COLUMNS;
//   const long long row = index / COLUMNS;
//   float sum = 0;
//   for (int k = 0; k < K; ++k)
//       sum += __half2float(a[row * K + k]) * __half2float(b[(long long)k * COLUMNS + column]);
//   out[index] = __float2half_rn(sum);

// After: a thread has 8 neighbouring outputs along the axis that is contiguous both in operand b and in the output.
const int chunks = COLUMNS / 8;                       // COLUMNS % 8 == 0; the grid has 1/8 of the threads
if (index >= (long long)ROWS * chunks)
    return;
const int column = index % chunks * 8;                // first of the 8; neighbouring lanes have neighbouring chunks
const long long row = index / chunks;
float sum[8] = {};                                    // all indices constant after unrolling: stays in registers
for (int k = 0; k < K; ++k) {
    const float value = __half2float(a[row * K + k]); // one scalar load serves 8 products
    const uint4 chunk = *reinterpret_cast<const uint4 *>(b + (long long)k * COLUMNS + column);
    const __half2 *const pairs = reinterpret_cast<const __half2 *>(&chunk);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const float2 pair = __half22float2(pairs[i]);
        sum[2 * i] += value * pair.x;
        sum[2 * i + 1] += value * pair.y;
    }
}
uint4 result;
__half2 *const packed = reinterpret_cast<__half2 *>(&result);
#pragma unroll
for (int i = 0; i < 4; ++i)
    packed[i] = __floats2half2_rn(sum[2 * i], sum[2 * i + 1]);
*reinterpret_cast<uint4 *>(out + row * COLUMNS + column) = result;   // one 16-byte store
// Adapt: guards of the reduction (a window's border, a mask) may depend on row and k, not on the column in the chunk.
// Adapt: launch ceil_div(ROWS * (COLUMNS / 8), threads a block) blocks. For 4-byte elements a chunk is a float4 of 4.
