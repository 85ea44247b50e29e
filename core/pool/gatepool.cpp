// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/pool/gatepool.h"

#include "core/pool/gateclient.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

namespace klineage::gate {

namespace {

constexpr auto glance = std::chrono::seconds(1); ///< how often one who waits looks whether something is due
constexpr std::size_t nearPlaces = 8;            ///< places in the queue that are told as they change
constexpr std::size_t mostPrepared = 2;          ///< more than these a gate does not keep

std::unique_ptr<GateLink> clientOf(const GateSpec &spec)
{
    return std::make_unique<GateClient>(spec);
}

} // namespace

struct GatePool::Private {
    /// One who waits for a gate.
    struct Asker {
        const GateRequest *request = nullptr; ///< outlives the wait
        bool isPrepared = false;              ///< some gate knows of it
        std::condition_variable_any changed;
        std::optional<std::size_t> gate;
        std::optional<Error> refused;
    };

    mutable std::mutex mutex;
    GateBoard board;
    BoardOptions options;
    LinkMaker maker;
    std::map<GateBoard::Ticket, Asker *> askers;
    std::vector<std::unique_ptr<GateLink>> links; ///< of whoever holds the gate
    std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
    std::condition_variable_any ending; ///< never notified: for the keeper to wait on
    std::vector<std::jthread> starters; ///< beside the gates
    std::jthread keeper;                // last, as the threads use everything above

    Private(std::vector<GateSpec> specs, BoardOptions boardOptions, LinkMaker linkMaker)
        : board(std::move(specs), boardOptions)
        , options(boardOptions)
        , maker(linkMaker ? std::move(linkMaker) : LinkMaker(clientOf))
    {
        links.resize(board.gates().size());
        starters.resize(board.gates().size());
        const auto ends = [](const GateState &gate) { return gate.spec.idleSeconds > 0; };
        if (std::any_of(board.gates().begin(), board.gates().end(), ends))
            keeper = std::jthread([this](const std::stop_token &stop) { endIdleGates(stop); });
    }
    ~Private()
    {
        keeper = {};
        for (std::jthread &starter : starters)
            starter.request_stop();
        for (std::jthread &starter : starters)
            starter = {};
        std::vector<std::jthread> enders; // ending a job takes seconds, and they end together
        for (auto &link : links) {
            if (link)
                enders.emplace_back([&link] { link.reset(); });
        }
    }

    [[nodiscard]] double now() const
    {
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    }
    bool settle(std::optional<std::size_t> starting = {});
    void startGate(std::size_t gate, const std::stop_token &stop);
    [[nodiscard]] std::string textFor(GateBoard::Ticket ticket) const;
    void endIdleGates(const std::stop_token &stop);
    [[nodiscard]] Result<std::size_t> awaitGate(GateBoard::Ticket ticket, Asker &asker,
                                                const std::stop_token &stop,
                                                const ProgressCallback &progress);
    [[nodiscard]] std::vector<GateRequest> nextOnes(std::size_t gate);
    [[nodiscard]] Result<Trial> ask(const GateRequest &request, const std::stop_token &stop,
                                    const ProgressCallback &progress);
};

/// Does what the board decides. The mutex is held. A thread that starts a gate says which: it cannot wait for its own end, and is told
/// to start that gate once more itself.
bool GatePool::Private::settle(std::optional<std::size_t> starting)
{
    bool again = false;
    const GateBoard::Orders orders = board.settle(now());
    for (const auto &[ticket, gate] : orders.seats) {
        Asker *asker = askers.at(ticket);
        asker->gate = gate;
        asker->changed.notify_one();
    }
    for (const auto &[ticket, error] : orders.refusals) {
        Asker *asker = askers.at(ticket);
        asker->refused = error;
        asker->changed.notify_one();
    }
    for (const std::size_t gate : orders.starts) {
        if (gate == starting)
            again = true;
        else
            starters[gate] =
                std::jthread([this, gate](const std::stop_token &stop) { startGate(gate, stop); });
    }
    if (orders.seats.empty() && orders.refusals.empty())
        return again;
    std::size_t place = 0;
    for (const auto &[ticket, asker] : askers) {
        if (asker->gate)
            continue;
        if (++place > nearPlaces)
            break;
        asker->changed.notify_one();
    }
    return again;
}

/// On a thread of its own: a connection takes seconds, a queue hours.
void GatePool::Private::startGate(std::size_t gate, const std::stop_token &stop)
{
    std::unique_lock lock(mutex);
    const GateSpec spec = board.gates()[gate].spec;
    for (bool again = true; again;) {
        lock.unlock();
        std::unique_ptr<GateLink> link = maker(spec);
        auto devices = link->start(options.tellsPlaces, stop, [&](const std::string &stand) {
            const std::scoped_lock saying(mutex);
            board.saysStand(gate, stand);
            for (const auto &[ticket, asker] : askers)
                asker->changed.notify_one();
        });
        lock.lock();
        if (devices) {
            links[gate] = std::move(link);
            board.started(gate, std::move(*devices), now());
        } else {
            board.notStarted(gate, devices.error(), now());
        }
        again = !stop.stop_requested() && settle(gate);
    }
}

void GatePool::Private::endIdleGates(const std::stop_token &stop)
{
    std::unique_lock lock(mutex);
    while (!stop.stop_requested()) {
        ending.wait_for(lock, stop, glance, [] { return false; });
        std::vector<std::unique_ptr<GateLink>> ended;
        for (std::size_t i = 0; i < links.size(); ++i) {
            const GateState &gate = board.gates()[i];
            if (gate.phase != GatePhase::Idle || gate.spec.idleSeconds <= 0
                || now() - gate.since < gate.spec.idleSeconds)
                continue;
            ended.push_back(std::move(links[i]));
            board.closed(i, now());
        }
        if (ended.empty())
            continue;
        lock.unlock();
        ended.clear();
        lock.lock();
    }
}

/// What one who waits is told.
std::string GatePool::Private::textFor(GateBoard::Ticket ticket) const
{
    const std::size_t place = board.placeOf(ticket);
    const std::string stand = board.standFor(ticket);
    if (place <= 1 && !stand.empty())
        return stand;
    return "waiting for a gate, place " + std::to_string(place) + " in the queue"
           + (stand.empty() ? "" : "; " + stand);
}

Result<std::size_t> GatePool::Private::awaitGate(GateBoard::Ticket ticket, Asker &asker,
                                                 const std::stop_token &stop,
                                                 const ProgressCallback &progress)
{
    std::unique_lock lock(mutex);
    std::string told;
    for (;;) {
        if (asker.gate)
            return *std::exchange(asker.gate, std::nullopt);
        if (asker.refused)
            return tl::unexpected(*asker.refused);
        if (stop.stop_requested()) {
            board.leave(ticket);
            settle(); // the others come nearer
            return fail(ErrorCode::Cancelled, "The trial was cancelled.");
        }
        if (progress && textFor(ticket) != told) {
            told = textFor(ticket);
            lock.unlock(); // progress is the caller's code, and may ask the pool something
            progress({Stage::Compile, -1, told});
            lock.lock();
            continue;
        }
        const bool woken = asker.changed.wait_for(lock, stop, glance, [&] {
            return asker.gate || asker.refused || (progress && textFor(ticket) != told);
        });
        if (!woken && !stop.stop_requested())
            settle();
    }
}

/// Who waits behind one that has got this gate, and is not known to any yet: candidates to compile while that one is measured.
std::vector<GateRequest> GatePool::Private::nextOnes(std::size_t gate)
{
    std::vector<GateRequest> next;
    const std::scoped_lock lock(mutex);
    for (const auto &[ticket, asker] : askers) {
        if (asker->isPrepared || !board.mayTake(gate, ticket))
            continue;
        asker->isPrepared = true;
        next.push_back(*asker->request);
        if (next.size() == mostPrepared)
            break;
    }
    return next;
}

Result<Trial> GatePool::Private::ask(const GateRequest &request, const std::stop_token &stop,
                                     const ProgressCallback &progress)
{
    Asker asker;
    asker.request = &request;
    GateBoard::Ticket ticket = 0;
    const Need need = needOf(request);
    {
        const std::scoped_lock lock(mutex);
        ticket = board.ask(need, now());
        askers.emplace(ticket, &asker);
        settle();
    }
    struct Leaver {
        Private *pool;
        GateBoard::Ticket ticket;
        ~Leaver()
        {
            const std::scoped_lock lock(pool->mutex);
            pool->askers.erase(ticket);
        }
    } const leaver{this, ticket};
    for (;;) {
        const Result<std::size_t> gate = awaitGate(ticket, asker, stop, progress);
        if (!gate)
            return tl::unexpected(gate.error());
        for (const GateRequest &next : nextOnes(*gate))
            links[*gate]->prepare(next);
        Result<Trial> trial = links[*gate]->run(request, stop, progress);
        std::unique_ptr<GateLink> gone;
        const std::scoped_lock lock(mutex);
        if (links[*gate]->isUp()) {
            board.done(*gate, now());
            if (const std::string &name = board.gates()[*gate].spec.name; trial && !name.empty())
                trial->environment.facts["gate"] = name;
            settle();
            return trial;
        }
        gone = std::move(links[*gate]);
        const bool goesOn =
            board.lost(*gate, trial ? Error{ErrorCode::Protocol, "It ended.", {}} : trial.error(), now());
        if (trial || stop.stop_requested() || !goesOn)
            board.leave(ticket);
        settle();
        if (trial || stop.stop_requested() || !goesOn)
            return trial;
    }
}

GatePool::GatePool(std::vector<GateSpec> gates)
    : GatePool(std::move(gates), BoardOptions{0, 1, 1, false})
{}

GatePool::GatePool(std::vector<GateSpec> gates, BoardOptions options, LinkMaker maker)
    : m_d(std::make_unique<Private>(std::move(gates), options, std::move(maker)))
{}

GatePool::~GatePool() = default;

Result<Trial> GatePool::run(const GateRequest &request, std::stop_token stop, ProgressCallback progress)
{
    Result<Trial> trial = m_d->ask(request, stop, progress);
    const Place &place = request.place;
    if (!trial || trial->environment.device.empty())
        return trial;
    const Environment &made = trial->environment;
    if ((!place.device.empty() && made.device != place.device)
        || (!place.platform.empty() && made.platform != place.platform))
        return fail(ErrorCode::Unavailable,
                    "The trial was made on " + made.device + " (" + made.platform
                        + "), and what it is compared with on "
                        + (place.device.empty() ? place.platform : place.device) + ": it does not count.",
                    "Ask where that device is, or begin anew here.");
    return trial;
}

void GatePool::prepare(const GateRequest &request)
{
    const std::scoped_lock lock(m_d->mutex);
    for (std::size_t i = 0; i < m_d->links.size(); ++i) {
        if (m_d->board.gates()[i].phase == GatePhase::Idle) {
            m_d->links[i]->prepare(request);
            return;
        }
    }
}

PoolState GatePool::state() const
{
    const std::scoped_lock lock(m_d->mutex);
    PoolState state{m_d->board.gates(), m_d->board.waiting()};
    const double now = m_d->now();
    for (GateState &gate : state.gates) {
        if (gate.phase == GatePhase::Busy)
            gate.busySeconds += now - gate.since;
        if (gate.phase == GatePhase::Busy || gate.phase == GatePhase::Idle)
            gate.upSeconds += now - gate.since;
    }
    return state;
}

std::size_t GatePool::size() const
{
    return m_d->links.size();
}

} // namespace klineage::gate
