// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/pool/gatespec.h"
#include "core/trial/request.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace klineage::gate {

/// What a trial needs of a gate.
struct Need {
    std::optional<kernel::DeviceKind>
        kind; ///< nothing: a candidate that cannot be read, which any gate can say
    Place place;
};
[[nodiscard]] Need needOf(const GateRequest &request);
[[nodiscard]] std::string describe(const Need &need); ///< "sm90, NVIDIA H200"

enum class GatePhase {
    Cold,     ///< not started, or ended because nobody needed it
    Starting, ///< or waiting in a queue of Slurm
    Idle,
    Busy,
    Resting, ///< it could not be reached, and is tried again
    Gone,    ///< it could not be started, and trying again will not help
};
[[nodiscard]] const char *toString(GatePhase phase);

/// One gate, as the board knows it.
struct GateState {
    GateSpec spec;
    GatePhase phase = GatePhase::Cold;
    std::vector<DeviceInfo> devices; ///< as it said when it was started
    bool isKnown = false;            ///< it has been asked for its devices
    std::string stand;               ///< where its start stands
    std::optional<Error> problem;    ///< the last one; none after a trial
    double since = 0;                ///< in this phase
    double restsUntil = 0;
    int startFailures = 0; ///< in a row
    int failures = 0;      ///< in a row, losses among them
    int trials = 0;
    int losses = 0; ///< trials that it took with it
    double busySeconds = 0;
    double upSeconds = 0; ///< idle or busy, without the present phase
};

struct BoardOptions {
    double patienceSeconds = 0; ///< how long a trial waits while no gate for it can be reached
    int mostLosses = 1;         ///< gates that a trial may lose and be begun again
    double restSeconds = 1;     ///< until a gate that was lost is tried again; twice as long each time
    bool tellsPlaces = true;    ///< gates are asked for their devices; otherwise each of them may have any
};

/// Who goes next, and where to: the queue of trials in front of the gates of a pool, and what is known of these. It decides and does
/// nothing; times are seconds of the caller's clock. One thread at a time.
///
/// A trial goes to the first gate that becomes idle and has what it needs; among trials that need the same, the one that was asked for
/// first goes first. A gate is started when a trial waits that no idle or starting gate will take.
class GateBoard
{
public:
    using Ticket = std::uint64_t;

    GateBoard(std::vector<GateSpec> gates, BoardOptions options);

    [[nodiscard]] Ticket ask(const Need &need, double now);
    void leave(Ticket ticket); ///< it does not wait any more

    struct Orders {
        std::vector<std::pair<Ticket, std::size_t>> seats; ///< these trials begin on these gates
        std::vector<std::size_t> starts;                   ///< these gates are started
        std::vector<std::pair<Ticket, Error>> refusals;    ///< no gate will take them
    };
    [[nodiscard]] Orders settle(double now);

    void saysStand(std::size_t gate, std::string stand);
    void started(std::size_t gate, std::vector<DeviceInfo> devices, double now);
    void notStarted(std::size_t gate, const GateProblem &problem, double now);
    void done(std::size_t gate, double now); ///< its trial is over
    /// It went away with its trial, which has its old place in the queue again; false: that has lost too many, and is out of it.
    [[nodiscard]] bool lost(std::size_t gate, const Error &why, double now);
    void closed(std::size_t gate, double now); ///< it was idle

    [[nodiscard]] std::size_t placeOf(Ticket ticket) const; ///< 1: next; 0: does not wait
    /// It waits, and this gate may have what it needs.
    [[nodiscard]] bool mayTake(std::size_t gate, Ticket ticket) const;
    [[nodiscard]] std::size_t waiting() const { return m_queue.size(); }
    [[nodiscard]] const std::vector<GateState> &gates() const { return m_gates; }
    /// What a trial that waits is told about the gates that are being started for it; empty: nothing is.
    [[nodiscard]] std::string standFor(Ticket ticket) const;

private:
    enum class Fit { No, Perhaps, Yes };
    struct Waiting {
        Ticket ticket = 0;
        Need need;
        int losses = 0;
        std::optional<double> helplessSince;
    };
    [[nodiscard]] Fit fit(const GateState &gate, const Need &need) const;
    [[nodiscard]] std::optional<Error> refusal(Waiting &waiting, double now) const;
    void refuse(Orders &orders, double now);
    [[nodiscard]] Need bound(Need need) const;
    void bind(const Need &need, const GateState &gate);
    void enter(GateState &gate, GatePhase phase, double now);
    void rest(GateState &gate, double now);

    std::vector<GateState> m_gates;
    BoardOptions m_options;
    std::map<Ticket, Waiting> m_queue;
    std::vector<Waiting> m_seated;              ///< beside m_gates
    std::vector<Ticket> m_new;                  ///< nobody has looked yet whether any gate fits them
    std::map<std::string, std::string> m_bound; ///< what goes together -> name of its device
    bool m_hasChanged = false; ///< what is known of a gate: whether it fits is to be looked at again
    Ticket m_lastTicket = 0;
};

} // namespace klineage::gate
