// SPDX-License-Identifier: GPL-3.0-or-later
//
// 64 gates, 10,000 trials, gates that die at random: none is lost, none is made twice, and the gates have something to do. Once on the
// board alone with a clock of its own, where busy can be measured on any machine, and once with the pool's threads and fake gates.
#include "core/pool/gatepool.h"
#include "tests/paths.h"

#include <QtTest>

#include <array>
#include <atomic>
#include <cstdio>
#include <queue>
#include <random>
#include <thread>
#include <tuple>

using namespace klineage;
using namespace klineage::gate;

namespace {

constexpr std::size_t gateCount = 64;
constexpr std::size_t trialCount = 10'000;

std::vector<GateSpec> gates()
{
    std::vector<GateSpec> specs(gateCount);
    for (std::size_t i = 0; i < gateCount; ++i)
        specs[i].name = "gate:" + std::to_string(i);
    return specs;
}

std::vector<DeviceInfo> devices()
{
    return {{kernel::DeviceKind::Cuda, true, "NVIDIA H200", {}, "sm90"}};
}

/// Gates on a clock of its own. A start takes 2 to 10 s, and one in ten fails; a trial takes 5 to 60 s, and in one of fifty its gate dies.
class Simulation
{
public:
    explicit Simulation(std::uint64_t seed)
        : m_random(seed)
        , m_board(gates(), {600, 6})
    {}
    void run();

    std::array<int, trialCount + 1> ends{}; ///< by ticket
    int deaths = 0;
    int refused = 0;
    double busySeconds = 0;  ///< of all gates, while trials waited
    double drainSeconds = 0; ///< until no trial waited

private:
    enum class What { Started, NotStarted, Done, Died, Look };
    using Event = std::tuple<double, std::uint64_t, What, std::size_t>;

    double draw(double low, double high) { return std::uniform_real_distribution<>(low, high)(m_random); }
    void push(double when, What what, std::size_t gate) { m_events.emplace(when, ++m_number, what, gate); }
    void settle(double now);
    void happen(double now, What what, std::size_t gate);

    std::mt19937_64 m_random;
    GateBoard m_board;
    std::priority_queue<Event, std::vector<Event>, std::greater<>> m_events;
    std::uint64_t m_number = 0;
    std::array<GateBoard::Ticket, gateCount> m_tickets{};
};

void Simulation::settle(double now)
{
    const GateBoard::Orders orders = m_board.settle(now);
    for (const std::size_t gate : orders.starts)
        push(now + draw(2, 10), draw(0, 1) < 0.1 ? What::NotStarted : What::Started, gate);
    for (const auto &[ticket, gate] : orders.seats) {
        m_tickets[gate] = ticket;
        const double seconds = draw(5, 60);
        const bool dies = draw(0, 1) < 0.02;
        push(now + (dies ? draw(0, seconds) : seconds), dies ? What::Died : What::Done, gate);
    }
    refused += static_cast<int>(orders.refusals.size());
    if (drainSeconds == 0 && m_board.waiting() == 0) {
        drainSeconds = now;
        for (const GateState &gate : m_board.gates())
            busySeconds += gate.busySeconds + (gate.phase == GatePhase::Busy ? now - gate.since : 0);
    }
}

void Simulation::happen(double now, What what, std::size_t gate)
{
    switch (what) {
    case What::Started:
        m_board.started(gate, devices(), now);
        break;
    case What::NotStarted:
        m_board.notStarted(gate, {{ErrorCode::Unavailable, "It does not answer.", {}}, false}, now);
        push(m_board.gates()[gate].restsUntil, What::Look, gate);
        break;
    case What::Done:
        ++ends[m_tickets[gate]];
        m_board.done(gate, now);
        break;
    case What::Died:
        ++deaths;
        refused += m_board.lost(gate, {ErrorCode::Protocol, "It died.", {}}, now) ? 0 : 1;
        push(m_board.gates()[gate].restsUntil, What::Look, gate);
        break;
    case What::Look:
        break;
    }
}

void Simulation::run()
{
    for (std::size_t i = 0; i < trialCount; ++i)
        (void)m_board.ask({kernel::DeviceKind::Cuda, {"sm90", {}, {}, {}}}, 0);
    settle(0);
    while (!m_events.empty()) {
        const auto [now, number, what, gate] = m_events.top();
        m_events.pop();
        happen(now, what, gate);
        settle(now);
    }
}

/// A gate that takes no time, or a millisecond, and dies as the trial's number says: how often a trial has been begun decides.
class FakeGate : public GateLink
{
public:
    struct Books {
        std::array<std::atomic<int>, trialCount> begun{};
        std::array<std::atomic<int>, trialCount> ended{};
        std::atomic<int> starts = 0;
        std::atomic<int> deaths = 0;
    };
    explicit FakeGate(Books &books)
        : m_books(books)
    {}
    tl::expected<std::vector<DeviceInfo>, GateProblem> start(
        bool, const std::stop_token &, const std::function<void(const std::string &)> &) override
    {
        if (++m_books.starts % 10 == 0)
            return tl::unexpected(GateProblem{{ErrorCode::Unavailable, "It does not answer.", {}}, false});
        m_isUp = true;
        return devices();
    }
    Result<Trial> run(const GateRequest &request, std::stop_token, ProgressCallback) override
    {
        const auto number = static_cast<std::size_t>(std::stoul(request.candidateName));
        const int before = m_books.begun[number]++;
        if (number % 16 == 0)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        if ((before == 0 && number % 50 == 7) || (before == 1 && number % 1000 == 57)) {
            ++m_books.deaths;
            m_isUp = false;
            return fail(ErrorCode::Protocol, "It died.");
        }
        ++m_books.ended[number];
        Trial trial;
        trial.id = request.candidateName;
        trial.environment.device = "NVIDIA H200";
        trial.environment.platform = "sm90";
        return trial;
    }
    void prepare(const GateRequest &) override {}
    bool isUp() const override { return m_isUp; }

private:
    Books &m_books;
    bool m_isUp = false;
};

} // namespace

class TestPoolSimulation : public QObject
{
    Q_OBJECT
private slots:
    void onAClockOfItsOwn_data();
    void onAClockOfItsOwn();
    void withThreads_data();
    void withThreads();
};

void TestPoolSimulation::onAClockOfItsOwn_data()
{
    QTest::addColumn<int>("seed");
    for (const int seed : {1, 2, 3}) {
        if (seed == 1 || !klineage::test::isSanitized())
            QTest::newRow(std::to_string(seed).c_str()) << seed;
    }
}

void TestPoolSimulation::onAClockOfItsOwn()
{
    QFETCH(int, seed);
    Simulation simulation(static_cast<std::uint64_t>(seed));
    simulation.run();
    QCOMPARE(simulation.refused, 0);
    for (std::size_t ticket = 1; ticket <= trialCount; ++ticket)
        QCOMPARE(simulation.ends[ticket], 1);
    QVERIFY(simulation.deaths > 100);
    const double busy = simulation.busySeconds / (gateCount * simulation.drainSeconds);
    std::printf("%d deaths, %.1f %% busy, dead and starting gates counted\n", simulation.deaths, 100 * busy);
    QVERIFY2(busy >= 0.95, std::to_string(busy).c_str());
}

void TestPoolSimulation::withThreads_data()
{
    QTest::addColumn<double>("rest");
    QTest::newRow("a moment") << 0.01;
    QTest::newRow("none") << 0.0; // the thread that could not start a gate is told to start it again
}

void TestPoolSimulation::withThreads()
{
    QFETCH(double, rest);
    FakeGate::Books books;
    GatePool pool(gates(), {600, 3, rest, true},
                  [&](const GateSpec &) { return std::make_unique<FakeGate>(books); });
    std::atomic<std::size_t> next = 0;
    std::atomic<int> right = 0;
    {
        std::vector<std::jthread> threads;
        for (std::size_t i = 0; i < 2 * gateCount; ++i)
            threads.emplace_back([&] {
                for (std::size_t number = next++; number < trialCount; number = next++) {
                    GateRequest request;
                    request.candidateName = std::to_string(number);
                    const auto trial = pool.run(request);
                    right += trial && trial->id == request.candidateName
                             && trial->environment.facts.at("gate").starts_with("gate:");
                }
            });
    }
    QCOMPARE(right.load(), static_cast<int>(trialCount));
    for (std::size_t number = 0; number < trialCount; ++number)
        QCOMPARE(books.ended[number].load(), 1);
    QCOMPARE(books.deaths.load(), 210);
    int trials = 0;
    int losses = 0;
    for (const GateState &gate : pool.state().gates) {
        trials += gate.trials;
        losses += gate.losses;
    }
    QCOMPARE(trials, static_cast<int>(trialCount));
    QCOMPARE(losses, 210);
}

QTEST_GUILESS_MAIN(TestPoolSimulation)
#include "tst_poolsimulation.moc"
