// SPDX-License-Identifier: GPL-3.0-or-later
//
// The gated delta rule against numbers worked out by hand and against its chunked form, and the distributions of its inputs.
#include "core/gate/check/caseinstance.h"

#include <QtTest>

#include <algorithm>
#include <cmath>
#include <cstring>

using namespace klineage;
using namespace klineage::gate;
using workload::DistributionKind;

namespace {

const char *const gatedDelta = R"(name = "delta"
axes = ["B", "T", "HQ", "HV", "D", "E"]
flops = "8 * B * T * HV * D * E"
bytes = "B * T"
tensor = [
  { name = "q", role = "input", dtype = "bf16", shape = ["B", "T", "HQ", "D"], distribution = { kind = "unit_rows" } },
  { name = "k", role = "input", dtype = "bf16", shape = ["B", "T", "HQ", "D"], distribution = { kind = "unit_rows" } },
  { name = "v", role = "input", dtype = "bf16", shape = ["B", "T", "HV", "E"] },
  { name = "g", role = "input", dtype = "f32", shape = ["B", "T", "HV"], distribution = { kind = "log_gates", divisor = 0.5 } },
  { name = "beta", role = "input", dtype = "f32", shape = ["B", "T", "HV"], distribution = { kind = "sigmoid" } },
  { name = "s", role = "input", dtype = "f32", shape = ["B", "HV", "D", "E"] },
  { name = "o", role = "output", dtype = "f32", shape = ["B", "T", "HV", "E"] },
  { name = "z", role = "output", dtype = "f32", shape = ["B", "HV", "D", "E"] },
]
case = [
  { name = "hand", axes = { B = 1, T = 2, HQ = 1, HV = 1, D = 4, E = 2 } },
  { name = "odd", axes = { B = 2, T = 53, HQ = 2, HV = 6, D = 8, E = 21 } },
  { name = "chunk", axes = { B = 1, T = 64, HQ = 3, HV = 3, D = 16, E = 16 } },
]
[oracle]
name = "gated_delta_rule"
args = { q = "q", k = "k", v = "v", g = "g", beta = "beta", initial_state = "s", out = "o", final_state = "z" }
)";

workload::Workload delta()
{
    auto workload = workload::parseWorkload(gatedDelta, "delta.toml");
    if (!workload)
        qFatal("%s", workload.error().message.c_str());
    return *workload;
}

std::vector<double> valuesOf(const HostTensor &tensor)
{
    std::vector<double> values;
    for (std::size_t i = 0; i < tensor.elements(); ++i)
        values.push_back(kernel::loadElement(tensor.bytes.data(), tensor.dtype, i));
    return values;
}

HostTensor &named(std::vector<HostTensor> &tensors, const std::string &name)
{
    return *std::find_if(tensors.begin(), tensors.end(),
                         [&](const HostTensor &tensor) { return tensor.name == name; });
}

void set(HostTensor &tensor, const std::vector<double> &values)
{
    QCOMPARE(tensor.elements(), values.size());
    for (std::size_t i = 0; i < values.size(); ++i)
        kernel::storeElement(tensor.bytes.data(), tensor.dtype, i, values[i]);
}

/// One head of the chunked form: (I + L) U = beta (V − exp(G) K S), L the part below the diagonal of beta exp(G_t − G_s) K Kᵀ; then
/// the outputs and the next state from U. Rows are whole vectors; everything in double.
struct ChunkedHead {
    using Matrix = std::vector<std::vector<double>>;
    Matrix q, k, v, state;
    std::vector<double> g, beta;

    static double dot(const std::vector<double> &a, const std::vector<double> &b)
    {
        double sum = 0;
        for (std::size_t i = 0; i < a.size(); ++i)
            sum += a[i] * b[i];
        return sum;
    }

    [[nodiscard]] double read(const std::vector<double> &key, std::size_t column) const
    {
        double sum = 0;
        for (std::size_t i = 0; i < key.size(); ++i)
            sum += key[i] * state[i][column];
        return sum;
    }

    Matrix run(std::size_t chunk)
    {
        Matrix out;
        for (std::size_t begin = 0; begin < q.size(); begin += chunk) {
            const std::size_t end = std::min(q.size(), begin + chunk);
            std::vector<double> sums; // of the gates, from the chunk's begin
            for (std::size_t t = begin; t < end; ++t)
                sums.push_back((sums.empty() ? 0 : sums.back()) + g[t]);
            Matrix u;
            for (std::size_t t = begin; t < end; ++t) {
                const double decay = std::exp(sums[t - begin]);
                std::vector<double> row, result;
                for (std::size_t j = 0; j < v[t].size(); ++j) {
                    double rest = v[t][j] - decay * read(k[t], j);
                    for (std::size_t s = begin; s < t; ++s)
                        rest -=
                            std::exp(sums[t - begin] - sums[s - begin]) * dot(k[t], k[s]) * u[s - begin][j];
                    row.push_back(beta[t] * rest);
                }
                u.push_back(row);
                for (std::size_t j = 0; j < v[t].size(); ++j) {
                    double sum = decay * read(q[t], j);
                    for (std::size_t s = begin; s <= t; ++s)
                        sum +=
                            std::exp(sums[t - begin] - sums[s - begin]) * dot(q[t], k[s]) * u[s - begin][j];
                    result.push_back(sum / std::sqrt(static_cast<double>(q[t].size())));
                }
                out.push_back(result);
            }
            for (std::size_t i = 0; i < state.size(); ++i) {
                for (std::size_t j = 0; j < state[i].size(); ++j) {
                    state[i][j] *= std::exp(sums.back());
                    for (std::size_t s = begin; s < end; ++s)
                        state[i][j] += std::exp(sums.back() - sums[s - begin]) * k[s][i] * u[s - begin][j];
                }
            }
        }
        return out;
    }
};

HostTensor generated(const workload::Distribution &distribution, std::vector<std::int64_t> shape,
                     std::uint64_t seed = 5)
{
    HostTensor tensor{"x", workload::Role::Input, kernel::DType::F32, std::move(shape), {}};
    generate(tensor, distribution, seed, 3);
    return tensor;
}

workload::Distribution kindOf(DistributionKind kind)
{
    workload::Distribution distribution;
    distribution.kind = kind;
    return distribution;
}

} // namespace

class TestGatedDelta : public QObject
{
    Q_OBJECT
private slots:
    void twoTokensByHand();
    void chunkedForm_data();
    void chunkedForm();
    void refusesWhatDoesNotFit_data();
    void refusesWhatDoesNotFit();
    void unitRows_data();
    void unitRows();
    void sigmoids();
    void logGatesOfSomeHeads();
};

void TestGatedDelta::twoTokensByHand()
{
    const workload::Workload workload = delta();
    auto tensors = generateCase(workload, workload.cases[0], 1).value();
    set(named(tensors, "q"), {1, 0, 0, 0, 1, 1, 0, 0});
    set(named(tensors, "k"), {1, 0, 0, 0, 0.5, 0.5, 0, 0});
    set(named(tensors, "v"), {2, 4, 8, -8});
    set(named(tensors, "g"), {0, static_cast<double>(std::log(0.5f))});
    set(named(tensors, "beta"), {0.5, 1});
    set(named(tensors, "s"), {1, 0, 0, 4, 0, 0, 16, 0});
    // Token 0: Sᵀk = (1, 0), u = ½ (2 − 1, 4 − 0) = (½, 2); S's first row becomes (1.5, 2). o = its first row / 2.
    // Token 1: S halves: rows (.75, 1) (0, 2) (0, 0) (8, 0); Sᵀk = (.375, 1.5), u = (7.625, −9.5); rows 0 and 1 gain u / 2.
    const std::vector<double> out = {0.75, 1, (4.5625 + 3.8125) / 2, (-3.75 - 2.75) / 2};
    const std::vector<double> state = {4.5625, -3.75, 3.8125, -2.75, 0, 0, 8, 0};
    const auto expected = computeOracle(workload, tensors).value();
    for (std::size_t i = 0; i < out.size(); ++i)
        QVERIFY(std::abs(expected.at("o")[i] - out[i]) < 1e-6); // log(0.5f) is rounded
    for (std::size_t i = 0; i < state.size(); ++i)
        QVERIFY(std::abs(expected.at("z")[i] - state[i]) < 1e-6);
}

void TestGatedDelta::chunkedForm_data()
{
    QTest::addColumn<QString>("name");
    QTest::newRow("batches, ragged, two strips of columns") << "odd";
    QTest::newRow("whole chunks, a key head each") << "chunk";
}

void TestGatedDelta::chunkedForm()
{
    QFETCH(const QString, name);
    const workload::Workload workload = delta();
    auto instance = makeInstance(workload, *workload.findCase(name.toStdString()), 9).value();
    auto tensors = instance->tensors;
    const auto q = valuesOf(named(tensors, "q")), k = valuesOf(named(tensors, "k")),
               v = valuesOf(named(tensors, "v")), g = valuesOf(named(tensors, "g")),
               beta = valuesOf(named(tensors, "beta")), s = valuesOf(named(tensors, "s"));
    const auto &axes = workload.findCase(name.toStdString())->axes;
    const auto axis = [&](const char *of) { return static_cast<std::size_t>(axes.at(of)); };
    const std::size_t tokens = axis("T"), keyHeads = axis("HQ"), heads = axis("HV"), keys = axis("D"),
                      columns = axis("E");
    double largest = 0;
    for (std::size_t b = 0; b < axis("B"); ++b) {
        for (std::size_t h = 0; h < heads; ++h) {
            ChunkedHead head;
            const auto row = [](const std::vector<double> &from, std::size_t index, std::size_t length) {
                const auto begin = from.begin() + static_cast<std::ptrdiff_t>(index * length);
                return std::vector<double>(begin, begin + static_cast<std::ptrdiff_t>(length));
            };
            for (std::size_t t = 0; t < tokens; ++t) {
                const std::size_t key = (b * tokens + t) * keyHeads + h * keyHeads / heads;
                const std::size_t value = (b * tokens + t) * heads + h;
                head.q.push_back(row(q, key, keys));
                head.k.push_back(row(k, key, keys));
                head.v.push_back(row(v, value, columns));
                head.g.push_back(g[value]);
                head.beta.push_back(beta[value]);
            }
            for (std::size_t i = 0; i < keys; ++i)
                head.state.push_back(row(s, (b * heads + h) * keys + i, columns));
            const auto out = head.run(16);
            for (std::size_t t = 0; t < tokens; ++t) {
                for (std::size_t j = 0; j < columns; ++j) {
                    const double is =
                        instance->expected.at("o")[((b * tokens + t) * heads + h) * columns + j];
                    largest = std::max(largest, std::abs(is - out[t][j]));
                }
            }
            for (std::size_t i = 0; i < keys; ++i) {
                for (std::size_t j = 0; j < columns; ++j) {
                    const double is = instance->expected.at("z")[((b * heads + h) * keys + i) * columns + j];
                    largest = std::max(largest, std::abs(is - head.state[i][j]));
                }
            }
        }
    }
    QVERIFY2(largest < 1e-12, qPrintable(QString::number(largest)));
}

void TestGatedDelta::refusesWhatDoesNotFit_data()
{
    QTest::addColumn<QString>("from");
    QTest::addColumn<QString>("to");
    QTest::addColumn<QString>("says");
    QTest::newRow("role left out") << "beta = \"beta\", "
                                   << ""
                                   << "the role \"beta\" names no tensor";
    QTest::newRow("gates of key heads")
        << "shape = [\"B\", \"T\", \"HV\"], distribution = { kind = \"sigmoid\" }"
        << "shape = [\"B\", \"T\", \"HQ\"]"
        << "do not fit together";
    QTest::newRow("heads that do not divide") << "HQ = 2, HV = 6"
                                              << "HQ = 4, HV = 6"
                                              << "its heads are no multiple of its key heads";
}

void TestGatedDelta::refusesWhatDoesNotFit()
{
    QFETCH(const QString, from);
    QFETCH(const QString, to);
    QFETCH(const QString, says);
    QString text = gatedDelta;
    QVERIFY(text.contains(from));
    text.replace(from, to);
    const workload::Workload workload = workload::parseWorkload(text.toStdString(), "delta.toml").value();
    const auto instance = makeInstance(workload, *workload.findCase("odd"), 1);
    QVERIFY(!instance);
    QVERIFY2(QString::fromStdString(instance.error().message).contains(says),
             instance.error().message.c_str());
}

void TestGatedDelta::unitRows_data()
{
    QTest::addColumn<int>("length");
    QTest::newRow("128") << 128;
    QTest::newRow("no divisor of a piece") << 77; // 2000 rows of it are several pieces
    QTest::newRow("one element") << 1;
}

void TestGatedDelta::unitRows()
{
    QFETCH(const int, length);
    auto distribution = kindOf(DistributionKind::UnitRows);
    const auto values = valuesOf(generated(distribution, {2000, length}));
    for (std::size_t row = 0; row < 2000; ++row) {
        double squares = 0;
        for (std::size_t i = 0; i < static_cast<std::size_t>(length); ++i) {
            const double value = values[row * static_cast<std::size_t>(length) + i];
            squares += value * value;
        }
        QVERIFY(squares < 1 + 1e-6 && (length == 1 || squares > 1 - 1e-5)); // one element may be near 0
    }
    // The same normal numbers, each row by a factor of its own.
    auto normal = valuesOf(generated(kindOf(DistributionKind::Normal), {2000, length}));
    if (length == 77)
        QVERIFY(
            std::abs(values[1999 * 77] * normal[1999 * 77 + 1] - values[1999 * 77 + 1] * normal[1999 * 77])
            < 1e-6);
    distribution.epsilon = 1e12;
    for (const double value : valuesOf(generated(distribution, {10, length})))
        QVERIFY(std::abs(value) < 1e-4);
}

void TestGatedDelta::sigmoids()
{
    auto distribution = kindOf(DistributionKind::Sigmoid);
    distribution.mean = 0;
    const auto values = valuesOf(generated(distribution, {300, 500}));
    distribution.kind = DistributionKind::Normal;
    const auto normal = valuesOf(generated(distribution, {300, 500}));
    double sum = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
        QVERIFY(values[i] > 0 && values[i] < 1);
        QVERIFY(std::abs(std::log(values[i] / (1 - values[i])) - normal[i]) < 1e-4);
        sum += values[i];
    }
    QVERIFY(std::abs(sum / static_cast<double>(values.size()) - 0.5) < 0.01);
}

void TestGatedDelta::logGatesOfSomeHeads()
{
    const auto distribution = kindOf(DistributionKind::LogGates);
    std::vector<std::size_t> chosen;
    for (const std::uint64_t seed : {1, 2}) {
        const auto values = valuesOf(generated(distribution, {3000, 47}, seed));
        std::size_t gated = 0;
        for (std::size_t column = 0; column < 47; ++column) {
            std::size_t negative = 0;
            for (std::size_t row = 0; row < 3000; ++row) {
                const double value = values[row * 47 + column];
                QVERIFY(value <= 0 && value > -1);
                negative += value < 0 ? 1 : 0;
            }
            QVERIFY(negative == 0 || negative == 3000); // a head is gated throughout or never
            if (negative > 0) {
                ++gated;
                chosen.push_back(column);
            }
        }
        QCOMPARE(gated, std::size_t{36}); // ⌈0.75 · 47⌉
    }
    QVERIFY(!std::equal(chosen.begin(), chosen.begin() + 36, chosen.begin() + 36)); // drawn, not fixed
    const auto normal = valuesOf(generated(kindOf(DistributionKind::Normal), {3000, 47}, 1));
    const auto values = valuesOf(generated(distribution, {3000, 47}, 1));
    const std::size_t element = 1234 * 47 + chosen.front();
    QVERIFY(std::abs(values[element] - std::log(1 / (1 + std::exp(-normal[element]))) / 16) < 1e-7);
}

QTEST_GUILESS_MAIN(TestGatedDelta)
#include "tst_gateddelta.moc"
