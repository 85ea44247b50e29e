// SPDX-License-Identifier: GPL-3.0-or-later
//
// Choices of elements: what is free (order, ties) passes, and everything else is told.
#include "core/gate/check/outputjudge.h"
#include "tests/paths.h"

#include <QtTest>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <numeric>
#include <random>

using namespace klineage;
using namespace klineage::gate;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

workload::Workload topk()
{
    auto workload = workload::readWorkload(std::filesystem::path(klineage::test::sourcePath())
                                           / "tests/gate/references/workloads/topk");
    if (!workload)
        qFatal("%s", workload.error().message.c_str());
    return *workload;
}

/// What a candidate leaves: values and columns of each row.
struct Answer {
    std::size_t rows, columns, k;
    std::vector<float> in, values;
    std::vector<std::int32_t> indices;

    float &value(std::size_t row, std::size_t i) { return values[row * k + i]; }
    std::int32_t &index(std::size_t row, std::size_t i) { return indices[row * k + i]; }
};

/// The right one, descending, of equal elements those with the largest columns (the oracle takes the smallest).
Answer answerOf(const CaseInstance &instance)
{
    const HostTensor &in = instance.tensors[0];
    Answer answer{static_cast<std::size_t>(in.shape[0]),
                  in.rowLength(),
                  instance.tensors[1].rowLength(),
                  std::vector<float>(in.elements()),
                  {},
                  {}};
    std::memcpy(answer.in.data(), in.bytes.data(), in.bytes.size());
    for (std::size_t row = 0; row < answer.rows; ++row) {
        const float *x = answer.in.data() + row * answer.columns;
        std::vector<std::int32_t> order(answer.columns);
        std::iota(order.rbegin(), order.rend(), 0);
        std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return x[a] > x[b]; });
        for (std::size_t i = 0; i < answer.k; ++i) {
            answer.indices.push_back(order[i]);
            answer.values.push_back(x[order[i]]);
        }
    }
    return answer;
}

template <typename T>
std::span<const std::byte> bytesOf(const std::vector<T> &values)
{
    return std::as_bytes(std::span(values));
}

/// "values", "indices" or nothing: the output that is wrong; then its first wrong element, and why an index is.
QString judged(const CaseInstance &instance, const Answer &answer)
{
    OutputJudge judge(instance);
    const std::span<const std::byte> contents[] = {bytesOf(answer.values), bytesOf(answer.indices)};
    for (std::size_t i = 0; i < 2; ++i) {
        const HostTensor &tensor = instance.tensors[1 + i];
        const OutputCheck check = judge.compare(tensor, contents[i]);
        if (!check.ok())
            return QString::fromStdString(elementName(tensor.name, tensor.shape, check.index) + " "
                                          + check.why);
    }
    return {};
}

} // namespace

class TestSelection : public QObject
{
    Q_OBJECT
private slots:
    void everyCaseTakesAnyOrder_data();
    void everyCaseTakesAnyOrder();
    void sortedTakesItsOrderAlone();
    void wrongAnswers_data();
    void wrongAnswers();
    void unwrittenIsTold();
    void valuesAlone();
    void indicesAlone();
    void oracleRefuses_data();
    void oracleRefuses();
};

void TestSelection::everyCaseTakesAnyOrder_data()
{
    QTest::addColumn<QString>("name");
    for (const workload::Case &c : topk().cases) {
        if (c.drawn.empty())
            QTest::newRow(c.name.c_str()) << QString::fromStdString(c.name);
    }
}

void TestSelection::everyCaseTakesAnyOrder()
{
    QFETCH(const QString, name);
    const auto workload = topk();
    const auto instance = makeInstance(workload, *workload.findCase(name.toStdString()), 11);
    QVERIFY2(instance, instance ? "" : instance.error().message.c_str());
    Answer answer = answerOf(**instance);
    QCOMPARE(judged(**instance, answer), QString());
    std::mt19937 random(3);
    for (std::size_t row = 0; row < answer.rows; ++row) {
        for (std::size_t i = answer.k; i > 1; --i) {
            const std::size_t j = random() % i;
            std::swap(answer.value(row, i - 1), answer.value(row, j));
            std::swap(answer.index(row, i - 1), answer.index(row, j));
        }
    }
    QCOMPARE(judged(**instance, answer), QString());
}

void TestSelection::sortedTakesItsOrderAlone()
{
    auto workload = topk();
    workload.oracle = "topk_sorted_rows";
    const auto small = makeInstance(workload, *workload.findCase("small"), 11);
    QVERIFY2(small, small ? "" : small.error().message.c_str());
    Answer answer = answerOf(**small);
    QCOMPARE(judged(**small, answer), QString());
    std::swap(answer.value(2, 5), answer.value(2, 6));
    std::swap(answer.index(2, 5), answer.index(2, 6));
    QCOMPARE(judged(**small, answer), QStringLiteral("values[2, 5] "));
    std::swap(answer.value(2, 5), answer.value(2, 6)); // the right values with each other's columns
    QVERIFY(judged(**small, answer).startsWith("indices[2, 5] where the input is "));

    const auto ties = makeInstance(workload, *workload.findCase("ties"), 11);
    QVERIFY(ties);
    answer = answerOf(**ties); // not the oracle's columns
    QCOMPARE(judged(**ties, answer), QString());
    std::swap(answer.index(2, 0), answer.index(2, 1)); // which of equal elements comes first is free
    QCOMPARE(answer.value(2, 0), answer.value(2, 1));
    QCOMPARE(judged(**ties, answer), QString());

    const auto infinities = makeInstance(workload, *workload.findCase("infinities"), 11);
    QVERIFY(infinities);
    answer = answerOf(**infinities);
    QCOMPARE(judged(**infinities, answer), QString());
    std::reverse(answer.values.begin(), answer.values.begin() + static_cast<std::ptrdiff_t>(answer.k));
    std::reverse(answer.indices.begin(), answer.indices.begin() + static_cast<std::ptrdiff_t>(answer.k));
    QVERIFY(judged(**infinities, answer).startsWith("values[0, 0]"));
}

void TestSelection::wrongAnswers_data()
{
    QTest::addColumn<QString>("name");
    QTest::addColumn<int>("fault");
    QTest::addColumn<QString>("says");
    QTest::newRow("the one after the last") << "small" << 0 << "values[2, 36] ";
    QTest::newRow("the largest twice") << "small" << 1 << "values[2, 36] ";
    QTest::newRow("NaN") << "small" << 2 << "values[2, 5] ";
    QTest::newRow("a tie twice") << "ties" << 3 << "indices[2, 1] which its row names already";
    QTest::newRow("another row's columns") << "small" << 4 << "indices[0, 0] where the input is ";
    QTest::newRow("exchanged") << "small" << 5 << "indices[2, 5] where the input is ";
    QTest::newRow("negative") << "small" << 6 << "indices[2, 5] which is no column: there are 1001";
    QTest::newRow("past the end") << "small" << 7 << "indices[2, 5] which is no column: there are 1001";
    QTest::newRow("columns of the whole matrix") << "small" << 8 << "indices[1, 0] which is no column";
    QTest::newRow("infinity's column for a number")
        << "infinities" << 9 << "indices[0, 0] where the input is -inf";
    QTest::newRow("a hair off where it is exact") << "ties" << 10 << "values[2, 5] ";
}

void TestSelection::wrongAnswers()
{
    QFETCH(const QString, name);
    QFETCH(const int, fault);
    const auto workload = topk();
    const auto instance = makeInstance(workload, *workload.findCase(name.toStdString()), 5);
    QVERIFY(instance);
    Answer answer = answerOf(**instance);
    const std::size_t last = answer.k - 1;
    const auto input = [&](std::size_t row, std::int32_t column) {
        return answer.in[row * answer.columns + static_cast<std::size_t>(column)];
    };
    switch (fault) {
    case 0: { // the largest that was not chosen
        std::int32_t best = -1;
        for (std::int32_t column = 0; column < static_cast<std::int32_t>(answer.columns); ++column) {
            const auto row = answer.indices.begin() + static_cast<std::ptrdiff_t>(2 * answer.k);
            if (std::find(row, row + static_cast<std::ptrdiff_t>(answer.k), column)
                    == row + static_cast<std::ptrdiff_t>(answer.k)
                && (best < 0 || input(2, column) > input(2, best)))
                best = column;
        }
        answer.index(2, last) = best;
        answer.value(2, last) = input(2, best);
        break;
    }
    case 1:
        answer.index(2, last) = answer.index(2, 0);
        answer.value(2, last) = answer.value(2, 0);
        break;
    case 2:
        answer.value(2, 5) = std::nanf("");
        break;
    case 3:
        answer.index(2, 1) = answer.index(2, 0);
        break;
    case 4:
        std::rotate(answer.indices.begin(), answer.indices.begin() + static_cast<std::ptrdiff_t>(answer.k),
                    answer.indices.end());
        break;
    case 5:
        std::swap(answer.index(2, 5), answer.index(2, 30));
        break;
    case 6:
        answer.index(2, 5) = -1;
        break;
    case 7:
        answer.index(2, 5) = 1001;
        break;
    case 8:
        for (std::size_t i = 0; i < answer.indices.size(); ++i)
            answer.indices[i] += static_cast<std::int32_t>(i / answer.k * answer.columns);
        break;
    case 9: {
        const float *row = answer.in.data();
        const auto unchosen = std::find(row, row + answer.columns, -infinity) - row;
        answer.index(0, 0) = static_cast<std::int32_t>(unchosen);
        break;
    }
    default:
        answer.value(2, 5) = std::nextafter(answer.value(2, 5), -infinity);
    }
    const QString got = judged(**instance, answer);
    QFETCH(const QString, says);
    QVERIFY2(got.startsWith(says), qPrintable(got));
}

void TestSelection::unwrittenIsTold()
{
    const auto workload = topk();
    const auto instance = makeInstance(workload, *workload.findCase("small"), 5);
    QVERIFY(instance);
    Answer answer = answerOf(**instance);
    for (std::size_t i = 30; i < answer.k; ++i) { // the tail of one row
        answer.value(4, i) = -1e30f;
        answer.index(4, i) = 0x5a5a5a5a;
    }
    const std::vector<float> values(answer.values.size(), -1e30f);
    const std::vector<std::int32_t> indices(answer.indices.size(), 0x5a5a5a5a);
    OutputJudge judge(**instance);
    const auto first = judge.compare((*instance)->tensors[1], bytesOf(answer.values), bytesOf(values));
    QCOMPARE(first.mismatches, std::size_t{7});
    QCOMPARE(first.unwritten, std::size_t{7});
    QCOMPARE(first.index, 4 * answer.k + 30);
    const auto second = judge.compare((*instance)->tensors[2], bytesOf(answer.indices), bytesOf(indices));
    QCOMPARE(second.failure, OutputCheck::Failure::Selection);
    QCOMPARE(second.mismatches, std::size_t{7});
    QCOMPARE(second.unwritten, std::size_t{7});
}

void TestSelection::valuesAlone()
{
    auto workload = topk();
    workload.tensors.pop_back();
    workload.oracleArgs.erase("indices");
    const auto instance = makeInstance(workload, *workload.findCase("small"), 5);
    QVERIFY2(instance, instance ? "" : instance.error().message.c_str());
    Answer answer = answerOf(**instance);
    std::reverse(answer.values.begin(), answer.values.begin() + static_cast<std::ptrdiff_t>(answer.k));
    OutputJudge judge(**instance);
    QVERIFY(judge.compare((*instance)->tensors[1], bytesOf(answer.values)).ok());
    answer.value(0, 0) += 1;
    QVERIFY(!judge.compare((*instance)->tensors[1], bytesOf(answer.values)).ok());
}

/// A red zone beside the values is found before they are compared; then nothing is said of the indices.
void TestSelection::indicesAlone()
{
    const auto workload = topk();
    const auto instance = makeInstance(workload, *workload.findCase("small"), 5);
    QVERIFY(instance);
    const Answer answer = answerOf(**instance);
    OutputJudge judge(**instance);
    QVERIFY(judge.compare((*instance)->tensors[2], bytesOf(answer.indices)).ok());
}

void TestSelection::oracleRefuses_data()
{
    QTest::addColumn<int>("fault");
    QTest::addColumn<QString>("says");
    QTest::newRow("all of a row") << 0 << "it takes fewer elements than a row has";
    QTest::newRow("indices first") << 1 << "declared after its values";
    QTest::newRow("indices that are no whole numbers") << 2 << "its indices are whole numbers";
    QTest::newRow("no values") << 3 << "the role \"values\" names no tensor";
    QTest::newRow("transposed") << 4 << "do not fit together";
}

void TestSelection::oracleRefuses()
{
    QFETCH(const int, fault);
    auto workload = topk();
    workload::Case c = *workload.findCase("small");
    switch (fault) {
    case 0:
        c.axes["K"] = c.axes["S"];
        break;
    case 1:
        std::swap(workload.tensors[1], workload.tensors[2]);
        break;
    case 2:
        workload.tensors[2].dtype = kernel::DType::F32;
        break;
    case 3:
        workload.oracleArgs.erase("values");
        break;
    default:
        std::reverse(workload.tensors[2].shape.begin(), workload.tensors[2].shape.end());
    }
    const auto instance = makeInstance(workload, c, 1);
    QVERIFY(!instance);
    QFETCH(const QString, says);
    QVERIFY2(QString::fromStdString(instance.error().message).contains(says),
             instance.error().message.c_str());
}

QTEST_GUILESS_MAIN(TestSelection)
#include "tst_selection.moc"
