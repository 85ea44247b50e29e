// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/gate/check/inputs.h"

#include <stdexcept>
#include <string>

namespace klineage::test {

/// A workload of an oracle, whose flops are claimed: so that a small case can be a large one.
struct OracleWorkload {
    std::string oracle;
    std::string dtype = "f16";
    std::string flops = "5000000000";
    int width = 35;     ///< k, channels, or the width of a head
    int kvHeads = 4;    ///< of 4 heads
    bool batch = false; ///< of a product: 5 of them
    bool bias = false;  ///< of a product
};

inline std::string tensorText(const std::string &name, const std::string &role, const std::string &dtype,
                              const std::string &shape, const std::string &more = {})
{
    return "[[tensor]]\nname = \"" + name + "\"\nrole = \"" + role + "\"\ndtype = \"" + dtype
           + "\"\nshape = " + shape + "\n" + more;
}

inline workload::Workload workloadOf(const OracleWorkload &wanted)
{
    const std::string width = std::to_string(wanted.width);
    const std::string &d = wanted.dtype;
    std::string text =
        "name = \"w\"\naxes = [\"M\", \"N\", \"K\"]\nflops = \"" + wanted.flops + "\"\nbytes = \"8 * M\"\n";
    std::string args;
    if (wanted.oracle == "conv2d_nhwc") {
        text += tensorText("x", "input", d, "[\"M\", 7, 5, \"K\"]")
                + tensorText("w", "input", d, "[\"9 * K\", \"N\"]")
                + tensorText("y", "output", d, "[\"M\", 7, 5, \"N\"]");
        args = "data = \"x\", weight = \"w\", out = \"y\"";
    } else if (wanted.oracle.starts_with("attention_varlen")) {
        const std::string offsets = "distribution = { kind = \"offsets\", end = \"M\" }\n";
        const std::string kv = "[\"M\", " + std::to_string(wanted.kvHeads) + ", \"K\"]";
        text += tensorText("q", "input", d, "[\"M\", 4, \"K\"]") + tensorText("k", "input", d, kv)
                + tensorText("v", "input", d, kv);
        text += tensorText("cq", "input", "i32", "[\"N + 1\"]", offsets)
                + tensorText("ck", "input", "i32", "[\"N + 1\"]", offsets)
                + tensorText("y", "output", d, "[\"M\", 4, \"K\"]");
        args = "q = \"q\", k = \"k\", v = \"v\", cu_q = \"cq\", cu_k = \"ck\", out = \"y\"";
    } else {
        const bool grouped = wanted.oracle == "matmul_grouped_nn";
        const std::string lead = wanted.batch ? "[5, " : "[";
        text += tensorText("x", "input", d, lead + "\"M\", \"K\"]")
                + tensorText("w", "input", d,
                             wanted.oracle == "matmul_nt" ? lead + "\"N\", \"K\"]"
                                                          : (grouped ? "[5, " : lead) + "\"K\", \"N\"]")
                + tensorText("y", "output", d, lead + "\"M\", \"N\"]");
        args = "a = \"x\", b = \"w\", out = \"y\"";
        if (grouped) {
            text += tensorText("o", "input", "i32", "[6]",
                               "distribution = { kind = \"offsets\", end = \"M\" }\n");
            args += ", offsets = \"o\"";
        }
        if (wanted.bias) {
            text += tensorText("z", "input", d, "[\"N\"]");
            args += ", bias = \"z\"";
        }
    }
    text += "[[case]]\nname = \"timed\"\naxes = { M = 40, N = 6, K = " + width + " }\n[oracle]\nname = \""
            + wanted.oracle + "\"\nargs = { " + args
            + " }\n[tolerance]\nrel_l2 = 1e-5\nrtol = 1e-6\natol = 1e-6\n";
    auto workload = workload::parseWorkload(text, "test.toml");
    if (!workload)
        throw std::runtime_error(workload.error().message);
    return std::move(*workload);
}

} // namespace klineage::test
