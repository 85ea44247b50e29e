// Before: one thread owns a whole column of the state; the state lives in global memory and is read and
// written again in every step.
//   for (int t = 0; t < steps; ++t) {
//       float a = 0.0f;
//       for (int i = 0; i < ROWS; ++i) a += decay * state[i * ROWS] * x[i];
//       const float u = gate * (target - a);
//       for (int i = 0; i < ROWS; ++i) {
//           const float s = decay * state[i * ROWS] + x[i] * u;   // read-modify-write of memory
//           state[i * ROWS] = s;
//           out += s * y[i];
//       }
//   }

// After: LANES neighbouring lanes share a column, PART elements each, in a register array.
constexpr int ROWS = 128, LANES = 8, PART = ROWS / LANES; // adapt: LANES a power of two, at most 32
const int part = threadIdx.x % LANES;
const int column = blockIdx.x * (THREADS / LANES) + threadIdx.x / LANES;

float state[PART];                       // only ever indexed by constants: every loop over it is unrolled
#pragma unroll
for (int i = 0; i < PART; ++i)           // interleaved: lane `part` has the elements part, part + LANES and so on
    state[i] = initial[(i * LANES + part) * PITCH + column];

for (int t = 0; t < steps; ++t) {        // the same number of steps for all lanes of a warp
    float x[PART], a = 0.0f;             // x is read once a step and used twice
#pragma unroll
    for (int i = 0; i < PART; ++i) {
        x[i] = input[t * ROWS + i * LANES + part];
        state[i] *= decay;               // adapt: the update rule
        a += state[i] * x[i];
    }
    const float u = gate * (target - groupSum(a));   // every lane of the group needs the sum
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < PART; ++i) {
        state[i] += x[i] * u;
        sum += state[i] * readout[t * ROWS + i * LANES + part];
    }
    sum = groupSum(sum);
    if (part == 0)                       // one lane of the group writes the result
        output[t * PITCH + column] = sum;
}
#pragma unroll
for (int i = 0; i < PART; ++i)           // the state goes to memory once, at the end
    final_state[(i * LANES + part) * PITCH + column] = state[i];
