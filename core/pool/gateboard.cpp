// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/pool/gateboard.h"

#include "core/kernel/candidate.h"

#include <algorithm>
#include <iterator>

namespace klineage::gate {

namespace {

constexpr double longestRestSeconds = 60;
constexpr double goneSeconds = 30; ///< then somebody may have mended it, and the next trial tries it again

bool serves(const DeviceInfo &device, const Need &need)
{
    return device.available && (!need.kind || device.kind == *need.kind)
           && (need.place.platform.empty() || device.platform.empty()
               || device.platform == need.place.platform)
           && (need.place.device.empty() || device.name == need.place.device);
}

std::string devicesOf(const GateState &gate)
{
    std::string text;
    for (const DeviceInfo &device : gate.devices) {
        if (device.available)
            text += (text.empty() ? "" : ", ") + device.name
                    + (device.platform.empty() ? "" : " (" + device.platform + ")");
    }
    if (!gate.isKnown) {
        for (const std::string &platform : gate.spec.platforms)
            text += (text.empty() ? "" : ", ") + platform;
    }
    return text.empty() ? "no device" : text;
}

/// What shares a word and a kind of device is bound to one.
std::string bondOf(const Need &need)
{
    if (need.place.together.empty() || !need.place.device.empty())
        return {};
    return need.place.together + '\n' + need.place.platform + '\n'
           + (need.kind ? kernel::toString(*need.kind) : "");
}

} // namespace

Need needOf(const GateRequest &request)
{
    Need need{std::nullopt, request.place};
    if (const auto candidate = kernel::parseCandidate(request.candidateText, request.candidateName))
        need.kind = candidate->surface->device;
    return need;
}

std::string describe(const Need &need)
{
    std::string text = need.place.platform;
    if (text.empty() && need.kind)
        text = kernel::traitsOf(*need.kind).name;
    if (!need.place.device.empty())
        text += (text.empty() ? "" : ", ") + need.place.device;
    if (!need.place.gate.empty())
        text += (text.empty() ? "" : ", ") + std::string("the gate ") + need.place.gate;
    return text;
}

const char *toString(GatePhase phase)
{
    switch (phase) {
    case GatePhase::Cold:
        return "not started";
    case GatePhase::Starting:
        return "starting";
    case GatePhase::Idle:
        return "idle";
    case GatePhase::Busy:
        return "busy";
    case GatePhase::Resting:
        return "lost";
    case GatePhase::Gone:
        return "failed";
    }
    return "";
}

GateBoard::GateBoard(std::vector<GateSpec> gates, BoardOptions options)
    : m_options(options)
{
    for (GateSpec &spec : gates) {
        m_gates.emplace_back();
        m_gates.back().spec = std::move(spec);
    }
    m_seated.resize(m_gates.size());
}

GateBoard::Fit GateBoard::fit(const GateState &gate, const Need &need) const
{
    if (!need.place.gate.empty() && gate.spec.name != need.place.gate)
        return Fit::No;
    if (!m_options.tellsPlaces)
        return Fit::Yes;
    if (gate.isKnown)
        return gate.devices.empty()
                       || std::any_of(gate.devices.begin(), gate.devices.end(),
                                      [&](const DeviceInfo &device) { return serves(device, need); })
                   ? Fit::Yes
                   : Fit::No;
    const auto &platforms = gate.spec.platforms;
    const bool foreign =
        !need.place.platform.empty() && !platforms.empty()
        && std::find(platforms.begin(), platforms.end(), need.place.platform) == platforms.end();
    return foreign ? Fit::No : Fit::Perhaps;
}

GateBoard::Ticket GateBoard::ask(const Need &need, double now)
{
    for (GateState &gate : m_gates) {
        const bool mended = !m_options.tellsPlaces || now - gate.since >= goneSeconds;
        if (gate.phase == GatePhase::Gone && mended) {
            gate.startFailures = 0;
            enter(gate, GatePhase::Cold, now);
        }
    }
    ++m_lastTicket;
    m_queue[m_lastTicket] = {m_lastTicket, bound(need), 0, std::nullopt};
    m_new.push_back(m_lastTicket);
    return m_lastTicket;
}

Need GateBoard::bound(Need need) const
{
    if (const auto found = m_bound.find(bondOf(need)); found != m_bound.end())
        need.place.device = found->second;
    return need;
}

void GateBoard::bind(const Need &need, const GateState &gate)
{
    const std::string bond = bondOf(need);
    const auto device = std::find_if(gate.devices.begin(), gate.devices.end(),
                                     [&](const DeviceInfo &each) { return serves(each, need); });
    if (bond.empty() || device == gate.devices.end())
        return;
    m_bound.emplace(bond, device->name);
    for (auto &[ticket, waiting] : m_queue)
        waiting.need = bound(std::move(waiting.need));
}

void GateBoard::leave(Ticket ticket)
{
    m_queue.erase(ticket);
}

void GateBoard::enter(GateState &gate, GatePhase phase, double now)
{
    const double spent = now - gate.since;
    if (gate.phase == GatePhase::Busy)
        gate.busySeconds += spent;
    if (gate.phase == GatePhase::Busy || gate.phase == GatePhase::Idle)
        gate.upSeconds += spent;
    gate.phase = phase;
    gate.since = now;
    gate.stand.clear();
}

/// Once is bad luck and costs a second; a gate that fails again and again is tried less and less often.
void GateBoard::rest(GateState &gate, double now)
{
    ++gate.failures;
    enter(gate, GatePhase::Resting, now);
    const double times = gate.failures > 6 ? 64 : static_cast<double>(1 << (gate.failures - 1));
    const double seconds = std::min(m_options.restSeconds * times, longestRestSeconds);
    gate.restsUntil = now + (m_options.tellsPlaces ? seconds : 0);
}

GateBoard::Orders GateBoard::settle(double now)
{
    Orders orders;
    std::vector<std::size_t> idle;
    std::vector<std::size_t>
        coming; // gates that will take a trial, cold ones after those that are being started
    for (const GatePhase phase : {GatePhase::Starting, GatePhase::Cold}) {
        for (std::size_t i = 0; i < m_gates.size(); ++i) {
            GateState &gate = m_gates[i];
            if (gate.phase == GatePhase::Resting && now >= gate.restsUntil)
                enter(gate, GatePhase::Cold, now);
            if (gate.phase == phase)
                coming.push_back(i);
            if (gate.phase == GatePhase::Idle && phase == GatePhase::Cold)
                idle.push_back(i);
        }
    }
    refuse(orders, now);
    for (auto next = m_queue.begin(); next != m_queue.end() && (!idle.empty() || !coming.empty());) {
        Waiting &waiting = next->second;
        const auto seat = std::find_if(idle.begin(), idle.end(), [&](std::size_t i) {
            return fit(m_gates[i], waiting.need) == Fit::Yes;
        });
        if (seat != idle.end()) {
            const std::size_t chosen = *seat;
            orders.seats.emplace_back(waiting.ticket, chosen);
            enter(m_gates[chosen], GatePhase::Busy, now);
            m_seated[chosen] = std::move(waiting);
            idle.erase(seat);
            next = m_queue.erase(next);
            bind(m_seated[chosen].need, m_gates[chosen]);
            continue;
        }
        const auto start = std::find_if(coming.begin(), coming.end(), [&](std::size_t i) {
            return fit(m_gates[i], waiting.need) != Fit::No;
        });
        if (start != coming.end()) {
            if (m_gates[*start].phase == GatePhase::Cold) {
                enter(m_gates[*start], GatePhase::Starting, now);
                orders.starts.push_back(*start);
            }
            coming.erase(start);
        }
        ++next;
    }
    return orders;
}

/// Only what is new can have no gate, as long as all of them can be reached.
void GateBoard::refuse(Orders &orders, double now)
{
    const bool all = std::exchange(m_hasChanged, false)
                     || std::any_of(m_gates.begin(), m_gates.end(),
                                    [](const GateState &gate) { return gate.startFailures > 0; });
    std::vector<Ticket> looked = std::exchange(m_new, {});
    if (all) {
        looked.clear();
        for (const auto &[ticket, waiting] : m_queue)
            looked.push_back(ticket);
    }
    for (const Ticket ticket : looked) {
        const auto found = m_queue.find(ticket);
        if (found == m_queue.end())
            continue;
        if (auto refused = refusal(found->second, now)) {
            orders.refusals.emplace_back(ticket, std::move(*refused));
            m_queue.erase(found);
        }
    }
}

std::optional<Error> GateBoard::refusal(Waiting &waiting, double now) const
{
    bool fits = false;
    bool mayRecover = false;
    const GateState *failed = nullptr;
    std::string reasons;
    for (const GateState &gate : m_gates) {
        if (fit(gate, waiting.need) == Fit::No) {
            if (!fits && !gate.spec.name.empty())
                reasons += "\n" + gate.spec.name + " has " + devicesOf(gate) + ".";
            continue;
        }
        if (!std::exchange(fits, true))
            reasons.clear();
        if (gate.startFailures == 0) {
            waiting.helplessSince.reset();
            return std::nullopt;
        }
        mayRecover = mayRecover || gate.phase != GatePhase::Gone;
        failed = &gate;
        if (gate.problem)
            reasons += "\n" + gate.problem->message;
    }
    if (!waiting.helplessSince)
        waiting.helplessSince = now;
    if (mayRecover && now - *waiting.helplessSince < m_options.patienceSeconds)
        return std::nullopt;
    if (m_gates.size() == 1 && failed && failed->problem)
        return failed->problem;
    const std::string what = describe(waiting.need);
    return Error{ErrorCode::Unavailable,
                 "No gate of the pool can take the trial" + (what.empty() ? "" : " (" + what + ")") + '.',
                 reasons.empty() ? reasons : reasons.substr(1)};
}

void GateBoard::saysStand(std::size_t gate, std::string stand)
{
    m_gates[gate].stand = std::move(stand);
}

void GateBoard::started(std::size_t gate, std::vector<DeviceInfo> devices, double now)
{
    GateState &state = m_gates[gate];
    state.isKnown = true;
    state.devices = std::move(devices);
    state.problem.reset();
    state.startFailures = 0;
    m_hasChanged = true;
    enter(state, GatePhase::Idle, now);
}

void GateBoard::notStarted(std::size_t gate, const GateProblem &problem, double now)
{
    GateState &state = m_gates[gate];
    state.problem = problem.error;
    ++state.startFailures;
    rest(state, now);
    if (problem.isFinal || !m_options.tellsPlaces)
        enter(state, GatePhase::Gone, now);
}

void GateBoard::done(std::size_t gate, double now)
{
    GateState &state = m_gates[gate];
    ++state.trials;
    state.failures = 0;
    state.problem.reset();
    enter(state, GatePhase::Idle, now);
}

bool GateBoard::lost(std::size_t gate, const Error &why, double now)
{
    GateState &state = m_gates[gate];
    ++state.losses;
    state.problem = why;
    rest(state, now);
    Waiting waiting = std::move(m_seated[gate]);
    if (++waiting.losses > m_options.mostLosses)
        return false;
    const Ticket ticket = waiting.ticket;
    waiting.need = bound(std::move(waiting.need));
    m_queue[ticket] = std::move(waiting);
    return true;
}

void GateBoard::closed(std::size_t gate, double now)
{
    enter(m_gates[gate], GatePhase::Cold, now);
}

std::size_t GateBoard::placeOf(Ticket ticket) const
{
    const auto found = m_queue.find(ticket);
    return found == m_queue.end() ? 0 : static_cast<std::size_t>(std::distance(m_queue.begin(), found)) + 1;
}

bool GateBoard::mayTake(std::size_t gate, Ticket ticket) const
{
    const auto found = m_queue.find(ticket);
    return found != m_queue.end() && fit(m_gates[gate], found->second.need) != Fit::No;
}

std::string GateBoard::standFor(Ticket ticket) const
{
    const auto found = m_queue.find(ticket);
    if (found == m_queue.end())
        return {};
    std::string stand;
    for (const GateState &gate : m_gates) {
        if (fit(gate, found->second.need) == Fit::No)
            continue;
        if (gate.phase == GatePhase::Busy)
            return {}; // it is not the start that is waited for
        if (gate.phase == GatePhase::Starting && stand.empty())
            stand = "starting " + (gate.spec.name.empty() ? std::string("the gate") : gate.spec.name)
                    + (gate.stand.empty() ? "" : "; " + gate.stand);
        if (gate.phase == GatePhase::Resting && gate.problem && stand.empty())
            stand = gate.problem->message + " It is tried again.";
    }
    return stand;
}

} // namespace klineage::gate
