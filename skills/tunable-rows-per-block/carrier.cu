// In the header: the constant becomes a tunable, its default the value that it had.
+[[tunable]]                      # rows, and so warps, a block
+name = "ROWS"
+default = 4
+values = [2, 4, 8, 16]
 // every launch that depends on it names it
-grid = ["ceil_div(R, 4)"]
-block = ["32", "4"]
+grid = ["ceil_div(R, ROWS)"]
+block = ["32", "ROWS"]
 // In the code: the tunable is defined by the build, so the constant of the same name goes.
-constexpr int ROWS = 4; // rows, and so warps, a block
 // Whatever else follows from the shape is written in ROWS, not in numbers:
 __launch_bounds__(32 * ROWS, 32 / ROWS)        // and shared arrays [ROWS][...], row = blockIdx.x * ROWS + threadIdx.y
// ADAPT: values within 32 * ROWS <= 1024 threads and, for 32 / ROWS, divisors of 32 up to 32 (the quotient must not be 0).
// Do this last, when the rest of the kernel stands, and keep the default unless another value is measurably faster.
