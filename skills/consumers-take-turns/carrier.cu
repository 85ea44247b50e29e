// before: both consumer warpgroups start their products whenever they get there: at times both multiply at half speed, at
// times both do scalar work and the tensor cores are idle
//   startFirst(); startSecond(); wait; scalar work;

// after: named barriers 1 and 2 are the turns of consumers 0 and 1; 256 threads meet at each: 128 wait, 128 arrive
//   waitTurn(c):  bar.sync 1 + c, 256;      // consumer c waits
//   giveTurn(c):  bar.arrive 1 + c, 256;    // the other one lets it go on, and does not wait itself
if (consumer == 1)
    giveTurn(0);                               // consumer 0 begins
waitTurn(consumer);
startFirst();                                  // first block, before the loop
giveTurn(1 - consumer);
// wait for it, scalar work
for (each further block) {
    waitPhase(full + 8 * stage, phase);        // operands before the turn: no one holds it while it waits for a copy
    waitTurn(consumer);
    startFirst();                              // of the next block
    waitPhase(full + 8 * stage, phase);
    startSecond();                             // of this block; both only issued: wgmma is asynchronous
    giveTurn(1 - consumer);                    // after the issue, not after the products have ended
    // wait for the products, scalar work beside the other consumer's products
}
startSecond();                                 // what is left needs no turn
if (consumer == 0)
    waitTurn(0);                               // takes the turn that was given last: every arrival has its wait
