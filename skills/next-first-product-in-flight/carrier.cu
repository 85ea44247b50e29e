// before: in a warpgroup, first product, wait, scalar work, second product, wait: nothing of it overlaps
//   for each block: startScores; waitProducts<0>; weigh; packWeights; startProducts; waitProducts<0>;

// after: the first product of the next block is started together with the second product of this one, as two commit groups;
// the scalar work on its sums runs while the second product still does
startScores();                                  // first block, before the loop
waitProducts<0>();
pin(score);
leave(0);
weigh(first);                                   // in place, as floats; `shrink` is for what was added up before
packWeights();                                  // the left operand of the second product, in registers
for (int n0 = first + BN; n0 < last; n0 += BN) {
    const int firstSlab = stage;
    waitPhase(full + 8 * stage, phase);
    startScores();                              // of the next block; wgmma.commit_group.sync.aligned; advances the stage
    const int secondSlab = stage;
    waitPhase(full + 8 * stage, phase);
    startProducts();                            // of this block; wgmma.commit_group.sync.aligned; advances the stage

    asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory"); // the older group: the scores
    pin(score);
    leave(firstSlab);
    weigh(n0);                                  // beside the products in flight: touches neither result nor the packed weights

    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    pin(result);
    pin(weights);
    pin(score);                                 // keeps the scalar work before this wait in what follows
    leave(secondSlab);
#pragma unroll
    for (int i = 0; i < 64; ++i)
        result[i] *= shrink[i / 2 % 2];         // only now: the products in flight add to it
    packWeights();                              // only now: the products in flight read the old ones
}
waitPhase(full + 8 * stage, phase);             // what is left: the second product of the last block
startProducts();
waitProducts<0>();
pin(result);
pin(weights);

// producer: first operands come one block earlier than second ones, in the order in which consumers take them
fetch(first operand, block 0);
for (; n0 + BN < last; n0 += BN) {
    fetch(first operand, n0 + BN);
    fetch(second operand, n0);
}
fetch(second operand, n0);

// startScores and startProducts: pin the registers, wgmma.fence.sync.aligned, the chain of wgmma, commit
// registers: sums of both products and packed weights are live together: 64 + 64 + 32 here
