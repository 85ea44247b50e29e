// before: each block of scores is walked over for its maximum, the reference is raised to it, then weights are taken
//   top = largest; for (i...) top = fmaxf(top, score[i]);  top = quadMax(top);
//   shrink = exp2((largest - top) * factor);  largest = top;  result *= shrink;  sum *= shrink;
//   for (i...) weight[i] = exp2((score[i] - largest) * factor);

// after: weights are taken against the reference as it is, and their sums, needed anyway, say whether it was too low.
// `factor` is scale * log2(e); the reference is in powers of two. Sums i / 2 % 2: a lane has two rows (adapt).
constexpr float LIMIT = 8192.0f;                 // 2^13; a lane's sum of weights; 16-bit floats (f16) end below 2^16
const auto weigh = [&](unsigned (&weights)[32]) {
    float odd[2] = {};                           // two chains of additions a row
    part[0] = part[1] = 0.0f;
#pragma unroll
    for (int i = 0; i < 64; i += 2) {
        const float low = power(fmaf(score[i], factor, -reference[i / 2 % 2]));      // ex2.approx.ftz.f32
        const float high = power(fmaf(score[i + 1], factor, -reference[i / 2 % 2]));
        weights[i / 2] = pack(low, high);
        part[i / 2 % 2] += low;
        odd[i / 2 % 2] += high;
    }
    part[0] += odd[0];
    part[1] += odd[1];
};
const auto raise = [&] {                         // rare: the maximum, the reference, and the factor for what was added up
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        float low = score[2 * half], high = score[2 * half + 1];
#pragma unroll
        for (int i = 4 + 2 * half; i < 64; i += 4) {
            low = fmaxf(low, score[i]);
            high = fmaxf(high, score[i + 1]);
        }
        // -1e30f keeps the reference finite where a whole block of a row may be masked
        const float top = fmaxf(fmaxf(reference[half], -1e30f), quadMax(fmaxf(low, high)) * factor);
        shrink[half] = power(reference[half] - top);
        reference[half] = top;
        sum[half] *= shrink[half];
    }
};

// Scores and weights in registers of their own: the scores are still there to begin again from.
reference[0] = reference[1] = __int_as_float(0xff800000); // -infinity
sum[0] = sum[1] = 0.0f;
bool raised = firstBlock;                        // the first block has no reference yet
if (!firstBlock) {
    weigh(nextWeights);
    raised = __any_sync(~0u, !(fmaxf(part[0], part[1]) <= LIMIT)); // this way round: true for what is not a number
}
if (raised) {
    raise();
    weigh(nextWeights);                          // once: never a loop until the check passes
}
sum[0] += part[0];
sum[1] += part[1];
waitProducts<0>();                               // products in flight that still add to `result`
if (raised)
#pragma unroll
    for (int i = 0; i < 64; ++i)
        result[i] *= shrink[i / 2 % 2];

// Where registers do not hold both, weights may overwrite the scores and the product is made again. All warps that
// issue a wgmma together then have to decide together, and the operand's slab is given back only afterwards:
//   .reg .pred mine, all;
//   setp.ne.b32 mine, %2, 0;                      // says
//   barrier.cta.red.or.aligned.pred all, %1, 128, mine;   // a named barrier of the warpgroup
//   selp.b32 %0, 1, 0, all;
