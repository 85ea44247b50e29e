// before: every tile of rows walks over all column blocks, and masks every element of every block
//   for (int n0 = first; n0 < last; n0 += BN) {
//       load(n0); score = product(n0);
//       for (i...) if (column(i) >= limit(row(i))) score[i] = __int_as_float(0xff800000);
//       ...
//   }

// after: the walk ends where the tile's widest row ends, and only a warp whose rows end in a block masks it
// adapt: here row r of `rows` rows left takes part in the columns before last - (rows - 1 - r): the last row of a tile
// is the widest. Any other monotone limit does, as a window, a prefix length or a band: take the maximum over the tile.
const int end = last - max(0, rows - BM);        // what any row of the tile takes part in; may lie before first
for (int n0 = first; n0 < end; n0 += BN) {       // blocks past `end` are neither copied nor multiplied
    load(n0);                                    // uniform for the block: barriers inside stay reached by all
    score = product(n0);

    // Columns from this block on that the lane's first row takes part in; its other row, 8 below, in 8 more.
    const int limit = last - n0 - (rows - 1 - warpRow - lane / 4);
    if (__any_sync(~0u, limit < BN))             // one test a warp: blocks wholly inside go without the mask
#pragma unroll
        for (int j = 0; j < BN / 8; ++j)
#pragma unroll
            for (int i = 0; i < 4; ++i)
                if (8 * j + lane % 4 * 2 + i % 2 >= limit + i / 2 * 8)
                    score[j][i] = __int_as_float(0xff800000);
    // the rest of the step is unchanged
}
// A lower limit (a window) is skipped likewise: begin at the block of the smallest first column of the tile's rows.
// With a producer or a ring, give it the same number of blocks: (end - first + BN - 1) / BN, which may be negative.
