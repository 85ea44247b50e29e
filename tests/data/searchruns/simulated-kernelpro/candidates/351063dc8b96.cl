/*klineage
surface = "opencl"

[[launch]]
kernel = "toy"
grid = ["R"]
block = [1]
args = ["x", "y", "int C"]
*/
kernel of the simulated world;
edit e06(xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx);
edit e09(xxxxxxxxxxxx);
