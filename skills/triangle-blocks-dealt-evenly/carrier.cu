// Before: warp w computes row w of the N x N blocks of two lower triangular results, either whole rows or up to the
// diagonal: then the last warp has N times the blocks of the first, and all wait for it at the barrier.
//   for (int n = 0; n < N; ++n)
//       if (n <= warp) { multiply(first[n], a, right); multiply(second[n], b, right); }

// After: warp w takes row w of one result and row N - 1 - w of the other: N + 1 blocks each, and none above the diagonal.
constexpr int N = 4;                                       // adapt: warps, and rows of blocks; of one triangle alone,
                                                           // a warp takes rows w and 2 N - 1 - w of 2 N
const int warp = __shfl_sync(~0u, threadIdx.x / 32, 0);    // uniform, so that the branch below is one
float blocks[N + 1][2][4] = {};                            // indexed by constants only: the loop over b is unrolled
for (int step = 0; step < STEPS; ++step) {
    unsigned left[4], other[4], right[4];
    loadMatrices(left, as + place(warp * 16 + lane % 16, 2 * step + lane / 16));
    loadMatrices(other, bs + place((N - 1 - warp) * 16 + lane % 16, 2 * step + lane / 16));
#pragma unroll
    for (int b = 0; b < N + 1; ++b) {
        const int n = b <= warp ? b : b - warp - 1;        // column of blocks, at most the row
        loadMatrices(right, as + place(n * 16 + lane / 16 * 8 + lane % 8, 2 * step + lane / 8 % 2));
        if (b <= warp) {
            multiply(blocks[b][0], left, right[0], right[1]);
            multiply(blocks[b][1], left, right[2], right[3]);
        } else {
            multiply(blocks[b][0], other, right[0], right[1]);
            multiply(blocks[b][1], other, right[2], right[3]);
        }
    }
}
// multiply: mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};

// Elementwise work goes over the same N + 1 blocks; inside a block on the diagonal a comparison sets zeros:
#pragma unroll
for (int b = 0; b < N + 1; ++b) {
    const bool ofFirst = b <= warp;
    const int n = ofFirst ? b : b - warp - 1, row = (ofFirst ? warp : N - 1 - warp) * 16 + lane / 4;
    // end = ofFirst ? row : row + 1;  value = column < end ? f(...) : 0.0f;  write to the result it belongs to
}
__syncthreads();

// A step that occupies only half of the warps runs beside an independent one for the others, not before it:
if (warp < 2)
    smallSerialStep(system);                               // ends with __syncwarp(), no block barrier inside
else
    storeTile(to, staged, threadIdx.x - 64, 64);           // above the diagonal: zeros, without a read
__syncthreads();

// Products with triangular operands leave out the steps in which an operand is zero:
//   if (k >= row + 16) continue;     // the left one, lower triangular
//   if (k < column) continue;        // the right one, lower triangular
