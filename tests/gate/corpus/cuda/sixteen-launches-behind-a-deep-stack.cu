/*klineage
surface = "cuda"

[[launch]]
kernel = "piece"
when = "0 < ceil_div(R * C, 65536) || 0 == 0"
grid = ["min(64, ceil_div(R * C, 1024))"]
block = [256]
pdl = false
args = ["x", "y", "int R * C", "int 0", "int min(16, ceil_div(R * C, 65536))"]

[[launch]]
kernel = "piece"
when = "1 < ceil_div(R * C, 65536) || 1 == 0"
grid = ["min(64, ceil_div(R * C, 1024))"]
block = [256]
pdl = true
args = ["x", "y", "int R * C", "int 1", "int min(16, ceil_div(R * C, 65536))"]

[[launch]]
kernel = "piece"
when = "2 < ceil_div(R * C, 65536) || 2 == 0"
grid = ["min(64, ceil_div(R * C, 1024))"]
block = [256]
pdl = true
args = ["x", "y", "int R * C", "int 2", "int min(16, ceil_div(R * C, 65536))"]

[[launch]]
kernel = "piece"
when = "3 < ceil_div(R * C, 65536) || 3 == 0"
grid = ["min(64, ceil_div(R * C, 1024))"]
block = [256]
pdl = true
args = ["x", "y", "int R * C", "int 3", "int min(16, ceil_div(R * C, 65536))"]

[[launch]]
kernel = "piece"
when = "4 < ceil_div(R * C, 65536) || 4 == 0"
grid = ["min(64, ceil_div(R * C, 1024))"]
block = [256]
pdl = true
args = ["x", "y", "int R * C", "int 4", "int min(16, ceil_div(R * C, 65536))"]

[[launch]]
kernel = "piece"
when = "5 < ceil_div(R * C, 65536) || 5 == 0"
grid = ["min(64, ceil_div(R * C, 1024))"]
block = [256]
pdl = true
args = ["x", "y", "int R * C", "int 5", "int min(16, ceil_div(R * C, 65536))"]

[[launch]]
kernel = "piece"
when = "6 < ceil_div(R * C, 65536) || 6 == 0"
grid = ["min(64, ceil_div(R * C, 1024))"]
block = [256]
pdl = true
args = ["x", "y", "int R * C", "int 6", "int min(16, ceil_div(R * C, 65536))"]

[[launch]]
kernel = "piece"
when = "7 < ceil_div(R * C, 65536) || 7 == 0"
grid = ["min(64, ceil_div(R * C, 1024))"]
block = [256]
pdl = true
args = ["x", "y", "int R * C", "int 7", "int min(16, ceil_div(R * C, 65536))"]

[[launch]]
kernel = "piece"
when = "8 < ceil_div(R * C, 65536) || 8 == 0"
grid = ["min(64, ceil_div(R * C, 1024))"]
block = [256]
pdl = true
args = ["x", "y", "int R * C", "int 8", "int min(16, ceil_div(R * C, 65536))"]

[[launch]]
kernel = "piece"
when = "9 < ceil_div(R * C, 65536) || 9 == 0"
grid = ["min(64, ceil_div(R * C, 1024))"]
block = [256]
pdl = true
args = ["x", "y", "int R * C", "int 9", "int min(16, ceil_div(R * C, 65536))"]

[[launch]]
kernel = "piece"
when = "10 < ceil_div(R * C, 65536) || 10 == 0"
grid = ["min(64, ceil_div(R * C, 1024))"]
block = [256]
pdl = true
args = ["x", "y", "int R * C", "int 10", "int min(16, ceil_div(R * C, 65536))"]

[[launch]]
kernel = "piece"
when = "11 < ceil_div(R * C, 65536) || 11 == 0"
grid = ["min(64, ceil_div(R * C, 1024))"]
block = [256]
pdl = true
args = ["x", "y", "int R * C", "int 11", "int min(16, ceil_div(R * C, 65536))"]

[[launch]]
kernel = "piece"
when = "12 < ceil_div(R * C, 65536) || 12 == 0"
grid = ["min(64, ceil_div(R * C, 1024))"]
block = [256]
pdl = true
args = ["x", "y", "int R * C", "int 12", "int min(16, ceil_div(R * C, 65536))"]

[[launch]]
kernel = "piece"
when = "13 < ceil_div(R * C, 65536) || 13 == 0"
grid = ["min(64, ceil_div(R * C, 1024))"]
block = [256]
pdl = true
args = ["x", "y", "int R * C", "int 13", "int min(16, ceil_div(R * C, 65536))"]

[[launch]]
kernel = "piece"
when = "14 < ceil_div(R * C, 65536) || 14 == 0"
grid = ["min(64, ceil_div(R * C, 1024))"]
block = [256]
pdl = true
args = ["x", "y", "int R * C", "int 14", "int min(16, ceil_div(R * C, 65536))"]

[[launch]]
kernel = "piece"
when = "15 < ceil_div(R * C, 65536) || 15 == 0"
grid = ["min(64, ceil_div(R * C, 1024))"]
block = [256]
pdl = true
args = ["x", "y", "int R * C", "int 15", "int min(16, ceil_div(R * C, 65536))"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Sixteen launches a run, and a frame of sixteen kibibytes for a case that never comes: what lies in local memory is overwritten before each sample of who has such, which takes longer than to
// send the hundreds of launches of a graph. Its parent, the same without the frame, waits for them within what is timed.

extern "C" __global__ __launch_bounds__(256) void piece(const float *x, float *y, int count, int which, int of)
{
    asm volatile("griddepcontrol.launch_dependents;");
    if (count < 0) { // never
        volatile float deep[4000];
        deep[threadIdx.x] = x[0];
        y[0] = deep[which & 1023];
    }
    for (int i = (which * gridDim.x + blockIdx.x) * 256 + threadIdx.x; i < count; i += of * gridDim.x * 256) {
        const float v = x[i];
        y[i] = v / (1.0f + expf(-v));
    }
}
