// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/workload/workload.h"

#include <QTest>

#include <cmath>

using namespace klineage;
using namespace klineage::workload;

namespace {

const char *const everything = R"(name = "scaled"
title = "Scaled copy"
description = "y = 2 x"
axes = ["R", "C"]
flops = "R * C"
bytes = "8 * R * C"

[[tensor]]
name = "x"
role = "input"
dtype = "f32"
shape = ["R", "2 * C"]
description = "What is copied."
distribution = { kind = "uniform", low = -1, high = 2.5 }

[[tensor]]
name = "y"
role = "output"
dtype = "f16"
shape = ["R", "C"]

[[case]]
name = "timed"
axes = { R = 1024, C = 512 }

[[case]]
name = "small"
axes = { R = 3, C = 4 }
distributions = { x = { kind = "neg_infinity", fraction = 0.5, mean = 0 } }

[oracle]
name = "scale"
args = { in = "x", out = "y" }

[tolerance]
rtol = 5e-4
row_sum = 1e-3
reduction = "C"

[[reference]]
surface = "opencl"
provider = "openblas"
op = "scal"
args = { in = "x", n = "R" }
)";

QString messageOf(const Result<Workload> &workload)
{
    return workload ? QString("no error") : QString::fromStdString(workload.error().message);
}

} // namespace

class TestWorkload : public QObject
{
    Q_OBJECT

private slots:
    void everyKeyIsRead();
    void shapesAndTolerancesOfACase();
    void writingAndReadingAgree();
    void distributionsRoundTrip_data();
    void distributionsRoundTrip();
    void drawnAxesAndExactCases();
    void tolerancesComeFromTheOutputsType_data();
    void tolerancesComeFromTheOutputsType();
    void messages_data();
    void messages();
    void readingNamesTheMissingFile();
};

void TestWorkload::everyKeyIsRead()
{
    const Result<Workload> workload = parseWorkload(everything, "w.toml");
    QVERIFY2(workload, qPrintable(messageOf(workload)));
    QCOMPARE(workload->name, std::string("scaled"));
    QCOMPARE(workload->axes, (std::vector<std::string>{"R", "C"}));
    const Tensor &x = *workload->findTensor("x");
    QCOMPARE(x.role, Role::Input);
    QCOMPARE(x.distribution.kind, DistributionKind::Uniform);
    QCOMPARE(x.distribution.low, -1.0);
    QCOMPARE(x.distribution.high, 2.5);
    QCOMPARE(workload->findTensor("y")->dtype, kernel::DType::F16);
    QVERIFY(!workload->findTensor("z"));
    QCOMPARE(workload->cases.front().name, std::string("timed"));
    const Case &small = *workload->findCase("small");
    QCOMPARE(workload->distributionOf(x, small).kind, DistributionKind::NegInfinity);
    QCOMPARE(workload->distributionOf(x, small).mean, 0.0);
    QCOMPARE(workload->distributionOf(x, workload->cases.front()).kind, DistributionKind::Uniform);
    QCOMPARE(workload->oracle, std::string("scale"));
    QCOMPARE(workload->oracleArgs.at("out"), std::string("y"));
    QCOMPARE(workload->references.at(0).provider, std::string("openblas"));
    QCOMPARE(workload->references.at(0).args.at("n"), std::string("R"));
    QCOMPARE(workload->flops.evaluateReal(workload->bindings(small)).value(), 12.0);
}

void TestWorkload::shapesAndTolerancesOfACase()
{
    const Workload workload = parseWorkload(everything, "w.toml").value();
    const Case &small = *workload.findCase("small");
    const auto buffers = workload.buffersOf(small).value();
    QCOMPARE(buffers.at(0).shape, (std::vector<std::int64_t>{3, 8}));
    QCOMPARE(buffers.at(0).bytes(), std::int64_t{96});
    QCOMPARE(buffers.at(1).bytes(), std::int64_t{24});
    QCOMPARE(workload.shapeOf(workload.tensors[1], small).value(), (std::vector<std::int64_t>{3, 4}));
    const Tolerance limits = workload.toleranceFor(small).value();
    QCOMPARE(limits.rtol, 5e-4);
    QCOMPARE(limits.relL2, 4e-4); // the class of f16
    QCOMPARE(limits.rowSum, 1e-3);
    QVERIFY(std::fabs(limits.atol - 1e-3 / 16) < 1e-12); // √(4 / 1024) is 1/16
}

void TestWorkload::writingAndReadingAgree()
{
    const Workload workload = parseWorkload(everything, "w.toml").value();
    const std::string written = writeWorkload(workload);
    const Result<Workload> again = parseWorkload(written, "again.toml");
    QVERIFY2(again, qPrintable(messageOf(again)));
    QCOMPARE(writeWorkload(*again), written);
    QCOMPARE(again->tensors[0].distribution, workload.tensors[0].distribution);
    QCOMPARE(again->cases[1].distributions.at("x"), workload.cases[1].distributions.at("x"));
    QCOMPARE(again->tolerance.atol, workload.tolerance.atol);
    QVERIFY(written.find("axes = { R = 1024, C = 512 }") != std::string::npos);
}

void TestWorkload::distributionsRoundTrip_data()
{
    QTest::addColumn<QString>("written");
    QTest::newRow("unit rows") << "{ kind = \"unit_rows\", epsilon = 0.5, mean = 0.0 }";
    QTest::newRow("sigmoid") << "{ kind = \"sigmoid\", stddev = 3.0 }";
    QTest::newRow("log gates") << "{ kind = \"log_gates\", share = 1.0, divisor = 0.25, mean = 0.0 }";
    QTest::newRow("defaults") << "{ kind = \"log_gates\" }";
    QTest::newRow("mixed")
        << "{ kind = \"mixed\", spread = 1.0, outliers = 0.001, scale = 200.0, tails = 0.5, mean = 0.0 }";
}

void TestWorkload::distributionsRoundTrip()
{
    QFETCH(const QString, written);
    QString text = everything;
    text.replace("{ kind = \"uniform\", low = -1, high = 2.5 }", written);
    const Workload workload = parseWorkload(text.toStdString(), "w.toml").value();
    const std::string again = writeWorkload(workload);
    QVERIFY2(again.find("distribution = " + written.toStdString()) != std::string::npos, again.c_str());
    QCOMPARE(parseWorkload(again, "again.toml")->tensors[0].distribution, workload.tensors[0].distribution);
}

void TestWorkload::drawnAxesAndExactCases()
{
    const std::string text =
        std::string(everything)
            .replace(
                std::string(everything).find("[oracle]"), 0,
                "[[case]]\nname = \"hidden\"\naxes = { C = 7 }\ndrawn = { R = { from = 8, to = 30, step = 4 } }\n"
                "distributions = { x = { kind = \"integers\", low = -3, high = 4 } }\nexact = true\n\n");
    const Workload workload = parseWorkload(text, "w.toml").value();
    const Case &hidden = *workload.findCase("hidden");
    QCOMPARE(hidden.axes, (std::map<std::string, std::int64_t>{{"C", 7}, {"R", 8}}));
    QCOMPARE(hidden.drawn.at("R").count(), std::int64_t{6}); // 8 12 16 20 24 28
    const Case drawn = drawnAt(hidden, {{"R", 6 + 5}});
    QCOMPARE(drawn.axes.at("R"), std::int64_t{28});
    QCOMPARE(drawn.axes.at("C"), std::int64_t{7});
    QCOMPARE(drawn.name, std::string("hidden (R = 28)"));
    QVERIFY(drawn.drawn.empty() && drawn.exact);
    QCOMPARE(drawn.distributions.at("x").low, -3.0);
    QCOMPARE(drawnAt(workload.cases[1], {}).name, std::string("small"));
    const Tolerance limits = workload.toleranceFor(drawn).value();
    QVERIFY(limits.exact && limits.relL2 == 0 && limits.rtol == 0 && limits.atol == 0);
    QCOMPARE(limits.rowSum, 1e-3);
    QVERIFY(!workload.toleranceFor(workload.cases[1])->exact);
    const std::string written = writeWorkload(workload);
    QVERIFY2(written.find("axes = { C = 7 }\ndrawn = { R = { from = 8, to = 30, step = 4 } }\n")
                 != std::string::npos,
             written.c_str());
    const Workload again = parseWorkload(written, "again.toml").value();
    QCOMPARE(writeWorkload(again), written);
    QCOMPARE(again.findCase("hidden")->drawn, hidden.drawn);
    QVERIFY(again.findCase("hidden")->exact);
}

void TestWorkload::tolerancesComeFromTheOutputsType_data()
{
    QTest::addColumn<QString>("dtype");
    QTest::addColumn<double>("relL2");
    QTest::addColumn<double>("rtol");
    QTest::newRow("f32") << "f32" << 1e-5 << 1.3e-6;
    QTest::newRow("tf32") << "tf32" << 1e-3 << 1e-3;
    QTest::newRow("f16") << "f16" << 4e-4 << 1e-3;
    QTest::newRow("bf16") << "bf16" << 3e-3 << 1.6e-2;
    QTest::newRow("f8") << "f8e4m3" << 4e-3 << 2e-2;
    QTest::newRow("integers are exact") << "i32" << 0.0 << 0.0;
}

void TestWorkload::tolerancesComeFromTheOutputsType()
{
    QFETCH(QString, dtype);
    QFETCH(double, relL2);
    QFETCH(double, rtol);
    QString text = everything;
    text.replace("\"f16\"", '"' + dtype + '"');
    text.replace("[tolerance]\nrtol = 5e-4\n", "[tolerance]\n");
    const Result<Workload> workload = parseWorkload(text.toStdString(), "w.toml");
    QVERIFY2(workload, qPrintable(messageOf(workload)));
    QCOMPARE(workload->tolerance.relL2, relL2);
    QCOMPARE(workload->tolerance.rtol, rtol);
}

void TestWorkload::messages_data()
{
    QTest::addColumn<QString>("from");
    QTest::addColumn<QString>("to");
    QTest::addColumn<QString>("message");
    const auto row = [](const char *name, const char *from, const char *to, const char *message) {
        QTest::newRow(name) << from << to << message;
    };
    row("name", "\"scaled\"", "\"Scaled Copy\"",
        "w.toml:1:8: 'name' is 'Scaled Copy'; expected lower-case letters, digits, '_' and '-', at most 64.");
    row("misspelt key", "flops", "flop", "w.toml:5:1: the key 'flop' is unknown; did you mean 'flops'?");
    row("axis twice", "[\"R\", \"C\"]\nflops", "[\"R\", \"R\"]\nflops",
        "w.toml:4:8: the axis 'R' is there twice.");
    row("role", "\"input\"", "\"in\"", "w.toml:10:8: 'role' is 'in'; expected one of 'input' or 'output'.");
    row("tensor twice", "name = \"y\"", "name = \"x\"",
        "w.toml:17:8: the name 'x' is used twice; axes and tensors share one space.");
    row("tensor named as an axis", "name = \"y\"", "name = \"R\"",
        "w.toml:17:8: the name 'R' is used twice; axes and tensors share one space.");
    row("no output", "role = \"output\"", "role = \"input\"",
        "w.toml:8:1: there is no tensor with the role 'output'; expected at least one.");
    row("shape of no axis", "\"2 * C\"", "\"2 * D\"",
        "w.toml:12:9: 'D' in '2 * D' is no axis of the workload; did you mean 'R'?");
    row("distribution kind", "\"uniform\"", "\"unifrom\"",
        "w.toml:14:25: 'kind' is 'unifrom'; expected one of 'normal', 'uniform', 'bits', 'large', 'neg_infinity', 'integers', 'offsets', 'unit_rows', 'sigmoid', 'mixed' or 'log_gates'; did you mean "
        "'uniform'?");
    row("parameter of another kind", "low = -1", "stddev = 1",
        "w.toml:14:36: the key 'stddev' is unknown; expected one of 'kind', 'low' or 'high'.");
    row("empty range", "low = -1", "low = 3", "w.toml:14:16: 'low' is not below 'high'.");
    row("fraction", "fraction = 0.5", "fraction = 1.0", "w.toml:29:59: 'fraction' is not below 1.");
    row("share above all", "kind = \"uniform\", low = -1, high = 2.5", "kind = \"log_gates\", share = 1.5",
        "w.toml:14:46: 'share' is above 1.");
    row("divisor of zero", "kind = \"uniform\", low = -1, high = 2.5", "kind = \"log_gates\", divisor = 0",
        "w.toml:14:48: 'divisor' is not positive.");
    row("epsilon of zero", "kind = \"uniform\", low = -1, high = 2.5", "kind = \"unit_rows\", epsilon = 0",
        "w.toml:14:48: 'epsilon' is not positive.");
    row("distribution of an output", "shape = [\"R\", \"C\"]",
        "shape = [\"R\", \"C\"]\ndistribution = { kind = \"bits\" }",
        "w.toml:21:16: 'y' is an output; only inputs have a distribution.");
    row("distribution of nothing", "distributions = { x", "distributions = { z",
        "w.toml:29:23: 'z' is no input of the workload; did you mean 'x'?");
    row("case twice", "\"small\"", "\"timed\"", "w.toml:27:8: the case 'timed' is there twice.");
    row("axis left out", "{ R = 3, C = 4 }", "{ R = 3 }",
        "w.toml:28:8: the axis 'C' has no value in case 'small'.");
    row("foreign axis", "{ R = 3, C = 4 }", "{ R = 3, C = 4, D = 5 }",
        "w.toml:28:8: 'D' is no axis of the workload; did you mean 'R'?");
    row("axis of zero", "{ R = 3, C = 4 }", "{ R = 0, C = 4 }",
        "w.toml:28:8: the axis 'R' is 0; expected 1 to 2^31 - 1.");
    row("drawn and given", "{ R = 3, C = 4 }", "{ R = 3, C = 4 }\ndrawn = { R = { from = 1, to = 9 } }",
        "w.toml:29:15: the axis 'R' is in 'axes' too.");
    row("drawn foreign axis", "{ R = 3, C = 4 }", "{ R = 3, C = 4 }\ndrawn = { D = { from = 1, to = 9 } }",
        "w.toml:29:15: 'D' is no axis of the workload; did you mean 'R'?");
    row("timed shape drawn", "axes = { R = 1024, C = 512 }",
        "axes = { C = 512 }\ndrawn = { R = { from = 1, to = 9 } }",
        "w.toml:25:15: the first case is the timed one; its axes cannot be drawn.");
    row("empty draw", "axes = { R = 3, C = 4 }", "axes = { C = 4 }\ndrawn = { R = { from = 9, to = 9 } }",
        "w.toml:29:15: the range is 9 to 9; expected an ascending one within 1 to 2^31 - 1.");
    row("step of a draw", "axes = { R = 3, C = 4 }",
        "axes = { C = 4 }\ndrawn = { R = { from = 1, to = 9, step = 0 } }",
        "w.toml:29:42: 'step' is 0; expected at least 1 and at most the width of the range.");
    row("unknown key of a draw", "axes = { R = 3, C = 4 }",
        "axes = { C = 4 }\ndrawn = { R = { from = 1, to = 9, by = 2 } }",
        "w.toml:29:35: the key 'by' is unknown; expected one of 'from', 'to' or 'step'.");
    row("drawn axis left out", "axes = { R = 3, C = 4 }", "drawn = { R = { from = 1, to = 9 } }",
        "w.toml:28:9: the axis 'C' has no value in case 'small'.");
    row("largest draw too large", "axes = { R = 3, C = 4 }",
        "axes = { C = 2000000 }\ndrawn = { R = { from = 1, to = 2000000 } }",
        "w.toml:26:1: 'x' is larger than 64 GiB in case 'small'.");
    row("integers out of order", "{ kind = \"uniform\", low = -1, high = 2.5 }",
        "{ kind = \"integers\", low = 3, high = 3 }", "w.toml:14:16: 'low' is not below 'high'.");
    row("integers too large", "{ kind = \"uniform\", low = -1, high = 2.5 }",
        "{ kind = \"integers\", low = 0, high = 9007199254740993 }",
        "w.toml:14:16: 'low' and 'high' are not within -2^53 to 2^53.");
    row("integers too large to add up", "{ kind = \"uniform\", low = -1, high = 2.5 }",
        "{ kind = \"integers\", low = 0, high = 16777217 }",
        "w.toml:31:1: integers of what is added up are within -2^24 to 2^24; selections and Python oracles have "
        "more.");
    row("tensor too large", "{ R = 3, C = 4 }", "{ R = 2000000, C = 2000000 }",
        "w.toml:26:1: 'x' is larger than 64 GiB in case 'small'.");
    row("extent too large", "{ R = 3, C = 4 }", "{ R = 1, C = 2147483647 }",
        "w.toml:26:1: the shape of 'x' in case 'small', the extent '2 * C' is 4294967294; expected 1 to 2^31 - 1.");
    row("fewest of more", "flops = \"R * C\"", "flops = \"R * C\"\nleast_flops = \"C * C\"",
        "w.toml:27:1: least_flops in case 'small' is more than flops.");
    row("cost of zero", "flops = \"R * C\"", "flops = \"R - 3\"",
        "w.toml:26:1: flops in case 'small' is not positive.");
    row("no oracle", "[oracle]\nname = \"scale\"\nargs = { in = \"x\", out = \"y\" }\n", "",
        "w.toml:1:1: the key 'oracle' is missing.");
    row("oracle argument", "args = { in = \"x\", out", "args = { in = \"xx\", out",
        "w.toml:33:8: 'xx' (for 'in') is neither a tensor nor an axis; did you mean 'x'?");
    row("negative limit", "rtol = 5e-4", "rtol = -1", "w.toml:36:8: 'rtol' is negative.");
    row("looser without a reason", "rtol = 5e-4", "rtol = 5e-3",
        "w.toml:35:1: the limits are looser than those of the outputs' type; expected a 'reason'.");
    row("reduction", "reduction = \"C\"", "reduction = \"C - 4\"",
        "w.toml:26:1: the reduction 'C - 4' in case 'small' is below 1; expected the number of terms of a sum.");
    row("provider", "\"openblas\"", "\"openblass\"",
        "w.toml:42:12: 'provider' is 'openblass'; expected one of 'openblas', 'onednn', 'cublas', 'cublaslt', 'cudnn', 'cub', 'torch', 'flashinfer', 'fla', 'flash_qla' or 'fa3'; did you mean 'openblas'?");
    row("provider of another surface", "\"openblas\"", "\"cublas\"",
        "w.toml:42:12: 'cublas' runs on the surface 'cuda', not on 'opencl'.");
}

void TestWorkload::messages()
{
    QFETCH(QString, from);
    QFETCH(QString, to);
    QFETCH(QString, message);
    QString text = everything;
    QVERIFY(text.contains(from));
    text.replace(text.indexOf(from), from.size(), to);
    const Result<Workload> workload = parseWorkload(text.toStdString(), "w.toml");
    QVERIFY(!workload);
    QCOMPARE(workload.error().code, ErrorCode::InvalidInput);
    QCOMPARE(messageOf(workload), message);
}

void TestWorkload::readingNamesTheMissingFile()
{
    const Result<Workload> workload = readWorkload("/proc/nonexistent/gemm");
    QVERIFY(!workload);
    QCOMPARE(workload.error().code, ErrorCode::NotFound);
    QVERIFY(messageOf(workload).contains("/proc/nonexistent/gemm/workload.toml"));
}

QTEST_GUILESS_MAIN(TestWorkload)
#include "tst_workload.moc"
