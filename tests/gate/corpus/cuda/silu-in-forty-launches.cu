/*klineage
surface = "cuda"

[[launch]]
kernel = "piece"
grid = ["ceil_div(R * C, 40 * 256)"]
block = [256]
args = ["x", "y", "long R * C", "int 0"]

[[launch]]
kernel = "piece"
grid = ["ceil_div(R * C, 40 * 256)"]
block = [256]
args = ["x", "y", "long R * C", "int 1"]

[[launch]]
kernel = "piece"
grid = ["ceil_div(R * C, 40 * 256)"]
block = [256]
args = ["x", "y", "long R * C", "int 2"]

[[launch]]
kernel = "piece"
grid = ["ceil_div(R * C, 40 * 256)"]
block = [256]
args = ["x", "y", "long R * C", "int 3"]

[[launch]]
kernel = "piece"
grid = ["ceil_div(R * C, 40 * 256)"]
block = [256]
args = ["x", "y", "long R * C", "int 4"]

[[launch]]
kernel = "piece"
grid = ["ceil_div(R * C, 40 * 256)"]
block = [256]
args = ["x", "y", "long R * C", "int 5"]

[[launch]]
kernel = "piece"
grid = ["ceil_div(R * C, 40 * 256)"]
block = [256]
args = ["x", "y", "long R * C", "int 6"]

[[launch]]
kernel = "piece"
grid = ["ceil_div(R * C, 40 * 256)"]
block = [256]
args = ["x", "y", "long R * C", "int 7"]

[[launch]]
kernel = "piece"
grid = ["ceil_div(R * C, 40 * 256)"]
block = [256]
args = ["x", "y", "long R * C", "int 8"]

[[launch]]
kernel = "piece"
grid = ["ceil_div(R * C, 40 * 256)"]
block = [256]
args = ["x", "y", "long R * C", "int 9"]

[[launch]]
kernel = "piece"
grid = ["ceil_div(R * C, 40 * 256)"]
block = [256]
args = ["x", "y", "long R * C", "int 10"]

[[launch]]
kernel = "piece"
grid = ["ceil_div(R * C, 40 * 256)"]
block = [256]
args = ["x", "y", "long R * C", "int 11"]

[[launch]]
kernel = "piece"
grid = ["ceil_div(R * C, 40 * 256)"]
block = [256]
args = ["x", "y", "long R * C", "int 12"]

[[launch]]
kernel = "piece"
grid = ["ceil_div(R * C, 40 * 256)"]
block = [256]
args = ["x", "y", "long R * C", "int 13"]

[[launch]]
kernel = "piece"
grid = ["ceil_div(R * C, 40 * 256)"]
block = [256]
args = ["x", "y", "long R * C", "int 14"]

[[launch]]
kernel = "piece"
grid = ["ceil_div(R * C, 40 * 256)"]
block = [256]
args = ["x", "y", "long R * C", "int 15"]

[[launch]]
kernel = "piece"
grid = ["ceil_div(R * C, 40 * 256)"]
block = [256]
args = ["x", "y", "long R * C", "int 16"]

[[launch]]
kernel = "piece"
grid = ["ceil_div(R * C, 40 * 256)"]
block = [256]
args = ["x", "y", "long R * C", "int 17"]

[[launch]]
kernel = "piece"
grid = ["ceil_div(R * C, 40 * 256)"]
block = [256]
args = ["x", "y", "long R * C", "int 18"]

[[launch]]
kernel = "piece"
grid = ["ceil_div(R * C, 40 * 256)"]
block = [256]
args = ["x", "y", "long R * C", "int 19"]

[[launch]]
kernel = "piece"
grid = ["ceil_div(R * C, 40 * 256)"]
block = [256]
args = ["x", "y", "long R * C", "int 20"]

[[launch]]
kernel = "piece"
grid = ["ceil_div(R * C, 40 * 256)"]
block = [256]
args = ["x", "y", "long R * C", "int 21"]

[[launch]]
kernel = "piece"
grid = ["ceil_div(R * C, 40 * 256)"]
block = [256]
args = ["x", "y", "long R * C", "int 22"]

[[launch]]
kernel = "piece"
grid = ["ceil_div(R * C, 40 * 256)"]
block = [256]
args = ["x", "y", "long R * C", "int 23"]

[[launch]]
kernel = "piece"
grid = ["ceil_div(R * C, 40 * 256)"]
block = [256]
args = ["x", "y", "long R * C", "int 24"]

[[launch]]
kernel = "piece"
grid = ["ceil_div(R * C, 40 * 256)"]
block = [256]
args = ["x", "y", "long R * C", "int 25"]

[[launch]]
kernel = "piece"
grid = ["ceil_div(R * C, 40 * 256)"]
block = [256]
args = ["x", "y", "long R * C", "int 26"]

[[launch]]
kernel = "piece"
grid = ["ceil_div(R * C, 40 * 256)"]
block = [256]
args = ["x", "y", "long R * C", "int 27"]

[[launch]]
kernel = "piece"
grid = ["ceil_div(R * C, 40 * 256)"]
block = [256]
args = ["x", "y", "long R * C", "int 28"]

[[launch]]
kernel = "piece"
grid = ["ceil_div(R * C, 40 * 256)"]
block = [256]
args = ["x", "y", "long R * C", "int 29"]

[[launch]]
kernel = "piece"
grid = ["ceil_div(R * C, 40 * 256)"]
block = [256]
args = ["x", "y", "long R * C", "int 30"]

[[launch]]
kernel = "piece"
grid = ["ceil_div(R * C, 40 * 256)"]
block = [256]
args = ["x", "y", "long R * C", "int 31"]

[[launch]]
kernel = "piece"
grid = ["ceil_div(R * C, 40 * 256)"]
block = [256]
args = ["x", "y", "long R * C", "int 32"]

[[launch]]
kernel = "piece"
grid = ["ceil_div(R * C, 40 * 256)"]
block = [256]
args = ["x", "y", "long R * C", "int 33"]

[[launch]]
kernel = "piece"
grid = ["ceil_div(R * C, 40 * 256)"]
block = [256]
args = ["x", "y", "long R * C", "int 34"]

[[launch]]
kernel = "piece"
grid = ["ceil_div(R * C, 40 * 256)"]
block = [256]
args = ["x", "y", "long R * C", "int 35"]

[[launch]]
kernel = "piece"
grid = ["ceil_div(R * C, 40 * 256)"]
block = [256]
args = ["x", "y", "long R * C", "int 36"]

[[launch]]
kernel = "piece"
grid = ["ceil_div(R * C, 40 * 256)"]
block = [256]
args = ["x", "y", "long R * C", "int 37"]

[[launch]]
kernel = "piece"
grid = ["ceil_div(R * C, 40 * 256)"]
block = [256]
args = ["x", "y", "long R * C", "int 38"]

[[launch]]
kernel = "piece"
grid = ["ceil_div(R * C, 40 * 256)"]
block = [256]
args = ["x", "y", "long R * C", "int 39"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Forty launches, each with a fortieth of the elements.
__device__ __forceinline__ float silu(float v) { return v / (1.0f + expf(-v)); }
extern "C" __global__ __launch_bounds__(256) void piece(const float *x, float *y, long long count, int part)
{
    const long long begin = count * part / 40, end = count * (part + 1) / 40;
    for (long long i = begin + blockIdx.x * 256 + threadIdx.x; i < end; i += gridDim.x * 256ll)
        y[i] = silu(x[i]);
}
