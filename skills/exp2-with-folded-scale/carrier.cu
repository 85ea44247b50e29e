+constexpr float LOG2E = 1.44269504f;
+// 2^v in one instruction, relative error 2^-22; 0 for -infinity and wherever the result were subnormal.
+__device__ float exp2Fast(float v)
+{
+    float e;
+    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(e) : "f"(v));
+    return e;
+}

 // once a row, when the maximum is known to all lanes:
+    const float shift = -top * LOG2E;
 // every element, in each pass, with the same shift:
-        expf(x[c] - top)
+        exp2Fast(fmaf(x[c], LOG2E, shift))

// ADAPT: a factor on the argument, expf(a * x - m) with a row-constant a: fmaf(x, a * LOG2E, -m * LOG2E), where m is
// the maximum of a * x.
// ADAPT: no shift (sigmoid, silu, tanh by exponentials): exp2Fast(x * LOG2E), or -LOG2E for e^-x; see the precision risk.
// ADAPT: a log of the sum (log-softmax, logsumexp): do not return top + log(sum) unexamined; the rounding of shift
// does not cancel there. Take expf(x - top) as exp2Fast((x - top) * LOG2E) instead.
// ADAPT: an online maximum: rescale the old sum by exp2Fast(oldTop * LOG2E - newTop * LOG2E) from the same rounded shifts,
// guarded while oldTop is -infinity.
