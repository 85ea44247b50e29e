// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/tune/sweep.h"

#include "core/base/numbertext.h"
#include "core/files/sha256.h"
#include "core/process/deadline.h"
#include "core/tune/pointfile.h"
#include "core/workload/workload.h"

#include <algorithm>
#include <deque>
#include <future>
#include <mutex>

namespace klineage::gate::tune {

namespace {

constexpr int mostErrorsInARow = 3;
constexpr std::size_t preparedAhead = 2;

/// "1.25×"
std::string times(double speedup)
{
    return significantText(speedup, 4) + "×";
}

/// The gate of a pool that made the trial; empty: none, or it has no name.
std::string gateOf(const PointResult &result)
{
    if (!result.trial)
        return {};
    const auto &facts = result.trial->environment.facts;
    const auto name = facts.find("gate");
    return name == facts.end() ? std::string() : name->second;
}

class Sweep
{
public:
    Sweep(const SweepOptions &options, const Gate &gate, const std::stop_token &stop,
          const SweepProgress &progress, Space space, PointFile file)
        : m_options(options)
        , m_gate(gate)
        , m_stop(stop)
        , m_progress(progress)
        , m_space(std::move(space))
        , m_file(std::move(file))
        , m_limit(options.seconds > 0 ? process::Deadline::in(options.seconds) : process::Deadline::never())
    {
        m_result.seed = options.seed;
        m_result.spaceSize = m_space.size();
    }
    [[nodiscard]] Result<SweepResult> run();

private:
    using Made = Result<PointResult>;
    /// A trial that is being made.
    struct Flight {
        Coordinates coordinates;
        Point point;
        std::future<Made> made;
    };
    [[nodiscard]] GateRequest pointRequest(const Point &point) const;
    /// Makes the trial, unless the out file has it, and keeps it there. From any thread.
    [[nodiscard]] Made fetch(const std::string &role, const Point &point, const GateRequest &request,
                             const std::string &note);
    /// What is counted, checked and told, in the order of the search.
    [[nodiscard]] Made land(Made made, const std::string &role);
    [[nodiscard]] Made make(const std::string &role, const Point &point, const GateRequest &request,
                            const std::string &note)
    {
        return land(fetch(role, point, request, note), role);
    }
    [[nodiscard]] Status runBatch(const std::vector<Coordinates> &batch, Search &search,
                                  const std::string &note);
    [[nodiscard]] Status checkDevice(const Trial &trial);
    [[nodiscard]] Status runPoints();
    [[nodiscard]] Status finish();
    void chooseBest();
    void conclude();
    /// Whether the sweep is over; says why in the result.
    [[nodiscard]] const PointResult *unavailable() const;
    [[nodiscard]] bool over(std::size_t inFlight = 0);
    [[nodiscard]] const PointResult &defaults() const { return m_result.points.front(); }

    const SweepOptions &m_options;
    const Gate &m_gate;
    std::stop_token m_stop;
    const SweepProgress &m_progress;
    Space m_space;
    PointFile m_file;
    process::Deadline m_limit;
    SweepResult m_result;
    std::string m_device;
    std::string m_gateName; ///< of the first trial
    std::mutex m_filing;
    bool m_isOver = false;
    int m_errorsInARow = 0;
};

GateRequest Sweep::pointRequest(const Point &point) const
{
    GateRequest request = m_options.request;
    request.place.device = m_device;
    // Without a parent in the same rounds it is the latencies that are compared: those of one device alone.
    if (!m_result.points.empty() && !defaults().correct())
        request.place.gate = m_gateName;
    request.tunables = point;
    request.parentText = !m_result.points.empty() && defaults().correct() ? request.candidateText : "";
    request.withReference = false; // it is the same for all points
    request.profileSeconds = std::min(m_options.pointSeconds, request.profileSeconds);
    request.minRounds = std::min(m_options.pointRounds, request.minRounds);
    request.targetHalfWidth = std::max(m_options.pointHalfWidth, request.targetHalfWidth);
    return request;
}

/// Latencies of two devices cannot be ranked.
Status Sweep::checkDevice(const Trial &trial)
{
    const std::string &device = trial.environment.device;
    if (device.empty())
        return {};
    if (!m_device.empty() && device != m_device)
        return fail(ErrorCode::InvalidInput, "Cannot go on with " + m_options.out.string()
                                                 + ": its trials were made on " + m_device + ", and this is "
                                                 + device + ". Choose another file.");
    m_device = device;
    return {};
}

Sweep::Made Sweep::fetch(const std::string &role, const Point &point, const GateRequest &request,
                         const std::string &note)
{
    PointResult result;
    result.point = point;
    const std::string id = role + " " + nameOf(point);
    {
        const std::scoped_lock lock(m_filing);
        if (const Trial *known = m_file.find(id)) {
            result.trial = *known;
            result.resumed = true;
            return result;
        }
    }
    auto trial = m_gate.run(request);
    if (!trial && (trial.error().code == ErrorCode::Cancelled || m_stop.stop_requested()))
        return fail(ErrorCode::Cancelled, "The sweep was stopped.");
    if (trial)
        trial->verdict.evidence.push_back({"sweep", note});
    // "unavailable" says nothing about the point: it is tried again when the sweep goes on.
    const bool told = !trial || trial->verdict.status != VerdictStatus::Unavailable;
    const std::scoped_lock lock(m_filing);
    if (auto written = told ? m_file.add(id, trial) : Status(); !written)
        return tl::unexpected(written.error());
    if (trial)
        result.trial = std::move(*trial);
    else
        result.error = trial.error();
    return result;
}

Sweep::Made Sweep::land(Made made, const std::string &role)
{
    if (!made)
        return made;
    if (!made->resumed)
        m_errorsInARow = made->trial ? 0 : m_errorsInARow + 1;
    if (m_errorsInARow >= mostErrorsInARow)
        return tl::unexpected(*made->error);
    if (made->trial) {
        if (auto checked = checkDevice(*made->trial); !checked)
            return tl::unexpected(checked.error());
    }
    if (m_progress)
        m_progress(*made, role);
    return made;
}

/// The first point that found no device; nullptr: none. With several in flight it is not always the last.
const PointResult *Sweep::unavailable() const
{
    const auto found =
        std::find_if(m_result.points.begin(), m_result.points.end(), [](const PointResult &point) {
            return point.trial && point.trial->verdict.status == VerdictStatus::Unavailable;
        });
    return found == m_result.points.end() ? nullptr : &*found;
}

bool Sweep::over(std::size_t inFlight)
{
    const auto &points = m_result.points;
    if (m_stop.stop_requested())
        m_result.end = SweepEnd::Stopped;
    else if (unavailable())
        m_result.end = SweepEnd::NoDevice;
    else if (points.size() + inFlight >= static_cast<std::size_t>(std::max(m_options.budget, 1)))
        m_result.end = SweepEnd::Budget;
    else if (m_limit.passed())
        m_result.end = SweepEnd::TimeLimit;
    else
        return false;
    return true;
}

/// Twice as many are asked for as there are gates: when one is through, its next point waits already.
Status Sweep::runBatch(const std::vector<Coordinates> &batch, Search &search, const std::string &note)
{
    const std::size_t window = m_options.jobs > 1 ? static_cast<std::size_t>(m_options.jobs) * 2 : 1;
    std::deque<Flight> flights;
    std::size_t next = 0;
    for (;;) {
        while (next < batch.size() && flights.size() < window && !over(flights.size())) {
            for (std::size_t j = next + 1;
                 window == 1 && m_gate.prepare && j < std::min(next + 1 + preparedAhead, batch.size()); ++j)
                m_gate.prepare(pointRequest(m_space.point(batch[j])));
            const Point point = m_space.point(batch[next]);
            const auto fly = [this, point, request = pointRequest(point), note] {
                return fetch("point", point, request, note);
            };
            flights.push_back({batch[next], point,
                               std::async(window > 1 ? std::launch::async : std::launch::deferred, fly)});
            ++next;
        }
        if (flights.empty()) {
            m_isOver = next < batch.size();
            return {};
        }
        Flight flight = std::move(flights.front());
        flights.pop_front();
        auto made = land(flight.made.get(), "point");
        if (!made)
            return tl::unexpected(made.error());
        m_result.points.push_back(std::move(*made));
        search.tell(flight.coordinates, speedOf(m_result.points.back(), defaults()));
    }
}

Status Sweep::runPoints()
{
    const Point defaultPoint = m_space.defaults();
    const bool defaultInside = m_space.point(m_space.nearestToDefaults()) == defaultPoint;
    // Outside of a narrowed space the defaults are a trial more than the space has points.
    const auto budget = static_cast<std::uint64_t>(std::max(m_options.budget, 1));
    const auto search = chooseSearch(m_space, defaultInside ? budget : budget - 1, m_options.seed);
    m_result.search = search->name();
    const std::string note = m_result.search + " search, seed " + std::to_string(m_options.seed) + ", "
                             + std::to_string(m_result.spaceSize) + " points";
    auto first = make("point", defaultPoint, pointRequest(defaultPoint), note + "; the defaults, alone");
    if (!first)
        return tl::unexpected(first.error());
    m_result.points.push_back(std::move(*first));
    if (defaultInside)
        search->tell(m_space.nearestToDefaults(), speedOf(defaults(), defaults()));
    m_gateName = gateOf(defaults());
    for (auto batch = search->next(); !batch.empty(); batch = search->next()) {
        if (auto run = runBatch(batch, *search, note); !run)
            return run;
        if (m_isOver) // over() has said why
            return {};
    }
    m_result.end = m_stop.stop_requested() ? SweepEnd::Stopped : SweepEnd::Complete;
    return {};
}

void Sweep::chooseBest()
{
    double fastest = defaults().correct() ? 1 : 0;
    for (std::size_t i = 1; i < m_result.points.size(); ++i) {
        const auto speed = speedOf(m_result.points[i], defaults());
        if (speed && *speed > fastest) {
            fastest = *speed;
            m_result.best = i;
        }
    }
}

Status Sweep::finish()
{
    if (!m_result.best)
        return {};
    const Point point = m_result.points[*m_result.best].point;
    const std::string note = "fastest of " + std::to_string(m_result.points.size()) + " points ("
                             + m_result.search + " search, seed " + std::to_string(m_options.seed)
                             + "), measured again";
    GateRequest request = m_options.request;
    request.place.device = m_device;
    request.tunables = point;
    request.parentText = defaults().correct() ? request.candidateText : "";
    auto confirmed = make("confirm", point, request, note);
    if (!confirmed)
        return tl::unexpected(confirmed.error());
    m_result.confirmation = std::move(*confirmed);
    if (m_options.against.empty() || !m_result.confirmation->correct())
        return {};
    request.parentText = m_options.against;
    auto compared = make("compare", point, request, note);
    if (!compared)
        return tl::unexpected(compared.error());
    m_result.comparison = std::move(*compared);
    return {};
}

void Sweep::conclude()
{
    const auto correct = std::count_if(m_result.points.begin(), m_result.points.end(),
                                       [](const PointResult &point) { return point.correct(); });
    std::string &text = m_result.conclusion;
    if (m_result.end == SweepEnd::NoDevice) {
        text = "There is no device: " + unavailable()->trial->verdict.message;
        return;
    }
    if (correct == 0) {
        text = "None of " + std::to_string(m_result.points.size()) + " points is correct.";
        return;
    }
    if (!m_result.best) {
        text = "Nothing beats the defaults: none of the other " + std::to_string(m_result.points.size() - 1)
               + " points seemed faster.";
        return;
    }
    const std::string name = nameOf(m_result.points[*m_result.best].point);
    const auto &confirmation = m_result.confirmation;
    if (!confirmation)
        text = name + " seemed fastest, but that is not confirmed, because the sweep was stopped.";
    else if (!confirmation->correct())
        text = name + " seemed fastest, but the confirming trial is "
               + (confirmation->trial ? toString(confirmation->trial->verdict.status)
                                      : "missing: " + confirmation->error->message)
               + ".";
    else if (!defaults().correct())
        text = name + " is the fastest correct point; the defaults do not pass.";
    else if (m_result.improved())
        text = name + " beats the defaults: "
               + times(confirmation->trial->comparison("parent")->speedup.value) + " their speed, confirmed.";
    else if (const Comparison *comparison = confirmation->trial->comparison("parent"))
        text = "Nothing beats the defaults: the seemingly fastest point, " + name + ", has "
               + times(comparison->speedup.value) + " their speed when measured again ("
               + (comparison->change == Change::NoGain ? "no gain" : toString(comparison->change)) + ").";
    else
        text = name + " seemed fastest, but the confirming trial was not compared with the defaults.";
}

Result<SweepResult> Sweep::run()
{
    auto done = runPoints();
    if (done && !m_result.points.empty() && m_result.end != SweepEnd::NoDevice) {
        chooseBest();
        if (m_result.end != SweepEnd::Stopped)
            done = finish();
    }
    if (!done && done.error().code == ErrorCode::Cancelled && !m_result.points.empty()) {
        m_result.end = SweepEnd::Stopped;
        if (!m_result.best)
            chooseBest();
    } else if (!done) {
        return tl::unexpected(done.error());
    }
    conclude();
    return std::move(m_result);
}

} // namespace

const char *toString(SweepEnd end)
{
    switch (end) {
    case SweepEnd::Complete:
        return "complete";
    case SweepEnd::Budget:
        return "budget";
    case SweepEnd::TimeLimit:
        return "time_limit";
    case SweepEnd::Stopped:
        return "stopped";
    case SweepEnd::NoDevice:
        return "no_device";
    }
    return "";
}

bool SweepResult::improved() const
{
    if (!confirmation || !confirmation->correct())
        return false;
    if (!points.front().correct())
        return true;
    const Comparison *measured = confirmation->trial->comparison("parent");
    return measured && measured->change == Change::Gain;
}

std::optional<double> speedOf(const PointResult &result, const PointResult &defaults)
{
    if (!result.correct() || !(result.trial->latencyNs.value > 0))
        return std::nullopt;
    if (!defaults.correct() || !(defaults.trial->latencyNs.value > 0))
        return 1e9 / result.trial->latencyNs.value;
    if (const Comparison *comparison = result.trial->comparison("parent"))
        return comparison->speedup.value;
    return defaults.trial->latencyNs.value / result.trial->latencyNs.value;
}

Result<SweepResult> runSweep(const SweepOptions &options, const Gate &gate, const std::stop_token &stop,
                             const SweepProgress &progress)
{
    const auto candidate =
        kernel::parseCandidate(options.request.candidateText, options.request.candidateName);
    if (!candidate)
        return tl::unexpected(candidate.error());
    auto space = Space::of(candidate->tunables, options.only);
    if (!space)
        return tl::unexpected(space.error());
    if (space->size() == 1 && space->point(space->at(0)) == space->defaults())
        return fail(ErrorCode::InvalidInput, options.request.candidateName
                                                 + " has nothing to tune: its tunables, if it declares any, "
                                                   "have one value each.");
    const auto workload = workload::readWorkload(options.request.workloadDirectory);
    if (!workload)
        return tl::unexpected(workload.error());
    auto file = PointFile::open(options.out, files::sha256Hex(options.request.candidateText), workload->name);
    if (!file)
        return tl::unexpected(file.error());
    return Sweep(options, gate, stop, progress, std::move(*space), std::move(*file)).run();
}

} // namespace klineage::gate::tune
