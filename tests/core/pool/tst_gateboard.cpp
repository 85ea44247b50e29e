// SPDX-License-Identifier: GPL-3.0-or-later
//
// Who goes next, and where to. Nothing runs here: the clock is a number.
#include "core/pool/gateboard.h"

#include <QtTest>

#include <algorithm>

using namespace klineage;
using namespace klineage::gate;

namespace {

DeviceInfo gpu(const std::string &name, const std::string &platform)
{
    return {kernel::DeviceKind::Cuda, true, name, {}, platform};
}

GateSpec named(const std::string &name, std::vector<std::string> platforms = {})
{
    GateSpec spec;
    spec.name = name;
    spec.platforms = std::move(platforms);
    return spec;
}

Need on(const std::string &platform, const std::string &device = {})
{
    return {kernel::DeviceKind::Cuda, {platform, device, {}, {}}};
}

} // namespace

class TestGateBoard : public QObject
{
    Q_OBJECT
private slots:
    void aTrialGoesToItsPlatformAlone();
    void whoAsksFirstGoesFirst();
    void whatGoesTogetherStaysOnOneKindOfDevice();
    void aLostTrialKeepsItsPlace();
    void aTrialThatKillsGatesEnds();
    void whatCannotBeReachedIsWaitedFor();
    void aRefusedKeyIsSaidAtOnce();
    void noneIsStartedWithoutNeed();
};

void TestGateBoard::aTrialGoesToItsPlatformAlone()
{
    GateBoard board({named("old", {"sm80"}), named("new")}, {600, 3});
    const auto ticket = board.ask(on("sm90"), 0);
    QCOMPARE(board.settle(0).starts,
             std::vector<std::size_t>{1}); // the other is known to have something else
    board.started(1, {gpu("NVIDIA H200", "sm90")}, 1);
    const auto seats = board.settle(1).seats;
    QCOMPARE(seats.size(), std::size_t{1});
    QCOMPARE(seats.front().first, ticket);
    QCOMPARE(seats.front().second, std::size_t{1});
    board.done(1, 2);
    // Nobody has it: said at once, with what there is.
    (void)board.ask(on("sm100"), 3);
    const auto refusals = board.settle(3).refusals;
    QCOMPARE(refusals.size(), std::size_t{1});
    QVERIFY(refusals.front().second.message.find("sm100") != std::string::npos);
    QVERIFY(refusals.front().second.detail.find("NVIDIA H200") != std::string::npos);
    // The other device of the same platform is another device.
    (void)board.ask(on("sm90", "NVIDIA H100"), 4);
    QCOMPARE(board.settle(4).refusals.size(), std::size_t{1});
}

void TestGateBoard::whoAsksFirstGoesFirst()
{
    GateBoard board({named("a"), named("b")}, {600, 3});
    std::vector<GateBoard::Ticket> tickets;
    for (const char *platform : {"sm90", "pocl", "sm90", "sm90"})
        tickets.push_back(board.ask({std::nullopt, {platform, {}, {}, {}}}, 0));
    QCOMPARE(board.settle(0).starts.size(), std::size_t{2});
    board.started(0, {gpu("NVIDIA H200", "sm90")}, 1);
    QCOMPARE(board.settle(1).seats.front().first, tickets[0]);
    QCOMPARE(board.placeOf(tickets[2]), std::size_t{2});
    board.done(0, 2);
    // The one for the CPU is older, and in nobody's way.
    QCOMPARE(board.settle(2).seats.front().first, tickets[2]);
    board.started(1, {{kernel::DeviceKind::OpenCl, true, "CPU", {}, "pocl"}}, 3);
    QCOMPARE(board.settle(3).seats.front().first, tickets[1]);
    board.leave(tickets[3]);
    QCOMPARE(board.waiting(), std::size_t{0});
}

void TestGateBoard::whatGoesTogetherStaysOnOneKindOfDevice()
{
    GateBoard board({named("a"), named("b"), named("c")}, {600, 3});
    Need need = on("sm90");
    need.place.together = "experiment";
    for (int i = 0; i < 3; ++i)
        (void)board.ask(need, 0);
    (void)board.settle(0);
    board.started(1, {gpu("NVIDIA H200", "sm90")}, 1);
    QCOMPARE(board.settle(1).seats.front().second, std::size_t{1});
    board.started(0, {gpu("NVIDIA H100", "sm90")}, 2);
    QVERIFY(board.settle(2).seats.empty()); // figures of two devices are never put beside each other
    board.started(2, {gpu("NVIDIA H200", "sm90")}, 3);
    QCOMPARE(board.settle(3).seats.front().second, std::size_t{2});
    // Another experiment may have the other device.
    need.place.together = "another";
    (void)board.ask(need, 4);
    QCOMPARE(board.settle(4).seats.front().second, std::size_t{0});
}

void TestGateBoard::aLostTrialKeepsItsPlace()
{
    GateBoard board({named("a"), named("b")}, {600, 3});
    std::vector<GateBoard::Ticket> tickets;
    for (int i = 0; i < 4; ++i)
        tickets.push_back(board.ask(on("sm90"), 0));
    (void)board.settle(0);
    board.started(0, {gpu("NVIDIA H200", "sm90")}, 1);
    board.started(1, {gpu("NVIDIA H200", "sm90")}, 1);
    QCOMPARE(board.settle(1).seats.size(), std::size_t{2});
    QVERIFY(board.lost(0, {ErrorCode::Protocol, "gone", {}}, 2));
    QCOMPARE(board.placeOf(tickets[0]), std::size_t{1});
    QVERIFY(board.settle(2).starts.empty()); // it rests
    board.done(1, 2.5);
    QCOMPARE(board.settle(2.5).seats.front().first, tickets[0]);
    QCOMPARE(board.settle(60).starts, std::vector<std::size_t>{0});
    QCOMPARE(board.gates()[0].losses, 1);
}

void TestGateBoard::aTrialThatKillsGatesEnds()
{
    GateBoard board({named("a")}, {600, 2});
    (void)board.ask(on("sm90"), 0);
    double now = 0;
    for (int losses = 1; losses <= 3; ++losses) {
        now += 100;
        QCOMPARE(board.settle(now).starts.size(), std::size_t{1});
        board.started(0, {gpu("NVIDIA H200", "sm90")}, now);
        QCOMPARE(board.settle(now).seats.size(), std::size_t{1});
        QCOMPARE(board.lost(0, {ErrorCode::Protocol, "gone", {}}, now), losses < 3);
    }
    QCOMPARE(board.waiting(), std::size_t{0});
}

void TestGateBoard::whatCannotBeReachedIsWaitedFor()
{
    GateBoard board({named("a")}, {300, 3});
    (void)board.ask(on("sm90"), 0);
    (void)board.settle(0);
    board.notStarted(0, {{ErrorCode::Unavailable, "The host is down.", {}}, false}, 15);
    int tries = 0;
    double now = 15;
    for (; now < 300; now += 1) {
        const auto orders = board.settle(now);
        QVERIFY(orders.refusals.empty());
        if (!orders.starts.empty()) {
            ++tries;
            board.notStarted(0, {{ErrorCode::Unavailable, "The host is down.", {}}, false}, now);
        }
    }
    QVERIFY(tries >= 6 && tries < 30);
    std::vector<std::pair<GateBoard::Ticket, Error>> refusals;
    for (; now < 400 && refusals.empty(); now += 1) {
        auto orders = board.settle(now);
        refusals = orders.refusals;
        if (!orders.starts.empty())
            board.notStarted(0, {{ErrorCode::Unavailable, "The host is down.", {}}, false}, now);
    }
    QCOMPARE(refusals.size(), std::size_t{1});
    QCOMPARE(refusals.front().second.message, std::string("The host is down."));
}

void TestGateBoard::aRefusedKeyIsSaidAtOnce()
{
    GateBoard board({named("a"), named("b")}, {300, 3});
    (void)board.ask(on("sm90"), 0);
    (void)board.ask(on("sm90"), 0);
    QCOMPARE(board.settle(0).starts.size(), std::size_t{2});
    board.notStarted(0, {{ErrorCode::Unavailable, "a refused the key.", {}}, true}, 1);
    QVERIFY(board.settle(1).refusals.empty()); // the other may still come
    board.notStarted(1, {{ErrorCode::Unavailable, "b refused the key.", {}}, true}, 2);
    const auto refusals = board.settle(2).refusals;
    QCOMPARE(refusals.size(), std::size_t{2});
    QCOMPARE(refusals.front().second.detail, std::string("a refused the key.\nb refused the key."));
    // Who asks later, when it may be mended, has it tried again.
    (void)board.ask(on("sm90"), 100);
    QCOMPARE(board.settle(100).starts.size(), std::size_t{1});
}

void TestGateBoard::noneIsStartedWithoutNeed()
{
    GateBoard board({named("a"), named("b"), named("c")}, {600, 3});
    for (int i = 0; i < 5; ++i) {
        (void)board.ask(on("sm90"), i);
        const auto orders = board.settle(i);
        QCOMPARE(orders.starts.size(), std::size_t{i == 0 ? 1U : 0U});
        if (i == 0)
            board.started(0, {gpu("NVIDIA H200", "sm90")}, i);
        QCOMPARE((i == 0 ? board.settle(i) : orders).seats.size(), std::size_t{1});
        board.done(0, i + 0.5);
    }
    board.closed(0, 100);
    QCOMPARE(board.gates()[0].phase, GatePhase::Cold);
    QCOMPARE(board.gates()[0].trials, 5);
    QCOMPARE(board.gates()[0].busySeconds, 2.5);
}

QTEST_GUILESS_MAIN(TestGateBoard)
#include "tst_gateboard.moc"
