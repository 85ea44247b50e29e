/*klineage
surface = "opencl"

[[launch]]
kernel = "toy"
grid = ["R"]
block = [1]
args = ["x", "y", "int C"]
*/
kernel of the simulated world;
edit e04(xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx);
edit e05();
edit e09(xxxxxxxxxxxx);
edit e10(xxxxxxxxxxxxxxxxxx);
