// Two kinds of products in an iteration: those on the way from one iteration's carried value to the next (critical), and
// those that only an output needs. Before, both are committed as one group and waited for together:
//   products(next = carried * A); products(out = carried * B);
//   asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
//   asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
//   vectorWork(next, out);

// After: the critical products are a group of their own and issued first; the others run in the shadow of vector work.
packOperands(left, carried);                                     // for the first iteration
for (int i = 0; i < iterations; ++i) {
    hold(left); hold(out);                                       // asm volatile("" : "+r"(x) :: "memory") on each register
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    products(next, left, A);                                     // critical
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    products(out, left, B);                                      // in the shadow
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");

    asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");  // the first group alone; groups end in order
    hold(next);
    vectorWork(rest, next);                                      // touches neither `left` nor `out`: both are in use

    hold(rest); hold(next);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    products(next, rest, S);                                     // the next critical product
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    scale(carried);                                              // vector work that needs none of the results
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    hold(left); hold(out); hold(next); hold(rest);

    packOperands(update, next);                                  // operands of the critical product first
    hold(update); hold(carried);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    products(carried, update, A2);                               // critical: the next carried value
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    packOperands(rest, next);                                    // what only the output needs, in its shadow
    scale(out);
    hold(rest); hold(out);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    products(out, rest, P);
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");

    asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
    hold(carried); hold(update);
    packOperands(left, carried);                                 // the next iteration's operand, in the shadow of `out`
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    hold(out); hold(rest);
    // release the stage, and store `out`
}
// The role of a warp decides the path: take it as uniform over the warp, as the products have to be reached by whole warps:
const int warp = __shfl_sync(~0u, threadIdx.x / 32, 0);
