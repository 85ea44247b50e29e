// before: f (here an exponential) is evaluated once for the reduction and again for the result
//   float acc = 0.0f;
//   for (int i = 0; i < n; ++i) acc += f(in[i]);
//   for (int i = 0; i < n; ++i) out[i] = g(f(in[i]), acc);

// after: evaluate once, into the place of the output that the same work-item writes at the end anyway
for (int i = 0; i < n; ++i)
    out[i] = f(in[i]);        // ADAPT: f with exactly the operands of before (here exp(in[i] - top));
                              // a pass of its own: no value is carried from element to element
float acc = 0.0f;
for (int i = 0; i < n; ++i)
    acc += out[i];            // same order of additions as before
for (int i = 0; i < n; ++i)
    out[i] = g(out[i], acc);  // ADAPT: here out[i] / acc; in place, element by element
// out must be readable: __global float *restrict out, not write_only; and of f's own type
// If work-items share a row, each may read back only what it wrote itself, or needs a barrier first.
