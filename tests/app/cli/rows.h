// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "tests/patience.h"

#include <QByteArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QProcess>
#include <QString>

#include <string>

/// What the tests of klineage-cli share: a program's outcome, and an operator whose kernels are a few lines.
namespace klineage::tests {

struct Outcome {
    int status = -1; ///< the program's; -1: it did not end by itself
    QByteArray out;
    QByteArray err;
    QJsonObject json; ///< empty when out is no JSON object
};

/// Waits for the end of what was started.
inline Outcome outcomeOf(QProcess &process)
{
    if (!process.waitForFinished(4 * patienceMs))
        qFatal("%s did not end", qPrintable(process.program()));
    Outcome outcome;
    outcome.status = process.exitStatus() == QProcess::NormalExit ? process.exitCode() : -1;
    outcome.out = process.readAllStandardOutput();
    outcome.err = process.readAllStandardError();
    outcome.json = QJsonDocument::fromJson(outcome.out).object();
    return outcome;
}

inline constexpr const char *rowsWorkload = R"toml(name = "rows"
title = "Sum of each row, f32"
axes = ["R", "C"]
flops = "R * C"
bytes = "4 * R * (C + 1)"

[[tensor]]
name = "x"
role = "input"
dtype = "f32"
shape = ["R", "C"]

[[tensor]]
name = "y"
role = "output"
dtype = "f32"
shape = ["R"]

[[case]]
name = "timed"
axes = { R = 256, C = 512 }

[[case]]
name = "odd"
axes = { R = 3, C = 17 }

[oracle]
name = "sum_rows"
args = { in = "x", out = "y" }

[tolerance]
reduction = "C"
)toml";

/// A candidate for it: the body for one row, after which `x` is that row.
inline std::string rowsKernel(const std::string &body)
{
    return "/*klineage\nsurface = \"opencl\"\n\n[[launch]]\nkernel = \"rows\"\ngrid = [\"R\"]\nblock = [1]\n"
           "args = [\"x\", \"y\", \"int C\"]\n*/\n"
           "__kernel void rows(__global const float *x, __global float *y, int C)\n{\n"
           "    x += get_global_id(0) * C;\n"
           + body + "}\n";
}

} // namespace klineage::tests
