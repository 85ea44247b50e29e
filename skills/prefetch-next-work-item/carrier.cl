// One prefetch a step, in a loop that has load slots to spare, for the work-item that runs next on this core.
// Adapt: which index the device steps first within a group (PoCL: x), and where the next item's input begins.

// 1. Tiles of a matrix product: the next work-item in x has the next 16 columns of b and the same rows of a
    b += col;
+   __global const float *next = b + min(16, N - 16 - col);  // the last tile points at itself, not past the row
    for (int k = 0; k < K; ++k) {
+       __builtin_prefetch(next + k * N);                    // 16 floats: one line where rows are aligned. Clang's, not OpenCL's
        float16 bk = vload16(0, b + k * N);
        #pragma unroll
        for (int i = 0; i < MR; ++i)
            sum[i] += a[i * K + k] * bk;
    }

// 2. Rows of softmax: the next work-item has the next row. The last pass finds its own data in cache
+   __global const float *next = x + min(row + 1, R - 1) * C;
    x += row * C;
    y += row * C;
    …
    for (int c = 0; c < full; c += 16) {
+       __builtin_prefetch(next + c);
        vstore16(vload16(0, y + c) * scale, 0, y + c);
    }

// The group must hold several items along that index: block = ["64"], not ["1"].
