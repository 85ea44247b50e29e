// All products of an iteration, transposed, so that what is carried or just computed is the left operand (S is Dk x Dv, X one of
// the tiles of a chunk, C x Dk or C x C):
//   X S     ->  S^T X^T     right operand X: its rows are the columns of the result, ldmatrix
//   A R     ->  R^T A^T     right operand A: the same
//   X^T U   ->  U^T X       right operand X: its rows are summed over, ldmatrix.trans of the same tile
// A warp owns 16 columns of S, as 16 rows of S^T: float state[Dk / 8][4]. Nothing of it goes to another warp.
const int alongRow = lane / 16 * 8 + lane % 8, alongChunk = lane / 8 % 2; // X^T, A^T as right operand
const int acrossRow = lane % 16, acrossChunk = lane / 16;                 // X as right operand
for (int start = 0; start < T; start += 64) {
    copyTile<16>(...); commitCopies(); waitCopies<0>(); // rows after the last token are zeros. Adapt: copy a chunk ahead
    __syncthreads();
    float sums[8][4] = {};                              // S^T X^T
    for (int step = 0; step < Dk / 16; ++step) {
        unsigned left[4], right[4];
        packOperand(left, state[2 * step], state[2 * step + 1]); // rounded for the product; the state itself stays float
        for (int n = 0; n < 4; ++n) {
            loadMatrices(right, tile + place(n * 16 + alongRow, 2 * step + alongChunk));
            multiply(sums[2 * n], left, right[0], right[1]);
            multiply(sums[2 * n + 1], left, right[2], right[3]);
        } // Adapt: multiply other tiles (queries) by the same left operand here
    }
    // Elementwise work in place: sums[n][i] belongs to token n * 8 + lane % 4 * 2 + i % 2 and to column lane / 4 + i / 2 * 8 of
    // the warp. Values that are stored with tokens as rows come in this layout by loadMatricesTransposed.
    unsigned rest[4][4];
    for (int n = 0; n < 4; ++n)
        packOperand(rest[n], sums[2 * n], sums[2 * n + 1]);      // left operand of the next product, R^T A^T, as above
    // ... the updates u[8][4] from R^T A^T, scaled by token, packed again into rest ...
    for (int n = 0; n < Dk / 8; ++n)
        for (int i = 0; i < 4; ++i)
            state[n][i] *= forget;
    for (int step = 0; step < 4; ++step)                // S^T += U^T X
        for (int n = 0; n < Dk / 16; ++n) {
            unsigned right[4];
            loadMatricesTransposed(right, tile + place(step * 16 + acrossRow, 2 * n + acrossChunk));
            multiply(state[2 * n], rest[step], right[0], right[1]);
            multiply(state[2 * n + 1], rest[step], right[2], right[3]);
        }
    __syncthreads();                                    // the next chunk overwrites the tiles
}
// What does not depend on the state and is a right operand (masked scores) is computed by all warps, 16 rows each, packed and
// written to a swizzled tile, with a barrier before it is read. All loops are unrolled: indices of registers have to be constant.
