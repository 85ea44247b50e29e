// before: every block runs the same code; tests for mask, first block and a state that is still empty stand in the loop
//   zero(result); reference = -infinity; sum = 0;
//   for (int block = 0; block < mine; ++block) {
//       product(score); if (boundary(block)) mask(score);      // the boundary is in the last block
//       if (block == 0) raise(score);                          // shrinks what is still zero
//       weigh(score, weights); sum += part; add(weights);
//   }

// after: the walk begins at the boundary, whose block is code of its own, and goes backwards. The producer copies the
// blocks in the same order:
for (int block = blocks - 1; block >= 0; --block) {             // producer
    fetch(first, block);
    fetch(second, block);
}

// consumer: blocks beyond its own rows are passed over, then its first block
int block = blocks;
for (; block > mine; --block)
    for (int i = 0; i < 2; ++i) {
        waitPhase(full + 8 * stage, phase);
        leave();
    }
if (mine == 0)
    return;                                                     // adapt: on to the next tile
--block;
{
    float score[64];                                            // arrays of its own: no registers shared with the loop's
    unsigned weights[32];
    waitPhase(full + 8 * stage, phase);
    product(score);
    leave();
    mask(score, block);                                         // without a test: the boundary is here
    for (int half = 0; half < 2; ++half)
        reference[half] = fmaxf(topOf(score, half), -1e30f);    // set, not raised; finite as a row may see nothing yet
    weigh(score, weights);
    sum[0] = part[0];                                           // assigned, not added
    sum[1] = part[1];
    waitPhase(full + 8 * stage, phase);
    // the first instruction of the chain overwrites the sums, so that nothing has to be zeroed: accumulate is false
    //   setp.ne.b32 accumulate, %69, 0;
    //   wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 NAMES64, {%64, %65, %66, %67}, %68, accumulate, 1, 1, 1;
    for (int i = 0; i < 8; ++i)
        multiplyRegisters(result, weights + 4 * i, value + (i * 2048 >> 4), i > 0);
    leave();
}
#pragma unroll 1
for (--block; block >= 0; --block) {
    float score[64];
    unsigned weights[32];
    waitPhase(full + 8 * stage, phase);
    product(score);
    if (least < (block + 1) * BN) {                             // rare: the boundary of 64 rows goes through this block, too
        mask(score, block);
        raise(score);
    }
    weigh(score, weights);                                      // the common case has no mask, no start, nothing to shrink
    sum[0] += part[0];
    sum[1] += part[1];
    leave();
    waitPhase(full + 8 * stage, phase);
    for (int i = 0; i < 8; ++i)
        multiplyRegisters(result, weights + 4 * i, value + (i * 2048 >> 4), 1);
    leave();
}
// where the boundary is at the other end already (a first partial block), the order of the walk stays as it is
