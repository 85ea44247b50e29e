// SPDX-License-Identifier: GPL-3.0-or-later
//
// The oracles against loops that are too plain to be wrong, and the workloads that vendor references are tried on.
#include "core/gate/check/caseinstance.h"
#include "tests/paths.h"

#include <QtTest>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <set>

using namespace klineage;
using namespace klineage::gate;

namespace {

const auto workloads =
    std::filesystem::path(klineage::test::sourcePath()) / "tests/gate/references/workloads";

workload::Workload shipped(const std::string &name)
{
    auto workload = workload::readWorkload(workloads / name);
    if (!workload)
        qFatal("%s", workload.error().message.c_str());
    return *workload;
}

struct Tensors {
    explicit Tensors(const CaseInstance &instance)
        : m_instance(instance)
    {}
    const HostTensor &operator[](const std::string &name) const
    {
        return *std::find_if(m_instance.tensors.begin(), m_instance.tensors.end(),
                             [&](const HostTensor &tensor) { return tensor.name == name; });
    }
    std::vector<double> values(const std::string &name) const
    {
        const HostTensor &tensor = (*this)[name];
        std::vector<double> values;
        for (std::size_t i = 0; i < tensor.elements(); ++i)
            values.push_back(kernel::loadElement(tensor.bytes.data(), tensor.dtype, i));
        return values;
    }

private:
    const CaseInstance &m_instance;
};

CaseInstancePtr instanceOf(const workload::Workload &workload, const char *name, std::uint64_t seed = 7)
{
    auto instance = makeInstance(workload, *workload.findCase(name), seed);
    if (!instance)
        qFatal("%s", instance.error().message.c_str());
    return *instance;
}

double largestDifference(const std::vector<double> &a, const std::vector<double> &b)
{
    if (a.size() != b.size())
        return INFINITY;
    double largest = 0;
    for (std::size_t i = 0; i < a.size(); ++i)
        largest = std::max(largest, std::abs(a[i] - b[i]));
    return largest;
}

std::vector<double> naiveConvolution(const CaseInstance &instance)
{
    const Tensors tensors(instance);
    const auto data = tensors.values("data_nhwc");
    const auto weight = tensors.values("weight_hwcf");
    const auto &shape = tensors["data_nhwc"].shape;
    const auto filters = tensors["weight_hwcf"].shape[1];
    const auto [images, height, width, channels] = std::tuple{shape[0], shape[1], shape[2], shape[3]};
    std::vector<double> out;
    for (int n = 0; n < images; ++n)
        for (int y = 0; y < height; ++y)
            for (int x = 0; x < width; ++x)
                for (int f = 0; f < filters; ++f) {
                    double sum = 0;
                    for (int r = 0; r < 3; ++r)
                        for (int s = 0; s < 3; ++s)
                            for (int c = 0; c < channels; ++c) {
                                const int row = y + r - 1;
                                const int column = x + s - 1;
                                if (row < 0 || column < 0 || row >= height || column >= width)
                                    continue;
                                const auto pixel = (n * height + row) * width + column;
                                sum += data[static_cast<std::size_t>(pixel * channels + c)]
                                       * weight[static_cast<std::size_t>(
                                           ((r * 3 + s) * channels + c) * filters + f)];
                            }
                    out.push_back(sum);
                }
    return out;
}

std::vector<double> naiveAttention(const CaseInstance &instance, bool causal)
{
    const Tensors tensors(instance);
    const auto q = tensors.values("q");
    const auto k = tensors.values("k");
    const auto v = tensors.values("v");
    const auto cuQ = tensors.values("cu_seqlens_q");
    const auto cuK = tensors.values("cu_seqlens_k");
    const auto heads = static_cast<std::size_t>(tensors["q"].shape[1]);
    const auto kvHeads = static_cast<std::size_t>(tensors["k"].shape[1]);
    const auto dim = static_cast<std::size_t>(tensors["q"].shape[2]);
    const auto shared = [&](std::size_t token, std::size_t head, std::size_t d) {
        return (token * kvHeads + head * kvHeads / heads) * dim + d;
    };
    std::vector<double> out(q.size());
    for (std::size_t b = 0; b + 1 < cuQ.size(); ++b) {
        const double ahead = (cuK[b + 1] - cuK[b]) - (cuQ[b + 1] - cuQ[b]);
        for (auto i = static_cast<std::size_t>(cuQ[b]); i < static_cast<std::size_t>(cuQ[b + 1]); ++i)
            for (std::size_t h = 0; h < heads; ++h) {
                std::vector<double> weights;
                for (auto j = static_cast<std::size_t>(cuK[b]); j < static_cast<std::size_t>(cuK[b + 1]);
                     ++j) {
                    if (causal && static_cast<double>(j) - cuK[b] > static_cast<double>(i) - cuQ[b] + ahead)
                        break;
                    double score = 0;
                    for (std::size_t d = 0; d < dim; ++d)
                        score += q[(i * heads + h) * dim + d] * k[shared(j, h, d)];
                    weights.push_back(score / std::sqrt(static_cast<double>(dim)));
                }
                if (weights.empty())
                    continue;
                const double largest = *std::max_element(weights.begin(), weights.end());
                for (double &weight : weights)
                    weight = std::exp(weight - largest);
                const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
                for (std::size_t d = 0; d < dim; ++d) {
                    double value = 0;
                    for (std::size_t j = 0; j < weights.size(); ++j)
                        value += weights[j] * v[shared(static_cast<std::size_t>(cuK[b]) + j, h, d)];
                    out[(i * heads + h) * dim + d] = value / sum;
                }
            }
    }
    return out;
}

constexpr const char *productsText = R"(
name = "products"
axes = ["M"]
flops = "24 * M"
bytes = "M"
[[tensor]]
name = "a"
role = "input"
dtype = "f32"
shape = [2, "M", 2]
[[tensor]]
name = "rows"
role = "input"
dtype = "bf16"
shape = [4, 2]
[[tensor]]
name = "b"
role = "input"
dtype = "f32"
shape = [2, 2, 3]
[[tensor]]
name = "bt"
role = "input"
dtype = "f32"
shape = [2, 3, 2]
[[tensor]]
name = "three"
role = "input"
dtype = "bf16"
shape = [3, 2, 3]
[[tensor]]
name = "bias"
role = "input"
dtype = "bf16"
shape = [3]
[[tensor]]
name = "offsets"
role = "input"
dtype = "i32"
shape = [4]
[[tensor]]
name = "y"
role = "output"
dtype = "f32"
shape = [2, "M", 3]
[[tensor]]
name = "z"
role = "output"
dtype = "bf16"
shape = [4, 3]
[[case]]
name = "small"
axes = { M = 2 }
[oracle]
name = "matmul_nn"
args = { a = "a", b = "b", out = "y" }
)";

/// A tensor of small numbers, which every type has.
HostTensor tensorOf(const std::string &name, kernel::DType dtype, std::vector<std::int64_t> shape,
                    const std::vector<double> &values)
{
    HostTensor tensor{name, workload::Role::Input, dtype, std::move(shape), {}};
    tensor.bytes.resize(values.size() * kernel::sizeOf(dtype));
    for (std::size_t i = 0; i < values.size(); ++i)
        kernel::storeElement(tensor.bytes.data(), dtype, i, values[i]);
    return tensor;
}

std::vector<HostTensor> tensorsOfProducts(std::vector<double> offsets = {0, 1, 1, 4})
{
    using kernel::DType;
    return {
        tensorOf("a", DType::F32, {2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8}),
        tensorOf("rows", DType::BF16, {4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}),
        tensorOf("b", DType::F32, {2, 2, 3}, {1, 0, 2, 0, 1, 3, 1, 1, 0, 2, 0, 1}),
        tensorOf("bt", DType::F32, {2, 3, 2},
                 {1, 0, 0, 1, 2, 3, 1, 2, 1, 0, 0, 1}), // b, each matrix transposed
        tensorOf("three", DType::BF16, {3, 2, 3}, {1, 0, 2, 0, 1, 3, 9, 9, 9, 9, 9, 9, 1, 1, 0, 2, 0, 1}),
        tensorOf("bias", DType::BF16, {3}, {10, 20, 30}),
        tensorOf("offsets", DType::I32, {static_cast<std::int64_t>(offsets.size())}, offsets),
    };
}

} // namespace

class TestOracles : public QObject
{
    Q_OBJECT
private slots:
    void workloadsRoundTrip_data();
    void workloadsRoundTrip();
    void convolution_data();
    void convolution();
    void attention_data();
    void attention();
    void attentionOfSharedKeys();
    void products_data();
    void products();
    void productsThatDoNotFit_data();
    void productsThatDoNotFit();
    void rows_data();
    void rows();
    void offsetsAscend();
    void refusesWhatDoesNotFit_data();
    void refusesWhatDoesNotFit();
};

void TestOracles::workloadsRoundTrip_data()
{
    QTest::addColumn<QString>("name");
    for (const char *name : {"conv2d", "fmha", "rowsum", "rowscan", "rowsort"})
        QTest::newRow(name) << QString(name);
}

void TestOracles::workloadsRoundTrip()
{
    QFETCH(const QString, name);
    const workload::Workload workload = shipped(name.toStdString());
    const std::string text = workload::writeWorkload(workload);
    const auto back = workload::parseWorkload(text, "back.toml");
    QVERIFY2(back, back ? "" : back.error().message.c_str());
    QCOMPARE(workload::writeWorkload(*back), text);
    QVERIFY(!workload.references.empty());
}

void TestOracles::convolution_data()
{
    QTest::addColumn<QString>("name");
    for (const char *name : {"odd", "smallest", "bits"})
        QTest::newRow(name) << QString(name);
}

void TestOracles::convolution()
{
    QFETCH(const QString, name);
    const workload::Workload workload = shipped("conv2d");
    const auto instance = instanceOf(workload, name.toUtf8());
    QVERIFY(largestDifference(instance->expected.at("output").doubles(), naiveConvolution(*instance))
            < 1e-11);
}

void TestOracles::attention_data()
{
    QTest::addColumn<QString>("name");
    QTest::addColumn<bool>("causal");
    for (const char *name : {"shortest", "peaked", "ragged"}) {
        QTest::newRow(name) << QString(name) << false;
        QTest::addRow("%s, causal", name) << QString(name) << true;
    }
}

void TestOracles::attention()
{
    QFETCH(const QString, name);
    QFETCH(const bool, causal);
    workload::Workload workload = shipped("fmha");
    if (causal)
        workload.oracle = "attention_varlen_causal";
    const auto instance = instanceOf(workload, name.toUtf8());
    QVERIFY(largestDifference(instance->expected.at("output").doubles(), naiveAttention(*instance, causal))
            < 1e-12);
    if (name == "shortest") // one key each: its value
        QCOMPARE(instance->expected.at("output").doubles(), Tensors(*instance).values("v"));
}

void TestOracles::attentionOfSharedKeys()
{
    workload::Workload workload = shipped("fmha");
    for (workload::Tensor &tensor : workload.tensors) {
        if (tensor.name == "q" || tensor.name == "output")
            tensor.shape[1] = *kernel::Expression::parse("2 * H");
    }
    const auto instance = instanceOf(workload, "ragged");
    QVERIFY(largestDifference(instance->expected.at("output").doubles(), naiveAttention(*instance, false))
            < 1e-12);
}

void TestOracles::products_data()
{
    QTest::addColumn<QString>("oracle");
    QTest::addColumn<QString>("args"); // role tensor role tensor …
    QTest::addColumn<QList<double>>("expected");
    QTest::newRow("a batch") << "matmul_nn"
                             << "a a b b out y" << QList<double>{1, 2, 8, 3, 4, 18, 17, 5, 6, 23, 7, 8};
    QTest::newRow("a batch, transposed")
        << "matmul_nt"
        << "a a b bt out y" << QList<double>{1, 2, 8, 3, 4, 18, 17, 5, 6, 23, 7, 8};
    QTest::newRow("a batch with a bias")
        << "matmul_nn"
        << "a a b b bias bias out y" << QList<double>{11, 22, 38, 13, 24, 48, 27, 25, 36, 33, 27, 38};
    // Row 0 by the first matrix, none by the second, rows 1 to 3 by the third.
    QTest::newRow("groups") << "matmul_grouped_nn"
                            << "a rows b three offsets offsets out z"
                            << QList<double>{1, 2, 8, 11, 3, 4, 17, 5, 6, 23, 7, 8};
    QTest::newRow("groups with a bias") << "matmul_grouped_nn"
                                        << "a rows b three offsets offsets bias bias out z"
                                        << QList<double>{11, 22, 38, 21, 23, 34, 27, 25, 36, 33, 27, 38};
}

void TestOracles::products()
{
    QFETCH(const QString, oracle);
    QFETCH(const QString, args);
    QFETCH(const QList<double>, expected);
    workload::Workload workload = workload::parseWorkload(productsText, "products.toml").value();
    workload.oracle = oracle.toStdString();
    workload.oracleArgs.clear();
    const QStringList words = args.split(' ');
    for (qsizetype i = 0; i < words.size(); i += 2)
        workload.oracleArgs[words[i].toStdString()] = words[i + 1].toStdString();
    std::vector<HostTensor> tensors = tensorsOfProducts();
    const std::string out = workload.oracleArgs.at("out");
    const std::vector<std::int64_t> shape =
        out == "y" ? std::vector<std::int64_t>{2, 2, 3} : std::vector<std::int64_t>{4, 3};
    tensors.push_back({out, workload::Role::Output, kernel::DType::F32, shape, {}});
    const auto computed = computeOracle(workload, tensors);
    QVERIFY2(computed, computed ? "" : computed.error().message.c_str());
    QCOMPARE(QList<double>(computed->at(out).begin(), computed->at(out).end()), expected);
}

void TestOracles::productsThatDoNotFit_data()
{
    QTest::addColumn<QList<double>>("offsets");
    QTest::addColumn<QString>("role");
    QTest::addColumn<QString>("tensor");
    QTest::addColumn<QString>("says");
    const QList<double> sound{0, 1, 1, 4};
    const QString unfit = "do not fit together";
    QTest::newRow("too few rows") << QList<double>{0, 1, 1, 3} << ""
                                  << "" << unfit;
    QTest::newRow("descending") << QList<double>{0, 2, 1, 4} << ""
                                << "" << unfit;
    QTest::newRow("not from 0") << QList<double>{1, 1, 1, 4} << ""
                                << "" << unfit;
    QTest::newRow("another number of groups") << QList<double>{0, 1, 4} << ""
                                              << "" << unfit;
    QTest::newRow("matrices of another size") << sound << "b"
                                              << "bt" << unfit;
    QTest::newRow("a matrix as bias") << sound << "bias"
                                      << "rows" << unfit;
    QTest::newRow("no such bias") << sound << "bias"
                                  << "M"
                                  << "the role \"bias\" names no tensor";
    QTest::newRow("no offsets") << sound << "offsets"
                                << ""
                                << "the role \"offsets\" names no tensor";
}

void TestOracles::productsThatDoNotFit()
{
    QFETCH(const QList<double>, offsets);
    QFETCH(const QString, role);
    QFETCH(const QString, tensor);
    QFETCH(const QString, says);
    workload::Workload workload = workload::parseWorkload(productsText, "products.toml").value();
    workload.oracle = "matmul_grouped_nn";
    workload.oracleArgs = {{"a", "rows"}, {"b", "three"}, {"offsets", "offsets"}, {"out", "z"}};
    if (!role.isEmpty())
        workload.oracleArgs[role.toStdString()] = tensor.toStdString();
    std::vector<HostTensor> tensors = tensorsOfProducts({offsets.begin(), offsets.end()});
    tensors.push_back({"z", workload::Role::Output, kernel::DType::BF16, {4, 3}, {}});
    const auto computed = computeOracle(workload, tensors);
    QVERIFY(!computed);
    QVERIFY2(QString::fromStdString(computed.error().message).contains(says),
             computed.error().message.c_str());
}

void TestOracles::rows_data()
{
    QTest::addColumn<QString>("name");
    for (const char *name : {"rowsum", "rowscan", "rowsort"})
        QTest::newRow(name) << QString(name);
}

void TestOracles::rows()
{
    QFETCH(const QString, name);
    const workload::Workload workload = shipped(name.toStdString());
    const auto instance = instanceOf(workload, "small");
    const auto &shape = Tensors(*instance)["x"].shape;
    std::vector<double> values = Tensors(*instance).values("x");
    std::vector<double> expected;
    for (std::size_t row = 0; row < static_cast<std::size_t>(shape[0]); ++row) {
        const auto begin = values.begin() + static_cast<std::ptrdiff_t>(row) * shape[1];
        const auto end = begin + shape[1];
        if (name == "rowsort")
            std::sort(begin, end);
        double sum = 0;
        for (auto value = begin; value != end; ++value) {
            sum += *value;
            if (name != "rowsum")
                expected.push_back(name == "rowsort" ? *value : sum);
        }
        if (name == "rowsum")
            expected.push_back(sum);
    }
    QCOMPARE(instance->expected.at("y").doubles(), expected);
}

void TestOracles::offsetsAscend()
{
    const workload::Workload workload = shipped("fmha");
    std::set<std::vector<double>> drawn;
    const std::uint64_t seeds = klineage::test::isSanitized() ? 6 : 20;
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
        const auto tensors = generateCase(workload, *workload.findCase("ragged"), seed);
        QVERIFY(tensors);
        std::vector<double> offsets;
        for (std::size_t i = 0; i < 6; ++i)
            offsets.push_back(kernel::loadElement((*tensors)[3].bytes.data(), kernel::DType::I32, i));
        QCOMPARE(offsets.front(), 0.0);
        QCOMPARE(offsets.back(), 613.0);
        for (std::size_t i = 1; i < offsets.size(); ++i)
            QVERIFY(offsets[i] > offsets[i - 1]);
        drawn.insert(offsets);
    }
    QVERIFY(drawn.size() > seeds * 3 / 4);
    workload::Case timed = *workload.findCase("timed");
    timed.axes["H"] = 1;
    const auto even = generateCase(workload, timed, 3);
    QVERIFY(even);
    for (std::size_t i = 0; i <= 8; ++i)
        QCOMPARE(kernel::loadElement((*even)[3].bytes.data(), kernel::DType::I32, i),
                 2048.0 * static_cast<double>(i));
}

void TestOracles::refusesWhatDoesNotFit_data()
{
    QTest::addColumn<QString>("name");
    QTest::addColumn<QString>("oracle");
    QTest::addColumn<QString>("says");
    QTest::newRow("matrix as image") << "rowscan"
                                     << "conv2d_nhwc"
                                     << "the role \"weight\" names no tensor";
    QTest::newRow("wrong result shape") << "rowsum"
                                        << "cumsum_rows"
                                        << "do not fit together";
    QTest::newRow("unknown") << "rowsum"
                             << "fft"
                             << "there is no such oracle; expected matmul_nn, ";
}

void TestOracles::refusesWhatDoesNotFit()
{
    QFETCH(const QString, name);
    QFETCH(const QString, oracle);
    QFETCH(const QString, says);
    workload::Workload workload = shipped(name.toStdString());
    workload.oracle = oracle.toStdString();
    const auto instance = makeInstance(workload, *workload.findCase("small"), 1);
    QVERIFY(!instance);
    QVERIFY2(QString::fromStdString(instance.error().message).contains(says),
             instance.error().message.c_str());
}

QTEST_GUILESS_MAIN(TestOracles)
#include "tst_oracles.moc"
