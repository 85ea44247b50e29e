// SPDX-License-Identifier: GPL-3.0-or-later
//
// What the shipped workloads layernorm and rmsnorm accept and what they refuse: honest ways to compute them in f32 pass every case,
// and each common mistake fails a case that is there for it.
#include "core/gate/check/caseinstance.h"
#include "core/gate/check/comparison.h"
#include "tests/paths.h"

#include <QtTest>

#include <algorithm>
#include <array>
#include <cmath>

using namespace klineage;
using namespace klineage::gate;

namespace {

using Row = std::span<const float>;

struct Scales {
    Row gamma;
    Row beta; ///< of rmsnorm: empty
};

using Kernel = void (*)(Row x, const Scales &scales, float *y);

constexpr float epsilon = 1e-5f;

/// The sum of f(element) in 16 partial sums that are added pairwise, all in f32.
template <typename Function>
float sixteenSums(Row x, const Function &f)
{
    std::array<float, 16> sums{};
    for (std::size_t i = 0; i < x.size(); ++i)
        sums[i % 16] += f(x[i]);
    for (std::size_t half = 8; half > 0; half /= 2)
        for (std::size_t i = 0; i < half; ++i)
            sums[i] += sums[i + half];
    return sums[0];
}

float mean(Row x)
{
    return sixteenSums(x, [](float value) { return value; }) / static_cast<float>(x.size());
}

float meanSquare(Row x, float center = 0)
{
    return sixteenSums(x, [center](float value) { return (value - center) * (value - center); })
           / static_cast<float>(x.size());
}

void scaleRow(Row x, float center, float scale, const Scales &scales, float *y)
{
    for (std::size_t i = 0; i < x.size(); ++i)
        y[i] = (x[i] - center) * scale * scales.gamma[i] + (scales.beta.empty() ? 0.0f : scales.beta[i]);
}

void layerNorm(Row x, const Scales &scales, float *y)
{
    const float center = mean(x);
    scaleRow(x, center, 1 / std::sqrt(meanSquare(x, center) + epsilon), scales, y);
}

void layerNormInDoubles(Row x, const Scales &scales, float *y)
{
    double sum = 0;
    double squares = 0;
    for (const float value : x) {
        sum += value;
        squares += static_cast<double>(value) * value;
    }
    const double length = static_cast<double>(x.size());
    const double variance = std::max(0.0, squares / length - sum / length * (sum / length));
    scaleRow(x, static_cast<float>(sum / length), static_cast<float>(1 / std::sqrt(variance + 1e-5)), scales,
             y);
}

void onePassVariance(Row x, const Scales &scales, float *y)
{
    const float center = mean(x);
    const float variance = std::max(0.0f, meanSquare(x) - center * center);
    scaleRow(x, center, 1 / std::sqrt(variance + epsilon), scales, y);
}

void layerNormWithoutEpsilon(Row x, const Scales &scales, float *y)
{
    const float center = mean(x);
    scaleRow(x, center, 1 / std::sqrt(meanSquare(x, center)), scales, y);
}

void meanStaysIn(Row x, const Scales &scales, float *y)
{
    scaleRow(x, 0, 1 / std::sqrt(meanSquare(x, mean(x)) + epsilon), scales, y);
}

void dividedByOneLess(Row x, const Scales &scales, float *y)
{
    const float center = mean(x);
    const auto length = static_cast<float>(x.size());
    const float variance = meanSquare(x, center) * length / std::max(1.0f, length - 1);
    scaleRow(x, center, 1 / std::sqrt(variance + epsilon), scales, y);
}

void withoutBeta(Row x, const Scales &scales, float *y)
{
    layerNorm(x, {scales.gamma, {}}, y);
}

void rmsNorm(Row x, const Scales &scales, float *y)
{
    scaleRow(x, 0, 1 / std::sqrt(meanSquare(x) + epsilon), scales, y);
}

void rmsNormInOneChain(Row x, const Scales &scales, float *y)
{
    float squares = 0;
    for (const float value : x)
        squares += value * value;
    scaleRow(x, 0, 1 / std::sqrt(squares / static_cast<float>(x.size()) + epsilon), scales, y);
}

void rmsNormWithoutEpsilon(Row x, const Scales &scales, float *y)
{
    scaleRow(x, 0, 1 / std::sqrt(meanSquare(x)), scales, y);
}

void epsilonOutsideOfTheRoot(Row x, const Scales &scales, float *y)
{
    scaleRow(x, 0, 1 / (std::sqrt(meanSquare(x)) + epsilon), scales, y);
}

void meanTakenOut(Row x, const Scales &scales, float *y)
{
    const float center = mean(x);
    scaleRow(x, center, 1 / std::sqrt(meanSquare(x, center) + epsilon), scales, y);
}

Row floats(const HostTensor &tensor)
{
    return {reinterpret_cast<const float *>(tensor.bytes.data()), tensor.elements()};
}

const HostTensor *find(const CaseInstance &instance, const std::string &name)
{
    const auto found = std::find_if(instance.tensors.begin(), instance.tensors.end(),
                                    [&](const HostTensor &tensor) { return tensor.name == name; });
    return found == instance.tensors.end() ? nullptr : &*found;
}

workload::Workload shipped(const QString &name)
{
    auto workload = workload::readWorkload(std::filesystem::path(klineage::test::sourcePath()) / "workloads"
                                           / name.toStdString());
    if (!workload)
        qFatal("%s", workload.error().message.c_str());
    return *workload;
}

/// At most 64 rows of it.
CaseInstancePtr instanceOf(const workload::Workload &workload, workload::Case c)
{
    if (!c.drawn.empty())
        c = drawnAt(c, {{"R", 40}, {"C", 776}});
    c.axes["R"] = std::min<std::int64_t>(c.axes["R"], 64);
    auto instance = makeInstance(workload, c, 11);
    if (!instance)
        qFatal("%s", instance.error().message.c_str());
    return *instance;
}

OutputCheck checkOf(const CaseInstance &instance, Kernel kernel)
{
    const HostTensor &x = *find(instance, "x");
    const HostTensor *beta = find(instance, "beta");
    const Scales scales{floats(*find(instance, "gamma")), beta ? floats(*beta) : Row{}};
    std::vector<float> y(x.elements());
    for (std::size_t begin = 0; begin < y.size(); begin += x.rowLength())
        kernel(floats(x).subspan(begin, x.rowLength()), scales, y.data() + begin);
    return compareOutput(std::as_bytes(std::span(y)), kernel::DType::F32, x.rowLength(),
                         instance.expected.at("y"), instance.tolerance);
}

} // namespace

Q_DECLARE_METATYPE(Kernel)

class TestNormalization : public QObject
{
    Q_OBJECT
private slots:
    void definition_data();
    void definition();
    void honestOnesPass_data();
    void honestOnesPass();
    void mistakesFail_data();
    void mistakesFail();
    void sumAndItsNormalization();
    void refusesWhatDoesNotFit_data();
    void refusesWhatDoesNotFit();
};

void TestNormalization::definition_data()
{
    QTest::addColumn<QString>("workload");
    QTest::addColumn<QString>("caseName");
    for (const char *name : {"layernorm", "rmsnorm"})
        for (const char *c : {"odd", "one-row", "one-column", "small", "offset"})
            QTest::addRow("%s %s", name, c) << QString(name) << QString(c);
}

/// Element by element from the formula, every sum anew.
void TestNormalization::definition()
{
    QFETCH(const QString, workload);
    QFETCH(const QString, caseName);
    const workload::Workload w = shipped(workload);
    const auto instance = instanceOf(w, *w.findCase(caseName.toStdString()));
    const HostTensor &x = *find(*instance, "x");
    const Row gamma = floats(*find(*instance, "gamma"));
    const std::size_t length = x.rowLength();
    const std::vector<double> &expected = instance->expected.at("y").doubles();
    QCOMPARE(expected.size(), x.elements());
    for (std::size_t i = 0; i < expected.size(); i += 1 + i / 7) {
        const Row row = floats(x).subspan(i / length * length, length);
        long double average = 0;
        if (workload == "layernorm")
            for (const float value : row)
                average += static_cast<long double>(value) / length;
        long double variance = 0;
        for (const float value : row)
            variance += (value - average) * (value - average) / length;
        long double y = (row[i % length] - average) / std::sqrt(variance + 1e-5L) * gamma[i % length];
        if (workload == "layernorm")
            y += floats(*find(*instance, "beta"))[i % length];
        QVERIFY2(std::abs(static_cast<double>(y) - expected[i]) < 1e-11, qPrintable(QString::number(i)));
    }
}

void TestNormalization::honestOnesPass_data()
{
    QTest::addColumn<QString>("workload");
    QTest::addColumn<Kernel>("kernel");
    QTest::newRow("layernorm, two passes in f32") << "layernorm" << Kernel(layerNorm);
    QTest::newRow("layernorm, one pass in doubles") << "layernorm" << Kernel(layerNormInDoubles);
    QTest::newRow("rmsnorm in f32") << "rmsnorm" << Kernel(rmsNorm);
    QTest::newRow("rmsnorm, one chain of additions") << "rmsnorm" << Kernel(rmsNormInOneChain);
}

void TestNormalization::honestOnesPass()
{
    QFETCH(const QString, workload);
    QFETCH(const Kernel, kernel);
    const workload::Workload w = shipped(workload);
    for (const workload::Case &c : w.cases) {
        const OutputCheck check = checkOf(*instanceOf(w, c), kernel);
        QVERIFY2(check.ok(), c.name.c_str());
        QVERIFY2(2 * check.relativeL2 < w.tolerance.relL2, c.name.c_str()); // not by luck
    }
}

void TestNormalization::mistakesFail_data()
{
    QTest::addColumn<QString>("workload");
    QTest::addColumn<Kernel>("kernel");
    QTest::addColumn<QString>("caseName");
    const auto add = [](const char *workload, const char *name, Kernel kernel,
                        std::initializer_list<const char *> cases) {
        for (const char *c : cases)
            QTest::addRow("%s %s: %s", workload, name, c) << QString(workload) << kernel << QString(c);
    };
    add("layernorm", "one-pass variance", onePassVariance, {"offset"});
    add("layernorm", "without epsilon", layerNormWithoutEpsilon, {"small", "constant", "one-column"});
    add("layernorm", "mean stays in", meanStaysIn, {"timed", "odd", "constant", "hidden"});
    add("layernorm", "divided by C - 1", dividedByOneLess, {"odd", "long-rows", "hidden"});
    add("layernorm", "without beta", withoutBeta, {"odd", "one-column", "constant"});
    add("rmsnorm", "without epsilon", rmsNormWithoutEpsilon, {"small", "tiny"});
    add("rmsnorm", "epsilon outside of the root", epsilonOutsideOfTheRoot, {"small"});
    add("rmsnorm", "mean taken out", meanTakenOut, {"timed", "odd", "offset", "one-column", "hidden"});
}

void TestNormalization::mistakesFail()
{
    QFETCH(const QString, workload);
    QFETCH(const Kernel, kernel);
    QFETCH(const QString, caseName);
    const workload::Workload w = shipped(workload);
    QVERIFY(!checkOf(*instanceOf(w, *w.findCase(caseName.toStdString())), kernel).ok());
}

void TestNormalization::sumAndItsNormalization()
{
    const auto tensor = [](const char *name, workload::Role role, std::vector<std::int64_t> shape,
                           std::vector<double> values) {
        HostTensor made{name, role, kernel::DType::BF16, std::move(shape), {}};
        made.bytes.resize(2 * values.size());
        for (std::size_t i = 0; i < values.size(); ++i)
            kernel::storeElement(made.bytes.data(), made.dtype, i, values[i]);
        return made;
    };
    const workload::Workload w = shipped("heldout-add-rmsnorm-16384x4096");
    std::vector<HostTensor> tensors = {
        tensor("x", workload::Role::Input, {2, 2}, {1, 5, 0, -2}),
        tensor("residual", workload::Role::Input, {2, 2}, {2, -1, 0.5, 2}),
        tensor("gamma", workload::Role::Input, {2}, {1, -2}),
        tensor("sum", workload::Role::Output, {2, 2}, {}),
        tensor("y", workload::Role::Output, {2, 2}, {}),
    };
    const auto computed = computeOracle(w, tensors);
    QVERIFY2(computed, computed ? "" : computed.error().message.c_str());
    QCOMPARE(computed->at("sum"), (std::vector<double>{3, 4, 0.5, 0}));
    const double first = std::sqrt(12.5 + 1e-5); // of (9 + 16) / 2
    const double second = std::sqrt(0.125 + 1e-5);
    const std::vector<double> expected{3 / first, -8 / first, 0.5 / second, 0};
    for (std::size_t i = 0; i < expected.size(); ++i)
        QVERIFY(std::abs(computed->at("y")[i] - expected[i]) < 1e-14);
    tensors[1].shape = {4, 1};
    QVERIFY(!computeOracle(w, tensors));
}

void TestNormalization::refusesWhatDoesNotFit_data()
{
    QTest::addColumn<QString>("workload");
    QTest::addColumn<QString>("role");
    QTest::addColumn<QString>("tensor");
    QTest::addColumn<QString>("says");
    QTest::newRow("matrix as gamma") << "layernorm"
                                     << "gamma"
                                     << "x"
                                     << "do not fit together";
    QTest::newRow("matrix as beta") << "layernorm"
                                    << "beta"
                                    << "x"
                                    << "do not fit together";
    QTest::newRow("row as input") << "rmsnorm"
                                  << "in"
                                  << "gamma"
                                  << "do not fit together";
    QTest::newRow("no gamma") << "rmsnorm"
                              << "gamma"
                              << ""
                              << "the role \"gamma\" names no tensor";
    QTest::newRow("no beta") << "layernorm"
                             << "beta"
                             << ""
                             << "the role \"beta\" names no tensor";
}

void TestNormalization::refusesWhatDoesNotFit()
{
    QFETCH(const QString, workload);
    QFETCH(const QString, role);
    QFETCH(const QString, tensor);
    QFETCH(const QString, says);
    workload::Workload w = shipped(workload);
    w.oracleArgs[role.toStdString()] = tensor.toStdString();
    const auto instance = makeInstance(w, *w.findCase("odd"), 1);
    QVERIFY(!instance);
    QVERIFY2(QString::fromStdString(instance.error().message).contains(says),
             instance.error().message.c_str());
}

QTEST_GUILESS_MAIN(TestNormalization)
#include "tst_normalization.moc"
