// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/pool/gatepool.h"

#include "core/pool/gateclient.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>

namespace klineage::gate {

namespace {

struct Gate {
    GateSpec spec;
    std::unique_ptr<GateClient> client; ///< of whoever holds the gate
    bool busy = false;
};

} // namespace

struct GatePool::Private {
    std::mutex mutex;
    std::condition_variable_any changed;
    std::vector<std::unique_ptr<Gate>> gates;
    std::deque<std::uint64_t> queue; ///< tickets, first come first
    std::uint64_t lastTicket = 0;

    [[nodiscard]] Gate *idle() const
    {
        // One that is up already is asked before one that would have to be started.
        Gate *cold = nullptr;
        for (const auto &gate : gates) {
            if (gate->busy)
                continue;
            if (gate->client)
                return gate.get();
            if (!cold)
                cold = gate.get();
        }
        return cold;
    }
    [[nodiscard]] Result<Gate *> take(const std::stop_token &stop, const ProgressCallback &progress);
    void giveBack(Gate *gate);
};

Result<Gate *> GatePool::Private::take(const std::stop_token &stop, const ProgressCallback &progress)
{
    std::unique_lock lock(mutex);
    const std::uint64_t ticket = ++lastTicket;
    queue.push_back(ticket);
    std::size_t told = 0;
    for (;;) {
        const auto place = std::find(queue.begin(), queue.end(), ticket);
        Gate *gate = place == queue.begin() ? idle() : nullptr;
        if (gate || stop.stop_requested()) {
            queue.erase(place);
            if (gate)
                gate->busy = true;
            changed.notify_all(); // the next in the queue may find another gate idle
            if (!gate)
                return fail(ErrorCode::Cancelled, "The trial was cancelled.");
            return gate;
        }
        const auto ahead = static_cast<std::size_t>(place - queue.begin()) + 1;
        if (progress && ahead != told) {
            told = ahead;
            lock.unlock(); // progress is the caller's code, and may ask the pool something
            progress(
                {Stage::Compile, -1, "waiting for a gate, place " + std::to_string(ahead) + " in the queue"});
            lock.lock();
            continue;
        }
        changed.wait(lock, stop, [&] {
            const auto at = std::find(queue.begin(), queue.end(), ticket);
            const auto now = static_cast<std::size_t>(at - queue.begin()) + 1;
            return (now == 1 && idle()) || (progress && now != told);
        });
    }
}

void GatePool::Private::giveBack(Gate *gate)
{
    const std::scoped_lock lock(mutex);
    gate->busy = false;
    changed.notify_all();
}

GatePool::GatePool(std::vector<GateSpec> gates)
    : m_d(std::make_unique<Private>())
{
    for (GateSpec &spec : gates)
        m_d->gates.push_back(std::make_unique<Gate>(Gate{std::move(spec), nullptr, false}));
}

GatePool::~GatePool() = default;

Result<Trial> GatePool::run(const GateRequest &request, std::stop_token stop, ProgressCallback progress)
{
    const Result<Gate *> taken = m_d->take(stop, progress);
    if (!taken)
        return tl::unexpected(taken.error());
    Gate *gate = *taken;
    struct Holder {
        Private *pool;
        Gate *gate;
        ~Holder() { pool->giveBack(gate); }
    } const holder{m_d.get(), gate};

    if (!gate->client) {
        if (gate->spec.program.empty()) {
            auto program = findGateProgram();
            if (!program)
                return tl::unexpected(program.error());
            gate->spec.program = std::move(*program);
        }
        auto client = std::make_unique<GateClient>(gate->spec.program, gate->spec.launcher);
        const std::scoped_lock lock(m_d->mutex);
        gate->client = std::move(client);
    }
    const bool wasUp = gate->client->isUp();
    Result<Trial> trial = gate->client->run(request, stop, progress);
    // What was up and went away while the trial ran may have been killed by somebody; a gate that cannot be started stays lost.
    if (!trial && trial.error().code == ErrorCode::Protocol && wasUp && !stop.stop_requested())
        trial = gate->client->run(request, stop, progress);
    return trial;
}

void GatePool::prepare(const GateRequest &request)
{
    Gate *gate = nullptr;
    {
        const std::scoped_lock lock(m_d->mutex);
        for (const auto &each : m_d->gates) {
            if (!each->busy && each->client) {
                gate = each.get();
                gate->busy = true;
                break;
            }
        }
    }
    if (!gate)
        return;
    gate->client->prepare(request);
    m_d->giveBack(gate);
}

} // namespace klineage::gate
