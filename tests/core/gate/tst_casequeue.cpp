// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/check/casequeue.h"

#include <QtTest>

#include <atomic>

using namespace klineage;
using namespace klineage::gate;

namespace {

constexpr int patienceMs = 20'000;

struct Cases {
    std::vector<workload::Case> all{5};
    [[nodiscard]] std::vector<CheckStep> steps() const
    {
        std::vector<CheckStep> steps;
        for (std::size_t i = 0; i < all.size(); ++i)
            steps.push_back({&all[i], 100 + i, false});
        return steps;
    }
};

Result<CaseInstancePtr> instanceOf(std::uint64_t seed, std::int64_t bytes = 1)
{
    auto made = std::make_shared<CaseInstance>();
    made->seed = seed;
    made->tensors.push_back({"x", workload::Role::Input, kernel::DType::U8, {bytes}, {}});
    return CaseInstancePtr(std::move(made));
}

} // namespace

class TestCaseQueue : public QObject
{
    Q_OBJECT
private slots:
    void inOrder_data()
    {
        QTest::addColumn<bool>("ahead");
        QTest::newRow("when taken") << false;
        QTest::newRow("ahead") << true;
    }
    void inOrder()
    {
        QFETCH(const bool, ahead);
        const Cases cases;
        std::atomic<int> made{0};
        CaseQueue queue(cases.steps(), ahead, [&](const workload::Case &c, std::uint64_t seed) {
            ++made;
            return instanceOf(&c == &cases.all[seed - 100] ? seed : 0);
        });
        if (ahead)
            QTRY_COMPARE_WITH_TIMEOUT(made.load(), 5, patienceMs); // before anybody asks
        for (std::uint64_t i = 0; i < 5; ++i) {
            const auto taken = queue.take();
            QVERIFY(taken);
            QCOMPARE((*taken)->seed, 100 + i);
            if (!ahead)
                QCOMPARE(made.load(), static_cast<int>(i) + 1);
        }
    }

    void noMoreThanThereIsRoomFor()
    {
        const Cases cases;
        std::atomic<int> made{0};
        CaseQueue queue(cases.steps(), true, [&](const workload::Case &, std::uint64_t seed) {
            ++made;
            return instanceOf(seed, std::int64_t{1} << 30);
        });
        QTRY_COMPARE_WITH_TIMEOUT(made.load(), 1, patienceMs);
        QTest::qWait(50);
        QCOMPARE(made.load(), 1);
        QVERIFY(queue.take());
        QTRY_COMPARE_WITH_TIMEOUT(made.load(), 2, patienceMs);
    } // and those that nobody took are let go

    void anErrorIsTold()
    {
        const Cases cases;
        CaseQueue queue(cases.steps(), true, [&](const workload::Case &, std::uint64_t seed) {
            return seed == 101 ? Result<CaseInstancePtr>(
                       tl::unexpected(Error{ErrorCode::Internal, "no such case", {}}))
                               : instanceOf(seed);
        });
        QVERIFY(queue.take());
        const auto failed = queue.take();
        QVERIFY(!failed);
        QCOMPARE(failed.error().message, std::string("no such case"));
    }
};

QTEST_GUILESS_MAIN(TestCaseQueue)
#include "tst_casequeue.moc"
